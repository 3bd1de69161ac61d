package kernel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// inventoryJSON is the file form of an inventory.
type inventoryJSON struct {
	Name       string                   `json:"name"`
	Family     string                   `json:"family"`
	LayerTypes map[string]layerTypeJSON `json:"layer_types"`
	// Layers is how many there are, Pattern their types, repeated.
	Layers    int           `json:"layers"`
	Pattern   []string      `json:"pattern"`
	Positions positionsJSON `json:"positions"`
	Ops       []opJSON      `json:"ops"`
	BoundOp   string        `json:"bound_op"`
	// ProgressionStep is a decode step.
	ProgressionStep *int   `json:"progression_step"`
	LateLayer       *int   `json:"late_layer"`
	File            string `json:"file"`
	Tensor          string `json:"tensor"`
}

type layerTypeJSON struct {
	Heads   int `json:"heads"`
	KVHeads int `json:"kv_heads"`
	HeadDim int `json:"head_dim"`
}

type positionsJSON struct {
	// FirstPos is the sequence position of decode step 1.
	FirstPos int   `json:"first_pos"`
	Steps    []int `json:"steps"`
}

type opJSON struct {
	Name  string `json:"name"`
	Label string `json:"label"`
	KV    bool   `json:"kv"`
}

// maxLayers is far beyond any model.
const maxLayers = 1 << 16

// maxInventoryFile is far beyond any inventory or configuration.
const maxInventoryFile = 16 << 20

// Load returns a built-in inventory by its name, or reads one from a JSON file:
// an inventory, or the config.json of a checkpoint ([FromConfig]).
func Load(nameOrFile string) (*Inventory, error) {
	if builtIn := Gemma4(); nameOrFile == builtIn.Name {
		return builtIn, nil
	}
	f, err := os.Open(nameOrFile)
	if err != nil {
		return nil, fmt.Errorf("kernel: inventory %s: no built-in one (%s), and no file: %w", nameOrFile, Gemma4().Name, err)
	}
	defer func() { _ = f.Close() }() // only read
	data, err := io.ReadAll(io.LimitReader(f, maxInventoryFile+1))
	if err != nil {
		return nil, fmt.Errorf("kernel: inventory %s: %w", nameOrFile, err)
	}
	if len(data) > maxInventoryFile {
		return nil, fmt.Errorf("kernel: inventory %s: got more than %d bytes, want a small JSON file", nameOrFile, maxInventoryFile)
	}
	return Parse(nameOrFile, data)
}

// Parse reads an inventory, or a checkpoint's configuration; name stands for the
// file in errors.
func Parse(name string, data []byte) (*Inventory, error) {
	if dumpfmt.HasBOM(data) {
		return nil, fmt.Errorf("kernel: inventory %s: got a byte order mark, want a JSON object", name)
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(data, &keys); err != nil {
		return nil, fmt.Errorf("kernel: inventory %s: %w", name, err)
	}
	if keys["num_hidden_layers"] != nil || keys["text_config"] != nil {
		return FromConfig(name, data)
	}
	var f inventoryJSON
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return nil, fmt.Errorf("kernel: inventory %s: %w", name, err)
	}
	if f.Name == "" {
		f.Name = dumpfmt.Printable(name)
	}
	inv := &Inventory{Name: f.Name, Family: f.Family, File: f.File, Tensor: f.Tensor, Positions: Steps(f.Positions.FirstPos, f.Positions.Steps...), Ops: StandardOps()}
	if f.File == "" {
		inv.File = standardFile
	}
	index := map[string]int{}
	for _, n := range slices.Sorted(maps.Keys(f.LayerTypes)) {
		t := f.LayerTypes[n]
		index[n] = len(inv.Types)
		inv.Types = append(inv.Types, LayerType{n, t.Heads, t.KVHeads, t.HeadDim})
	}
	if f.Layers < 0 || f.Layers > maxLayers {
		return nil, fmt.Errorf("kernel: inventory %s: layers: got %d, want 1 to %d", name, f.Layers, maxLayers)
	}
	if len(f.Pattern) == 0 && len(inv.Types) == 1 {
		f.Pattern = []string{inv.Types[0].Name}
	}
	for i := range f.Layers {
		if len(f.Pattern) == 0 {
			return nil, fmt.Errorf("kernel: inventory %s: pattern: got none, want the type of each layer", name)
		}
		n := f.Pattern[i%len(f.Pattern)]
		t, ok := index[n]
		if !ok {
			return nil, fmt.Errorf("kernel: inventory %s: pattern: got %q, want names of layer_types", name, n)
		}
		inv.Layers = append(inv.Layers, t)
	}
	if f.Ops != nil {
		inv.Ops = nil
		for _, op := range f.Ops {
			if op.Label == "" {
				op.Label = op.Name
			}
			inv.Ops = append(inv.Ops, Op(op))
		}
	}
	inv.BoundOp = max(0, len(inv.Ops)-1)
	if f.BoundOp != "" {
		if inv.BoundOp = slices.IndexFunc(inv.Ops, func(op Op) bool { return op.Name == f.BoundOp }); inv.BoundOp < 0 {
			return nil, fmt.Errorf("kernel: inventory %s: bound_op: got %q, want an op", name, f.BoundOp)
		}
	}
	inv.Progression = progression(inv.Positions, 5)
	if f.ProgressionStep != nil {
		if inv.Progression = slices.IndexFunc(inv.Positions, func(p Position) bool { return p.Step == *f.ProgressionStep }); inv.Progression < 0 {
			return nil, fmt.Errorf("kernel: inventory %s: progression_step: got %d, want a decode step", name, *f.ProgressionStep)
		}
	}
	inv.LateLayer = len(inv.Layers) / 2
	if f.LateLayer != nil {
		inv.LateLayer = *f.LateLayer
	}
	return inv, inv.Validate()
}

// configJSON is what a checkpoint's config.json tells about attention.
type configJSON struct {
	ModelType     string      `json:"model_type"`
	Layers        int         `json:"num_hidden_layers"`
	Hidden        int         `json:"hidden_size"`
	Heads         int         `json:"num_attention_heads"`
	KVHeads       *int        `json:"num_key_value_heads"`
	HeadDim       *int        `json:"head_dim"`
	LayerTypes    []string    `json:"layer_types"`
	Pattern       *int        `json:"sliding_window_pattern"`
	GlobalKVHeads *int        `json:"num_global_key_value_heads"`
	GlobalHeadDim *int        `json:"global_head_dim"`
	AttentionKEqV bool        `json:"attention_k_eq_v"`
	SharedLayers  int         `json:"num_kv_shared_layers"`
	TextConfig    *configJSON `json:"text_config"`
}

const (
	sliding = "sliding_attention"
	full    = "full_attention"
)

// FromConfig derives an inventory from the config.json of a Hugging Face
// checkpoint: layers, their types, heads and widths. Positions, ops and file names
// aren't in it: they are those of gemma4-30 ([Inventory.WithPositions] changes the
// first).
//
// Global layers of Gemma 4 have heads of global_head_dim, and, where keys are
// also the values (attention_k_eq_v), num_global_key_value_heads of them. Source:
// transformers, modeling_gemma4.py, Gemma4TextAttention.
func FromConfig(name string, data []byte) (*Inventory, error) {
	var c configJSON
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("kernel: config %s: %w", name, err)
	}
	if c.TextConfig != nil {
		family := c.ModelType
		c = *c.TextConfig
		if c.ModelType == "" {
			c.ModelType = family
		}
	}
	bad := func(what string, got, want any) error {
		return fmt.Errorf("kernel: config %s: %s: got %v, want %v", name, what, got, want)
	}
	if c.Layers <= 0 || c.Layers > maxLayers || c.Heads <= 0 {
		return nil, bad("size", fmt.Sprintf("%d layers, %d heads", c.Layers, c.Heads), "num_hidden_layers and num_attention_heads")
	}
	if c.SharedLayers != 0 {
		return nil, bad("num_kv_shared_layers", c.SharedLayers,
			"0: layers that share keys and values have no k and v of their own; an inventory file with other ops can leave them out")
	}
	gemma4 := strings.HasPrefix(c.ModelType, "gemma4")
	or := func(p *int, otherwise int) int {
		if p == nil {
			return otherwise
		}
		return *p
	}
	local := LayerType{Name: sliding, Heads: c.Heads, KVHeads: or(c.KVHeads, c.Heads), HeadDim: or(c.HeadDim, c.Hidden/c.Heads)}
	global := local
	global.Name = full
	if c.AttentionKEqV {
		global.KVHeads = or(c.GlobalKVHeads, local.KVHeads)
	}
	if d := or(c.GlobalHeadDim, 0); d != 0 {
		global.HeadDim = d
	} else if gemma4 && c.GlobalHeadDim == nil {
		return nil, bad("global_head_dim", "none", "a width: its default depends on the version of transformers")
	}
	types := c.LayerTypes
	if types == nil {
		every := or(c.Pattern, 1)
		if gemma4 {
			every = 6 // transformers reads no pattern here
			if c.Pattern != nil && *c.Pattern != every {
				return nil, bad("sliding_window_pattern", *c.Pattern, "6, or layer_types: transformers doesn't read it for Gemma 4")
			}
		}
		if every <= 0 {
			return nil, bad("sliding_window_pattern", every, "a positive number")
		}
		for i := range c.Layers {
			types = append(types, map[bool]string{true: full, false: sliding}[(i+1)%every == 0])
		}
	}
	if len(types) != c.Layers {
		return nil, bad("layer_types", fmt.Sprintf("%d", len(types)), fmt.Sprintf("%d, as num_hidden_layers", c.Layers))
	}
	inv := &Inventory{Name: dumpfmt.Printable(name), Family: c.ModelType, Types: []LayerType{local, global}, Ops: StandardOps(), BoundOp: 3,
		Positions: Gemma4().Positions, Progression: Gemma4().Progression, LateLayer: c.Layers / 2, File: standardFile}
	for i, t := range types {
		if gemma4 && i == len(types)-1 && t == sliding {
			t = full
		}
		switch t {
		case sliding:
			inv.Layers = append(inv.Layers, 0)
		case full:
			inv.Layers = append(inv.Layers, 1)
		default:
			return nil, bad(fmt.Sprintf("layer_types[%d]", i), fmt.Sprintf("%q", t), sliding+" or "+full)
		}
	}
	return inv, inv.Validate()
}
