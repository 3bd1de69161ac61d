package reference

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/plumbline-go/plumbline/engine"
)

const (
	singleName = "model.safetensors"
	indexName  = "model.safetensors.index.json"
)

// openShards opens the weight files and fills where. As in transformers, a
// model.safetensors goes before an index.
func (c *Checkpoint) openShards(f folder) error {
	if _, err := fs.Stat(f.fsys, f.path(singleName)); err == nil {
		c.file = f.show(singleName)
		return c.openShard(f, singleName)
	}
	data, ok, err := f.read(indexName)
	if err != nil {
		return err
	}
	if !ok {
		return &engine.ConfigError{File: f.show(""), What: "weights", Got: "nothing", Want: singleName + " or " + indexName}
	}
	c.file = f.show(indexName)
	if err := checkJSON(c.file, data); err != nil {
		return err
	}
	var index struct {
		Map map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(data, &index); err != nil {
		return &engine.ConfigError{File: c.file, What: "JSON", Got: err.Error(), Want: "an index of tensor names"}
	}
	files := slices.Sorted(maps.Values(index.Map))
	for _, name := range slices.Compact(files) {
		// The names come from a file: they must not lead out of the folder.
		if name == "" || name == "." || name == ".." || path.Base(name) != name || strings.ContainsRune(name, '\\') {
			return &engine.ConfigError{File: c.file, What: "weight_map", Got: fmt.Sprintf("file %q", name), Want: "a file beside the index"}
		}
		if _, err := fs.Stat(f.fsys, f.path(name)); err != nil {
			return &engine.ConfigError{File: c.file, What: "weight_map: file " + name, Got: err.Error(), Want: "a weight file"}
		}
		if err := c.openShard(f, name); err != nil {
			return err
		}
	}
	for _, tensor := range slices.Sorted(maps.Keys(index.Map)) {
		file := index.Map[tensor]
		if sh := c.where[c.textName(tensor)]; sh == nil || sh.path() != f.show(file) {
			got := "nothing"
			if sh != nil {
				got = sh.path()
			}
			return &engine.ConfigError{File: c.file, What: "weight_map: tensor " + tensor, Got: got, Want: file + ", as the index says"}
		}
	}
	return nil
}

// openShard opens one weight file and enters its tensors.
func (c *Checkpoint) openShard(f folder, name string) error {
	sh, err := openShard(f, name)
	if err != nil {
		return err
	}
	c.shards = append(c.shards, sh)
	for _, t := range sh.header.Tensors() {
		if other := c.enter(t.Name, sh); other != nil {
			return &engine.ConfigError{File: sh.file, What: "tensor " + t.Name, Got: "a second one, beside that of " + other.path(), Want: "one"}
		}
	}
	return nil
}

// modelTensors are the tensors that a checkpoint must have.
func modelTensors(a engine.Arch) []slot {
	all := []slot{{embedName, []int{a.Vocab, a.Hidden}}, {finalNormName, []int{a.Hidden}}}
	if !a.TiedHead {
		all = append(all, slot{headName, []int{a.Vocab, a.Hidden}})
	}
	for n := range a.Layers {
		for _, s := range layerSlots(a, kindOf(a, n)) {
			all = append(all, slot{layerPrefix(n) + s.name, s.shape})
		}
		x := a.PerLayer[n].Experts
		for i := range x.Count {
			all = append(all, feedForwardSlots(layerPrefix(n)+expertPrefix(i), a.Hidden, x.Intermediate)...)
		}
	}
	return all
}
