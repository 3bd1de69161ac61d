package dumpfmt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

func tempDir() string {
	dir, err := os.MkdirTemp("", "dumpfmt")
	if err != nil {
		log.Fatal(err)
	}
	return dir
}

func ExampleFingerprint() {
	fmt.Printf("0x%016X\n", dumpfmt.Fingerprint("foobar"))
	// Output: 0x85944171F73967E8
}

func ExampleCreateFloatLayers() {
	dir := tempDir()
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "hello.layers.bin")

	w, err := dumpfmt.CreateFloatLayers(path, dumpfmt.LayerHeader{
		Rows: 2, Width: 3, Fingerprint: dumpfmt.Fingerprint("hello"), Mode: dumpfmt.CaptureIncremental,
	}, dumpfmt.WriteOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Abort() // does nothing after Commit
	for _, row := range [][]float32{{1, 2, 3}, {4, 5, 6}} {
		if err := w.WriteRow(row); err != nil {
			log.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		log.Fatal(err)
	}

	_, err = dumpfmt.CreateFloatLayers(path, dumpfmt.LayerHeader{Rows: 1, Width: 1, Mode: 1}, dumpfmt.WriteOptions{})
	fmt.Println("over an existing file:", errors.Is(err, fs.ErrExist))
	// Output: over an existing file: true
}

func ExampleOpenFloatLayers() {
	dir := tempDir()
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "cut.layers.bin")
	header := []byte{29, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 0, 0, 0, 0, 0, 0, 0}
	if err := dumpfmt.WriteFile(path, append(header, make([]byte, 12)...), dumpfmt.WriteOptions{}); err != nil {
		log.Fatal(err)
	}

	_, err := dumpfmt.OpenFloatLayers(path)
	var broken *dumpfmt.FormatError
	if errors.As(err, &broken) {
		fmt.Println(filepath.Base(broken.File), "at byte", broken.Offset, "got", broken.Got, "want", broken.Want)
	}
	// Output: cut.layers.bin at byte 32 got 12 want 7424
}

func ExampleInt8Layers_Row64() {
	data := []byte{
		1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, // 1 row of 2 codes
		0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, // fingerprint 0, mode 1
		3, 0, 0, 0, 0, 0, 0, 0, 254, 255, 255, 255, 255, 255, 255, 255, // m = 3, e = -2
		2, 255, // codes 2 and -1
	}
	d, err := dumpfmt.NewInt8Layers(bytes.NewReader(data), int64(len(data)), "memory")
	if err != nil {
		log.Fatal(err)
	}
	row := make([]float64, d.Header().Width)
	step, err := d.Row64(0, row)
	fmt.Println(row, step, err)
	// Output: [1.5 -0.75] 0.75 <nil>
}

func ExampleNewFloatLogits() {
	data := []byte{1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x3f, 0, 0, 0, 0xbf}
	d, err := dumpfmt.NewFloatLogits(bytes.NewReader(data), int64(len(data)), "memory")
	if err != nil {
		log.Fatal(err)
	}
	row := make([]float32, d.Header().Vocab)
	fmt.Println(d.Row(0, row), row)
	// Output: <nil> [1 -0.5]
}

func ExampleNewInt32Logits() {
	data := []byte{1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 255, 255, 255, 255}
	d, err := dumpfmt.NewInt32Logits(bytes.NewReader(data), int64(len(data)), "memory")
	if err != nil {
		log.Fatal(err)
	}
	row := make([]int32, d.Header().Vocab)
	fmt.Println(d.Row(0, row), row)
	// Output: <nil> [5 -1]
}

func ExampleEachPair() {
	data := []byte{1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x3f, 0, 0, 0, 0xbf}
	a, err := dumpfmt.NewFloatLogits(bytes.NewReader(data), int64(len(data)), "a")
	if err != nil {
		log.Fatal(err)
	}
	other := bytes.Clone(data)
	other[23] = 0x3f // -0.5 becomes 0.5
	b, err := dumpfmt.NewFloatLogits(bytes.NewReader(other), int64(len(other)), "b")
	if err != nil {
		log.Fatal(err)
	}
	err = dumpfmt.EachPair(context.Background(), a, b, func(index int64, x, y []float32) error {
		for i := range x {
			if x[i] != y[i] {
				fmt.Printf("value %d: %v against %v\n", index+int64(i), x[i], y[i])
			}
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// value 1: -0.5 against 0.5
	// <nil>
}

func ExampleCheckSafetensors() {
	dir := tempDir()
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "model.safetensors")
	w, err := dumpfmt.CreateSafetensors(path, []dumpfmt.TensorSpec{
		{Name: "embed", DType: dumpfmt.F32, Shape: []int{2, 2}},
	}, nil, dumpfmt.WriteOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Abort()
	if err := w.WriteFloat32s("embed", []float32{1, 2, 3, 4}); err != nil {
		log.Fatal(err)
	}
	if err := w.Commit(); err != nil {
		log.Fatal(err)
	}

	tensors, err := dumpfmt.CheckSafetensors(path)
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range tensors {
		fmt.Println(t.Name, t.DType, t.Shape, t.Bytes)
	}
	// Output: embed F32 [2 2] 16
}

func ExampleCreateFolder() {
	dir := tempDir()
	defer os.RemoveAll(dir)
	w, err := dumpfmt.CreateFolder(dir, dumpfmt.EngineFile{Name: "my engine", Logits: dumpfmt.LogitsInt32}, dumpfmt.WriteOptions{})
	if err != nil {
		log.Fatal(err)
	}
	c, err := w.Case("hello", dumpfmt.CaseFile{Text: "hello", TokenIDs: []int{17}, OutputIDs: []int{1}})
	if err != nil {
		log.Fatal(err)
	}
	logits, err := c.Int32Logits(dumpfmt.LogitHeader{Rows: 1, Vocab: 2})
	if err != nil {
		log.Fatal(err)
	}
	defer logits.Abort()
	if err := errors.Join(logits.WriteRow([]int32{3, 9}), logits.Commit(), c.Commit()); err != nil {
		log.Fatal(err)
	}

	f, err := dumpfmt.OpenFolder(dir)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(f.Engine().Name)
	for _, c := range f.Cases() {
		fmt.Println(c.Name, c.File.TokenIDs, c.Check())
	}
	// Output:
	// my engine
	// hello [17] <nil>
}

func ExampleOpenFolder() {
	_, err := dumpfmt.OpenFolder("no/such/folder")
	fmt.Println(errors.Is(err, fs.ErrNotExist))
	// Output: true
}

func ExampleCreateTarget() {
	dir, err := os.MkdirTemp("", "target")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "target.bin")
	spec := dumpfmt.TargetSpec{Vocab: 3, Prefixes: [][32]byte{{1}, {2}}}
	w, err := dumpfmt.CreateTarget(path, spec)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = w.Abort() }()
	for i, row := range [][]float32{{0, 1, 1}, {3, 2, 1}} {
		if err := w.WriteRow(i, row); err != nil {
			fmt.Println(err)
			return
		}
	}
	wrote, err := w.Commit()
	if err != nil {
		fmt.Println(err)
		return
	}
	read, err := dumpfmt.VerifyTarget(context.Background(), path, spec, func(row, id int) {
		fmt.Printf("row %d: token %d\n", row, id)
	})
	fmt.Println(read.Bytes, read == wrote, err)
	// Output:
	// row 0: token 1
	// row 1: token 0
	// 174 true <nil>
}
