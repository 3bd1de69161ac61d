package gguf_test

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"testing"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference/gguf"
)

// FuzzGGUF: whatever the bytes are, opening them ends without a panic in a file
// whose tensors lie inside and can be read, or in one of the two errors; and it
// takes memory in proportion to the bytes, not to what they claim.
func FuzzGGUF(f *testing.F) {
	good := small().Bytes()
	f.Add(good)
	for _, c := range hostileFiles(f) {
		f.Add(c.change(bytes.Clone(good)))
	}
	if data, err := os.ReadFile("testdata/everything.gguf"); err == nil {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		file, err := open(data)
		runtime.ReadMemStats(&after)
		// A buffer of 64 KiB, and for what is listed a header in Go's memory: 16
		// bytes for a string of 8, more for keys and tensors. Growing lists
		// double.
		if used, most := after.TotalAlloc-before.TotalAlloc, uint64(1<<19+64*len(data)); used > most {
			t.Fatalf("%d bytes of memory for a file of %d", used, len(data))
		}
		if err != nil {
			var broken *gguf.FormatError
			var unsupported *engine.UnsupportedError
			switch {
			case errors.As(err, &broken) && broken.Offset >= 0 && broken.Offset <= int64(len(data))+1<<31:
			case errors.As(err, &unsupported):
			default:
				t.Fatalf("got %v (%T)", err, err)
			}
			return
		}
		end := int64(0)
		for _, tensor := range file.Tensors() {
			if tensor.Offset < end || tensor.Bytes < 1 || tensor.Offset+tensor.Bytes > int64(len(data)) {
				t.Fatalf("tensor %+v in %d bytes, behind %d", tensor, len(data), end)
			}
			end = tensor.Offset + tensor.Bytes
			dst := make([]float32, tensor.Elements())
			err := file.Float32s(tensor.Name, dst)
			if tensor.Type.Readable() != (err == nil) {
				t.Fatalf("tensor %+v: %v", tensor, err)
			}
		}
	})
}
