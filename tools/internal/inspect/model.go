package inspect

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

const configFile = "config.json"

// ModelReport is what a Hugging Face model folder holds. Keys that config.json
// lacks are empty or 0.
type ModelReport struct {
	Folder string `json:"folder"`
	ModelConfig
	// Files are the *.safetensors files, by name.
	Files      []string `json:"files"`
	Tensors    int      `json:"tensors"`
	Parameters int64    `json:"parameters"`
	// DTypes counts the tensors of each type.
	DTypes map[string]int `json:"dtypes"`
}

// ModelConfig is what a config.json says about the shape; of a model that has a text
// model in it, what it says about that one.
type ModelConfig struct {
	Type   string `json:"model_type"`
	Layers int    `json:"num_hidden_layers"`
	Hidden int    `json:"hidden_size"`
	Vocab  int    `json:"vocab_size"`
}

// or fills what c lacks from the text model's own config.
func (c ModelConfig) or(text ModelConfig) ModelConfig {
	return ModelConfig{cmp.Or(c.Type, text.Type), cmp.Or(c.Layers, text.Layers), cmp.Or(c.Hidden, text.Hidden), cmp.Or(c.Vocab, text.Vocab)}
}

// IsModel reports whether dir is a Hugging Face model folder: it has a
// config.json and no engine.json, which would make it a dump folder with a case
// of that name.
func IsModel(dir string) bool {
	_, engine := os.Lstat(filepath.Join(dir, "engine.json"))
	_, config := os.Stat(filepath.Join(dir, configFile))
	return errors.Is(engine, fs.ErrNotExist) && config == nil
}

// Model looks at config.json and at the headers of the safetensors files. A
// file that is broken is a *MalformedError; whether the reference can run the
// model isn't asked.
func Model(dir string) (*ModelReport, error) {
	path := filepath.Join(dir, configFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &ModelReport{Folder: dir, Files: []string{}, DTypes: map[string]int{}}
	if err := dumpfmt.CheckJSON(path, data); err != nil {
		return nil, &MalformedError{File: path, Declared: "a model's config.json", Err: err}
	}
	if err := json.Unmarshal(data, &r.ModelConfig); err != nil {
		return nil, &MalformedError{File: path, Declared: "a model's config.json", Err: err}
	}
	var nested struct {
		Text ModelConfig `json:"text_config"`
	}
	if err := json.Unmarshal(data, &nested); err != nil {
		return nil, &MalformedError{File: path, Declared: "a model's config.json", Err: err}
	}
	r.ModelConfig = r.or(nested.Text)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.IsDir() || filepath.Ext(e.Name()) != ".safetensors" {
			continue
		}
		r.Files = append(r.Files, e.Name())
		file := filepath.Join(dir, e.Name())
		tensors, err := dumpfmt.CheckSafetensors(file)
		var sys *fs.PathError
		switch {
		case errors.As(err, &sys):
			return nil, err
		case err != nil:
			return nil, &MalformedError{File: file, Declared: Safetensors, Err: err}
		}
		for _, t := range tensors {
			r.Tensors++
			r.DTypes[string(t.DType)]++
			n := int64(1)
			for _, d := range t.Shape {
				n *= int64(d)
			}
			r.Parameters += n
		}
	}
	return r, nil
}
