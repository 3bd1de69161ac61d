package kernel

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// Inventory says which tensors a comparison consists of.
type Inventory struct {
	// Name is the inventory's own, Family the kind of model.
	Name, Family string
	// Types are the kinds of attention layers, Layers the type of each layer as
	// an index into Types.
	Types  []LayerType
	Layers []int
	// Ops are the tensors of a layer and position, in the order of computation:
	// at one place, the first one in this order is the first breach.
	Ops []Op
	// Positions ascend in both fields.
	Positions []Position
	// BoundOp is the op that the kernel bound holds for, as an index into Ops.
	BoundOp int
	// Progression is the position that the per-layer table shows, as an index.
	Progression int
	// LateLayer is the last layer whose breach, if it is the only op's, needs no
	// drill-down.
	LateLayer int
	// File is where a tensor lies: a relative path with {op}, {layer}, {pos} and
	// {step}, the numbers with an optional width as in {layer:02}. Its extension
	// is the format: .npy, .npz, .safetensors, else raw float32. Tensor is its
	// name inside an .npz or .safetensors file, with the same fields.
	File, Tensor string

	file, tensor pattern // compiled by Validate
}

// LayerType is the shape of a kind of attention layer.
type LayerType struct {
	Name string
	// Heads of queries and of the output, KVHeads of keys and values, and the
	// width of each head.
	Heads, KVHeads, HeadDim int
}

// Op is one tensor of a layer: its name in file names, a short label for tables,
// and whether it has the heads of keys and values.
type Op struct {
	Name, Label string
	KV          bool
}

// Position is a place in the sequence: decode step Step (counted from 1) is at
// sequence position Pos.
type Position struct {
	Step, Pos int
}

// Key names a tensor by indices into an inventory.
type Key struct {
	Layer, Position, Op int
}

// Gemma4 is the built-in inventory gemma4-30: 30 layers of Gemma 4, every sixth
// one global, seven decode steps behind a prompt of 22 tokens.
func Gemma4() *Inventory {
	inv := &Inventory{
		Name: "gemma4-30", Family: "gemma4",
		Types:       []LayerType{{"local", 16, 8, 256}, {"global", 32, 4, 256}},
		Layers:      make([]int, 30),
		Ops:         StandardOps(),
		Positions:   Steps(22, 1, 5, 10, 15, 20, 25, 30),
		BoundOp:     3,
		Progression: 1,
		LateLayer:   15,
		File:        standardFile,
	}
	for i := 5; i < len(inv.Layers); i += 6 {
		inv.Layers[i] = 1
	}
	return inv.must()
}

const standardFile = "hf2q_{op}_layer{layer:02}_pos{pos:02}.bin"

// StandardOps are q, k, v after their norms, and the output of attention.
func StandardOps() []Op {
	return []Op{{"q_normed", "q", false}, {"k_normed", "k", true}, {"v_normed", "v", true}, {"sdpa_out", "sdpa", false}}
}

// Steps are decode steps, the first of which is at sequence position first.
func Steps(first int, steps ...int) []Position {
	out := make([]Position, len(steps))
	for i, s := range steps {
		out[i] = Position{Step: s, Pos: first + s - 1}
	}
	return out
}

// WithPositions returns the same inventory at other positions. The per-layer
// table is at decode step 5 where there is one, else at the second position.
func (inv *Inventory) WithPositions(positions []Position) (*Inventory, error) {
	out := *inv
	out.Positions = positions
	out.Progression = progression(positions, 5)
	return &out, out.Validate()
}

// progression is the index of the step, or of the second position, or the first.
func progression(positions []Position, step int) int {
	if i := slices.IndexFunc(positions, func(p Position) bool { return p.Step == step }); i >= 0 {
		return i
	}
	return min(1, max(0, len(positions)-1))
}

func (inv *Inventory) must() *Inventory {
	if err := inv.Validate(); err != nil {
		panic(err) // a built-in one
	}
	return inv
}

// maxTensors bounds an inventory, and so what a mistyped one makes a run look for.
const maxTensors = 1 << 28

// maxValues bounds a tensor, far beyond any at one position; four times as many
// bytes don't overflow.
const maxValues = math.MaxInt32

// Validate checks the inventory; it has to be called after a change, before use.
func (inv *Inventory) Validate() error {
	bad := func(what string, got, want any) error {
		return fmt.Errorf("kernel: inventory %s: %s: got %v, want %v", dumpfmt.Printable(inv.Name), what, got, want)
	}
	if len(inv.Types) == 0 || len(inv.Layers) == 0 || len(inv.Ops) == 0 || len(inv.Positions) == 0 {
		return bad("size", fmt.Sprintf("%d layer types, %d layers, %d ops, %d positions", len(inv.Types), len(inv.Layers), len(inv.Ops), len(inv.Positions)),
			"at least one of each")
	}
	if n := float64(len(inv.Layers)) * float64(len(inv.Ops)) * float64(len(inv.Positions)); n > maxTensors {
		return bad("tensors", n, fmt.Sprintf("at most %d", maxTensors))
	}
	for _, s := range append(inv.words(), inv.File, inv.Tensor) {
		if dumpfmt.Printable(s) != s {
			return bad("text", fmt.Sprintf("%q", s), "printable characters")
		}
	}
	names := map[string]bool{}
	for _, t := range inv.Types {
		if t.Name == "" || names[t.Name] {
			return bad("layer type", fmt.Sprintf("%q", t.Name), "names, each once")
		}
		names[t.Name] = true
		if min(t.Heads, t.KVHeads, t.HeadDim) <= 0 || max(t.Heads, t.KVHeads) > maxValues/t.HeadDim {
			return bad("shape of "+t.Name, fmt.Sprintf("%d heads, %d KV heads, width %d", t.Heads, t.KVHeads, t.HeadDim),
				fmt.Sprintf("positive numbers, and at most %d values", maxValues))
		}
	}
	for i, t := range inv.Layers {
		if t < 0 || t >= len(inv.Types) {
			return bad(fmt.Sprintf("type of layer %d", i), t, fmt.Sprintf("an index below %d", len(inv.Types)))
		}
	}
	ops := map[string]bool{}
	for _, op := range inv.Ops {
		if op.Name == "" || ops[op.Name] || op.Label == "" {
			return bad("op", fmt.Sprintf("%q, label %q", op.Name, op.Label), "names, each once, with a label")
		}
		ops[op.Name] = true
	}
	for i, p := range inv.Positions {
		if p.Step < 0 || p.Pos < 0 || i > 0 && (p.Step <= inv.Positions[i-1].Step || p.Pos <= inv.Positions[i-1].Pos) {
			return bad(fmt.Sprintf("positions[%d]", i), fmt.Sprintf("step %d at %d", p.Step, p.Pos), "ascending, not negative")
		}
	}
	if inv.BoundOp < 0 || inv.BoundOp >= len(inv.Ops) {
		return bad("bound op", inv.BoundOp, "an op")
	}
	if inv.Progression < 0 || inv.Progression >= len(inv.Positions) {
		return bad("progression", inv.Progression, "a position")
	}
	var err, err2 error
	if inv.file, err = parsePattern(inv.File); err == nil {
		inv.tensor, err2 = parsePattern(inv.Tensor)
	}
	if err = errors.Join(err, err2); err != nil {
		return fmt.Errorf("kernel: inventory %s: %w", inv.Name, err)
	}
	if container := inv.format().container(); container != (inv.Tensor != "") {
		return bad("tensor", fmt.Sprintf("%q in %q", inv.Tensor, inv.File), "a name in .npz and .safetensors files, none in others")
	}
	for _, f := range []struct {
		what   string
		needed bool
		fields []field
	}{
		{"{layer}", len(inv.Layers) > 1, []field{fieldLayer}},
		{"{op}", len(inv.Ops) > 1, []field{fieldOp}},
		{"{pos} or {step}", len(inv.Positions) > 1, []field{fieldPos, fieldStep}},
	} {
		if f.needed && !inv.file.has(f.fields) && !inv.tensor.has(f.fields) {
			return bad("file", fmt.Sprintf("%q", inv.File), f.what+" in it, so that no two tensors are one")
		}
	}
	return inv.distinct()
}

// words are the names that reports show.
func (inv *Inventory) words() []string {
	out := []string{inv.Name, inv.Family}
	for _, t := range inv.Types {
		out = append(out, t.Name)
	}
	for _, op := range inv.Ops {
		out = append(out, op.Name, op.Label)
	}
	return out
}

// Len is the number of tensors of a side.
func (inv *Inventory) Len() int { return len(inv.Layers) * len(inv.Positions) * len(inv.Ops) }

// Key is the i-th tensor, by layer, then position, then op.
func (inv *Inventory) Key(i int) Key {
	op := i % len(inv.Ops)
	i /= len(inv.Ops)
	return Key{Layer: i / len(inv.Positions), Position: i % len(inv.Positions), Op: op}
}

// Index is the place of k in that order.
func (inv *Inventory) Index(k Key) int {
	return (k.Layer*len(inv.Positions)+k.Position)*len(inv.Ops) + k.Op
}

// Shape is the shape of a tensor.
func (inv *Inventory) Shape(k Key) (heads, width int) {
	t := inv.Types[inv.Layers[k.Layer]]
	if inv.Ops[k.Op].KV {
		return t.KVHeads, t.HeadDim
	}
	return t.Heads, t.HeadDim
}

// Coordinates are a tensor's for people: "layer=3 pos=5 op=k_normed", pos
// being the decode step, as in the CSV.
func (inv *Inventory) Coordinates(k Key) string {
	return fmt.Sprintf("layer=%d pos=%d op=%s", k.Layer, inv.Positions[k.Position].Step, inv.Ops[k.Op].Name)
}
