package reference

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/gomlx/go-huggingface/hub"
	"github.com/gomlx/go-huggingface/models/safetensors"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
)

// shard is one weight file. Its header has passed dumpfmt's check before
// go-huggingface sees the file: that reader panics on a truncated file and takes
// negative offsets, overlaps and holes for weights.
type shard struct {
	file   string // for messages
	header *dumpfmt.Safetensors

	mu     sync.RWMutex              // held for reading while the file is read
	reader *safetensors.TensorReader // nil for a file that isn't on disk
	disk   string
	size   int64
	source io.Closer // the file under header, when it isn't on disk
	closed bool
}

func openShard(f folder, name string) (*shard, error) {
	if f.root != "" {
		return openDiskShard(f, name)
	}
	file, err := f.fsys.Open(f.path(name))
	if err != nil {
		return nil, fmt.Errorf("reference: %s: %w", f.show(name), err)
	}
	sh := &shard{file: f.show(name), source: file}
	r, size, err := readerAt(file)
	if err == nil {
		sh.header, err = dumpfmt.NewSafetensors(r, size, sh.file)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("reference: %w", err)
	}
	return sh, nil
}

// readerAt gives random access to a file; one without it is read into memory.
func readerAt(file fs.File) (io.ReaderAt, int64, error) {
	if r, ok := file.(io.ReaderAt); ok {
		st, err := file.Stat()
		if err != nil {
			return nil, 0, err
		}
		return r, st.Size(), nil
	}
	data, err := io.ReadAll(file)
	return bytes.NewReader(data), int64(len(data)), err
}

func openDiskShard(f folder, name string) (*shard, error) {
	var err error
	dir := filepath.Join(f.root, filepath.FromSlash(f.dir))
	sh := &shard{file: f.show(name), disk: filepath.Join(dir, name)}
	if sh.header, err = dumpfmt.OpenSafetensors(sh.disk); err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	// Only the header is read through this handle.
	if err := sh.header.Close(); err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	st, err := os.Stat(sh.disk)
	if err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	sh.size = st.Size()
	// A local repository: no network access is made.
	sh.reader, err = safetensors.NewEmpty(hub.NewLocal(dir)).NewTensorReader(name)
	if err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	return sh, nil
}

func (sh *shard) path() string { return sh.file }

// check compares a tensor of the shard with what the model needs.
func (sh *shard) check(name string, want []int) error {
	info, _ := sh.header.Tensor(name)
	if _, ok := elementSize(info.DType); !ok {
		return &engine.UnsupportedError{What: fmt.Sprintf("%s: tensor %s: dtype %s", sh.file, name, info.DType),
			Why: "weights are read from F32, BF16 and F16"}
	}
	return checkShape(sh.file, name, info.Shape, want)
}

// tensor reads and upcasts a tensor that the header has.
func (sh *shard) tensor(name string) (engine.Tensor, error) {
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	info, _ := sh.header.Tensor(name)
	if sh.closed {
		return engine.Tensor{}, fmt.Errorf("reference: %s: tensor %s: %w", sh.file, name, fs.ErrClosed)
	}
	if _, ok := elementSize(info.DType); !ok {
		return engine.Tensor{}, sh.check(name, info.Shape)
	}
	t := engine.Tensor{Shape: slices.Clone(info.Shape)}
	var err error
	if sh.reader == nil {
		raw := make([]byte, info.Bytes)
		if err = sh.header.ReadBytes(name, 0, raw); err == nil {
			t.Data = upcast(info.DType, raw)
		}
	} else {
		err = sh.readDisk(info, func(raw []byte) { t.Data = upcast(info.DType, raw) })
	}
	if err != nil {
		return engine.Tensor{}, fmt.Errorf("reference: %s: tensor %s: %w", sh.file, name, err)
	}
	return t, nil
}

// readDisk reads a tensor through go-huggingface, whose view of the file must
// be the one that was checked: it parses the header anew and maps the file, and
// a mapped file that has shrunk ends the process.
func (sh *shard) readDisk(info dumpfmt.TensorInfo, use func([]byte)) error {
	st, err := os.Stat(sh.disk)
	if err != nil {
		return err
	}
	if st.Size() != sh.size {
		return fmt.Errorf("file size: got %d, want %d as when it was opened", st.Size(), sh.size)
	}
	meta, ok := sh.reader.Header.Tensors[info.Name]
	if !ok || meta.Dtype != string(info.DType) || !slices.Equal(meta.Shape, info.Shape) ||
		meta.DataOffsets[1]-meta.DataOffsets[0] != info.Bytes {
		return errors.New("header: go-huggingface reads it otherwise than dumpfmt")
	}
	t, err := sh.reader.ReadTensor(nil, info.Name)
	if err != nil {
		return err
	}
	return t.ConstBytes(use)
}

func (sh *shard) close() error {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.closed {
		return nil
	}
	sh.closed = true
	var all []error
	if sh.reader != nil {
		all = append(all, sh.reader.Close())
	}
	if sh.source != nil {
		all = append(all, sh.source.Close())
	}
	return errors.Join(all...)
}
