package dumpfmt_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

func ExampleCreateSafetensors() {
	dir := tempDir()
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "a.probes.safetensors")
	w, err := dumpfmt.CreateSafetensors(path, []dumpfmt.TensorSpec{{Name: "embed", DType: dumpfmt.F32, Shape: []int{2, 2}}}, nil, dumpfmt.WriteOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Abort() // after Commit it does nothing
	if err := errors.Join(w.WriteFloat32s("embed", []float32{1, 2, 3, 4}), w.Commit()); err != nil {
		log.Fatal(err)
	}
	s, err := dumpfmt.OpenSafetensors(path)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	for _, t := range s.Tensors() {
		fmt.Println(t.Name, t.Shape)
	}
	// Output: embed [2 2]
}

func ExampleCreateInt8Layers() {
	dir := tempDir()
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "a.layers.bin")
	header := dumpfmt.LayerHeader{Rows: 1, Width: 3, Fingerprint: dumpfmt.Fingerprint("the templated prompt"), Mode: 1}
	w, err := dumpfmt.CreateInt8Layers(path, header, dumpfmt.WriteOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Abort()
	// Values are codes times M*2^E.
	if err := errors.Join(w.WriteRow(dumpfmt.Scale{M: 1, E: -1}, []int8{1, -2, 3}), w.Commit()); err != nil {
		log.Fatal(err)
	}
	d, err := dumpfmt.OpenInt8Layers(path)
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	row := make([]float64, 3)
	_, err = d.Row64(0, row)
	fmt.Println(row, err)
	// Output: [0.5 -1 1.5] <nil>
}

func ExampleParseCaseFile() {
	c, err := dumpfmt.ParseCaseFile("a.json", []byte(`{"text": "hello", "token_ids": [17], "why": "kept"}`))
	fmt.Println(c.Text, c.TokenIDs, string(c.Extra["why"]), err)
	_, err = dumpfmt.ParseCaseFile("b.json", []byte(`{"text": "hello"}`))
	fmt.Println(err != nil)
	// Output:
	// hello [17] "kept" <nil>
	// true
}

func ExampleReadEngineFile() {
	dir := tempDir()
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "engine.json"), []byte(`{"name": "my engine", "layers": "f32"}`), 0o666); err != nil {
		log.Fatal(err)
	}
	e, err := dumpfmt.ReadEngineFile(dir)
	fmt.Println(e.Name, e.Layers, err)
	// Output: my engine f32 <nil>
}

// A file appears under its name as a whole, or not at all.
func ExampleCreate() {
	dir := tempDir()
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "report.json")
	f, err := dumpfmt.Create(path, dumpfmt.WriteOptions{})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := f.Write([]byte("{}\n")); err != nil {
		log.Fatal(errors.Join(err, f.Abort()))
	}
	_, err = os.Stat(path)
	fmt.Println(errors.Is(err, os.ErrNotExist))
	if err := f.Commit(); err != nil {
		log.Fatal(err)
	}
	_, err = os.Stat(path)
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}
