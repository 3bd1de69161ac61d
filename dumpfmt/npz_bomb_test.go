package dumpfmt

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// npzOf is an archive of one deflated member w of the header for shape, and zeros.
func npzOf(t *testing.T, shape string, zeros int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create("w.npy")
	require.NoError(t, err)
	header := "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }\n"
	_, err = f.Write(append([]byte("\x93NUMPY\x01\x00"+string(rune(len(header)))+"\x00"), header...))
	require.NoError(t, err)
	_, err = f.Write(make([]byte, zeros))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func allocatedBy(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A member that inflates to far more than its header tells is refused before it is
// inflated, and one that tells the truth says so before it is.
func TestNPZBomb(t *testing.T) {
	const zeros = 64 << 20
	data := npzOf(t, "(2,)", zeros)
	d, err := NewNPZ(bytes.NewReader(data), int64(len(data)), testFile)
	require.NoError(t, err)
	require.Less(t, allocatedBy(func() { _, err = d.Float32s("w") }), uint64(8<<20))
	var e *FormatError
	require.ErrorAs(t, err, &e)
	require.Contains(t, err.Error(), "trailing bytes")

	data = npzOf(t, "(4096, 4096)", zeros)
	d, err = NewNPZ(bytes.NewReader(data), int64(len(data)), testFile)
	require.NoError(t, err)
	var shape []int
	require.Less(t, allocatedBy(func() { shape, err = d.Shape("w") }), uint64(8<<20))
	require.NoError(t, err)
	require.Equal(t, []int{4096, 4096}, shape)
	w, err := d.Float32s("w")
	require.NoError(t, err)
	require.Equal(t, int64(zeros/4), w.Len())
	_, err = d.Shape("nothing")
	wantUsage(t, err)

	// Of a member that ends early, only what is there takes memory.
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	_, err = z.CreateRaw(&zip.FileHeader{Name: "w.npy", Method: zip.Deflate, CompressedSize64: 1 << 45, UncompressedSize64: 1 << 54})
	require.NoError(t, err)
	require.NoError(t, z.Close())
	sparse := behindZeros{b.Bytes(), 1 << 46}
	d, err = NewNPZ(sparse, sparse.zeros+int64(b.Len()), testFile)
	require.NoError(t, err)
	_, err = d.Float32s("w")
	require.ErrorAs(t, err, &e)
}

// behindZeros is a sparse file.
type behindZeros struct {
	data  []byte
	zeros int64
}

func (s behindZeros) ReadAt(p []byte, off int64) (int, error) {
	for i := range p {
		switch at := off + int64(i) - s.zeros; {
		case at >= int64(len(s.data)):
			return i, io.EOF
		case at >= 0:
			p[i] = s.data[at]
		default:
			p[i] = 0
		}
	}
	return len(p), nil
}

func TestNPZShapeOfAFile(t *testing.T) {
	for name, data := range map[string][]byte{"stored": unhex(t, npzHex), "deflated": unhex(t, npzDeflatedHex)} {
		path := filepath.Join(t.TempDir(), testFile)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		d, err := OpenNPZ(path)
		require.NoError(t, err, name)
		shape, err := d.Shape("w")
		require.NoError(t, err, name)
		require.Equal(t, []int{2, 3}, shape, name)
		require.NoError(t, d.Close())
	}
}
