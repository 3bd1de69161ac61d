package reference

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference/gguf"
	"github.com/plumbline-go/plumbline/fixtures/tokenizer"
)

// Checkpoint is a Hugging Face checkpoint, or a GGUF file, with its headers
// checked and its weights on disk. It implements [engine.Weights] and is safe for
// concurrent use.
type Checkpoint struct {
	cfg      config
	name     string
	file     string // names the weights in errors
	shards   []store
	where    map[string]store  // by the name of a tensor of the text model
	stored   map[string]string // names in the files, where they are others
	unused   []string
	notes    []string
	text     func() (*tokenizer.Tokenizer, error)
	textFile string // what text reads, for messages
}

var _ engine.Encoder = (*Checkpoint)(nil)

var _ engine.Weights = (*Checkpoint)(nil)

// Load opens the checkpoint in a folder, in the one snapshot of a hub cache
// folder, or in a GGUF file, whose name ends in ".gguf". It reads config.json, or
// the keys of the GGUF file, and the header of every weight file, and checks that
// each tensor the model needs is there with the shape that the config implies. A
// model that can't be used gives a [*engine.ConfigError], a broken weight file a
// *dumpfmt.FormatError or a [*gguf.FormatError], a model that would be computed
// wrong an [*engine.UnsupportedError]. The files stay open until Close.
func Load(path string) (*Checkpoint, error) {
	abs, err := filepath.Abs(path) // also keeps go-huggingface from expanding a "~"
	if err != nil {
		return nil, fmt.Errorf("reference: %s: %w", path, err)
	}
	st, err := os.Stat(abs)
	if err != nil {
		return nil, fmt.Errorf("reference: model: %w", err)
	}
	switch {
	case st.IsDir():
		return load(folder{fsys: os.DirFS(abs), dir: ".", root: abs, shown: path})
	case isGGUF(path):
		return loadGGUF(path, func() (*gguf.File, error) { return gguf.Open(path) })
	}
	return nil, notAModel(path)
}

func notAModel(path string) error {
	return &engine.ConfigError{File: path, What: "model", Got: "a file", Want: "a folder with config.json, or a file named *" + ggufSuffix}
}

// LoadFS is Load for a folder or a GGUF file of a file system, e.g. an embedded
// one. Safetensors files are read through package dumpfmt alone: go-huggingface
// would copy them to a shared temporary folder first.
func LoadFS(fsys fs.FS, path string) (*Checkpoint, error) {
	if !fs.ValidPath(path) {
		return nil, fmt.Errorf("reference: model: %w", &fs.PathError{Op: "open", Path: path, Err: fs.ErrInvalid})
	}
	st, err := fs.Stat(fsys, path)
	switch {
	case err != nil || st.IsDir(): // that nothing is there shows when it is read
		return load(folder{fsys: fsys, dir: path, shown: path})
	case isGGUF(path):
		return loadGGUF(path, func() (*gguf.File, error) { return gguf.OpenFS(fsys, path) })
	}
	return nil, notAModel(path)
}

// folder is where a checkpoint lies.
type folder struct {
	fsys  fs.FS
	dir   string // inside fsys
	root  string // fsys on disk, or empty
	shown string // dir for messages
}

func (f folder) path(name string) string { return path.Join(f.dir, name) }

// show is a file's name for messages.
func (f folder) show(name string) string { return path.Join(filepath.ToSlash(f.shown), name) }

// read returns a small file; false when it doesn't exist.
func (f folder) read(name string) ([]byte, bool, error) {
	data, err := fs.ReadFile(f.fsys, f.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("reference: %s: %w", f.show(name), err)
	}
	return data, true, nil
}

func load(f folder) (_ *Checkpoint, err error) {
	if f, err = f.resolveSnapshot(); err != nil {
		return nil, err
	}
	data, ok, err := f.read(configName)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, &engine.ConfigError{File: f.show(configName), What: "file", Got: "nothing", Want: "a Hugging Face config"}
	}
	c := &Checkpoint{name: path.Base(f.show("")), where: map[string]store{}, stored: map[string]string{},
		text: sync.OnceValues(textOf(f)), textFile: f.show(tokenizerName)}
	if c.cfg, err = readConfig(f.show(configName), data); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	if err := c.openShards(f); err != nil {
		return nil, err
	}
	if err := c.checkTensors(); err != nil {
		return nil, err
	}
	c.closeWhenLost()
	return c, nil
}

// closeWhenLost closes the files of a checkpoint that nobody holds any more.
func (c *Checkpoint) closeWhenLost() {
	runtime.AddCleanup(c, func(shards []store) {
		for _, s := range shards {
			s.close()
		}
	}, c.shards)
}

// checkTensors demands every tensor of the model, refuses those of layers that
// the config doesn't have, which would be a model cut short, and lists the others.
func (c *Checkpoint) checkTensors() error {
	needed := map[string]bool{}
	for _, s := range modelTensors(c.cfg.arch) {
		needed[s.name] = true
		sh, ok := c.where[s.name]
		if !ok {
			return c.missing(s.name, fmt.Sprintf("shape %v", s.shape))
		}
		if err := sh.check(c.inFile(s.name), s.shape); err != nil {
			return err
		}
	}
	left := map[apart]int{}
	for _, name := range slices.Sorted(maps.Keys(c.where)) {
		if needed[name] {
			continue
		}
		if part, ok := families[c.cfg.arch.Family].partOf(name); ok {
			left[part]++
			continue
		}
		if n, ok := layerOf(name); ok && n >= c.cfg.arch.Layers {
			return &engine.ConfigError{File: c.where[name].path(), What: "tensor " + c.inFile(name),
				Got: fmt.Sprintf("one of layer %d", n), Want: fmt.Sprintf("layers below %d, the %s", c.cfg.arch.Layers, c.cfg.layersFrom)}
		}
		c.unused = append(c.unused, c.inFile(name))
	}
	for _, part := range families[c.cfg.arch.Family].apart {
		if n := left[part]; n > 0 {
			c.notes = append(c.notes, fmt.Sprintf("%s*, %d tensors: %s", part.prefix, n, part.what))
		}
	}
	return nil
}

// partOf is the part of a whole model that a tensor belongs to, where it isn't the
// text model.
func (f family) partOf(name string) (apart, bool) {
	i := slices.IndexFunc(f.apart, func(a apart) bool { return strings.HasPrefix(name, a.prefix) })
	if i < 0 {
		return apart{}, false
	}
	return f.apart[i], true
}

// enter gives a tensor of a file the name that it has in a text model.
func (c *Checkpoint) enter(name string, s store) (other store) {
	as := c.textName(name)
	if other, ok := c.where[as]; ok {
		return other
	}
	if c.where[as] = s; as != name {
		c.stored[as] = name
	}
	return nil
}

// textName is the name in a text model of a tensor in a file.
func (c *Checkpoint) textName(name string) string {
	prefix := families[c.cfg.arch.Family].prefix
	if rest, ok := strings.CutPrefix(name, prefix); ok && prefix != "" {
		return modelPrefix + rest
	}
	return name
}

// inFile is the name that a tensor has in its file, or would have.
func (c *Checkpoint) inFile(name string) string {
	if stored, ok := c.stored[name]; ok {
		return stored
	}
	if _, ok := c.where[name]; !ok && len(c.stored) > 0 {
		if rest, ok := strings.CutPrefix(name, modelPrefix); ok {
			return families[c.cfg.arch.Family].prefix + rest
		}
	}
	return name
}

// modelPrefix is that of a text model's tensors, but for the head's.
const modelPrefix = "model."

// layerOf is the decoder layer that a tensor's name places it in.
func layerOf(name string) (int, bool) {
	rest, ok := strings.CutPrefix(name, "model.layers.")
	if !ok {
		return 0, false
	}
	number, _, _ := strings.Cut(rest, ".")
	n, err := strconv.ParseUint(number, 10, 31)
	return int(n), err == nil
}

func (c *Checkpoint) missing(name, want string) error {
	return &engine.ConfigError{File: c.file, What: "tensor " + c.inFile(name), Got: "nothing", Want: want}
}

// Arch implements [engine.Weights].
func (c *Checkpoint) Arch() engine.Arch { return c.cfg.arch.Clone() }

// Tensor implements [engine.Weights]. The tensors of a text model that is part of a
// whole one go by the names that they have in a checkpoint of their own. The
// checkpoint keeps no copy: each call reads the file anew, so keep what you need again.
func (c *Checkpoint) Tensor(name string) (engine.Tensor, error) {
	sh, ok := c.where[name]
	if !ok {
		return engine.Tensor{}, c.missing(name, "a tensor of the checkpoint")
	}
	return sh.tensor(c.inFile(name))
}

// Name is the base name of the folder or the GGUF file.
func (c *Checkpoint) Name() string { return c.name }

// DType is the dtype that the config declares, or empty.
func (c *Checkpoint) DType() string { return c.cfg.dtype }

// UnusedKeys lists the config keys, nested ones as "object.key", that nothing
// here used and that are not known to be harmless.
func (c *Checkpoint) UnusedKeys() []string { return slices.Clone(c.cfg.unused) }

// Notes say which parts of a checkpoint are left alone that aren't of the text
// model, such as a vision tower. Their tensors are in no other list.
func (c *Checkpoint) Notes() []string { return slices.Clone(c.notes) }

// UnusedTensors lists the tensors that the model as configured doesn't use, such
// as the lm_head.weight of a tied head.
func (c *Checkpoint) UnusedTensors() []string { return slices.Clone(c.unused) }

// Close closes the weight files. Tensor fails afterwards; engines that were made
// before keep working, but for the first Logits of an untied head.
func (c *Checkpoint) Close() error {
	var all []error
	for _, s := range c.shards {
		all = append(all, s.close())
	}
	return errors.Join(all...)
}
