package kernel_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/golden/kernel"
)

// Names and sizes as the format is documented.
func TestGemma4(t *testing.T) {
	inv := kernel.Gemma4()
	require.Equal(t, 840, inv.Len())
	global := map[int]bool{5: true, 11: true, 17: true, 23: true, 29: true}
	seen := map[string]bool{}
	for i := range inv.Len() {
		at := inv.Key(i)
		require.Equal(t, i, inv.Index(at))
		heads, width := inv.Shape(at)
		want := map[[2]bool]int{{false, false}: 16 * 256, {false, true}: 8 * 256, {true, false}: 32 * 256, {true, true}: 4 * 256}[[2]bool{global[at.Layer], at.Op == k || at.Op == v}]
		require.Equal(t, want, heads*width, "%s", inv.Coordinates(at))
		seen[inv.FileOf(at)] = true
	}
	require.Len(t, seen, 840)
	for _, name := range []string{"hf2q_q_normed_layer00_pos22.bin", "hf2q_k_normed_layer05_pos26.bin", "hf2q_v_normed_layer17_pos41.bin", "hf2q_sdpa_out_layer29_pos51.bin"} {
		assert.True(t, seen[name], name)
	}
	assert.Equal(t, "layer=0 pos=1 op=k_normed", inv.Coordinates(inv.Key(1)))
	assert.Equal(t, kernel.Key{Position: 1}, inv.Key(4), "positions before layers")
	assert.Equal(t, kernel.Key{Layer: 1}, inv.Key(28))
}

const inventoryFile = `{
  "name": "tiny", "family": "x",
  "layer_types": {"b": {"heads": 4, "kv_heads": 2, "head_dim": 8}, "a": {"heads": 2, "kv_heads": 1, "head_dim": 16}},
  "layers": 7, "pattern": ["b", "b", "a"],
  "positions": {"first_pos": 9, "steps": [1, 3, 110]},
  "ops": [{"name": "key", "label": "k", "kv": true}, {"name": "out"}, {"name": "gate"}],
  "bound_op": "out", "progression_step": 3, "late_layer": 2,
  "file": "{op}/l{layer}-p{pos:02}-s{step:04}.bin"
}`

func TestParseInventory(t *testing.T) {
	inv, err := kernel.Parse("x.json", []byte(inventoryFile))
	require.NoError(t, err)
	assert.Equal(t, "tiny", inv.Name)
	assert.Equal(t, []int{1, 1, 0, 1, 1, 0, 1}, inv.Layers)
	assert.Equal(t, []kernel.LayerType{{Name: "a", Heads: 2, KVHeads: 1, HeadDim: 16}, {Name: "b", Heads: 4, KVHeads: 2, HeadDim: 8}}, inv.Types)
	assert.Equal(t, []kernel.Position{{Step: 1, Pos: 9}, {Step: 3, Pos: 11}, {Step: 110, Pos: 118}}, inv.Positions)
	assert.Equal(t, []kernel.Op{{Name: "key", Label: "k", KV: true}, {Name: "out", Label: "out"}, {Name: "gate", Label: "gate"}}, inv.Ops)
	assert.Equal(t, 1, inv.BoundOp)
	assert.Equal(t, 1, inv.Progression)
	assert.Equal(t, 2, inv.LateLayer)
	assert.Equal(t, "key/l6-p118-s0110.bin", inv.FileOf(kernel.Key{Layer: 6, Position: 2}))
	assert.Equal(t, "out/l0-p09-s0001.bin", inv.FileOf(kernel.Key{Op: 1}))

	inv, err = kernel.Parse("y.json", []byte(`{"layer_types": {"a": {"heads": 1, "kv_heads": 1, "head_dim": 1}}, "layers": 5, "positions": {"first_pos": 3, "steps": [1, 2, 4]}}`))
	require.NoError(t, err)
	assert.Equal(t, "y.json", inv.Name)
	assert.Equal(t, kernel.StandardOps(), inv.Ops)
	assert.Equal(t, 3, inv.BoundOp)
	assert.Equal(t, 1, inv.Progression, "the second position, without a step 5")
	assert.Equal(t, 2, inv.LateLayer)
	assert.Equal(t, "hf2q_q_normed_layer04_pos06.bin", inv.FileOf(kernel.Key{Layer: 4, Position: 2}))
}

func TestParseInventoryRefuses(t *testing.T) {
	replaced := func(old, new string) string {
		require.Contains(t, inventoryFile, old)
		return strings.Replace(inventoryFile, old, new, 1)
	}
	for name, tc := range map[string]struct{ text, want string }{
		"no JSON":                     {"{", "unexpected end"},
		"a list":                      {"[]", "cannot unmarshal"},
		"an unknown key":              {replaced(`"family"`, `"famly"`), `unknown field "famly"`},
		"an unknown type":             {replaced(`["b", "b", "a"]`, `["b", "c"]`), `pattern: got "c"`},
		"no pattern of two types":     {replaced(`, "pattern": ["b", "b", "a"]`, ``), "pattern: got none"},
		"no layers":                   {replaced(`"layers": 7`, `"layers": 0`), "0 layers"},
		"negative layers":             {replaced(`"layers": 7`, `"layers": -7`), "layers: got -7"},
		"a terabyte of layers":        {replaced(`"layers": 7`, `"layers": 1000000000000`), "layers: got 1000000000000"},
		"no positions":                {replaced(`[1, 3, 110]`, `[]`), "progression_step: got 3"},
		"positions that don't ascend": {replaced(`[1, 3, 110]`, `[1, 3, 3]`), "positions[2]: got step 3 at 11"},
		"no heads":                    {replaced(`"heads": 4`, `"heads": 0`), "shape of b"},
		"huge heads":                  {replaced(`"heads": 4`, `"heads": 9000000000`), "shape of b"},
		"an absurd product":           {replaced(`"heads": 4, "kv_heads": 2, "head_dim": 8`, `"heads": 2000000000, "kv_heads": 2, "head_dim": 2000000000`), "at most 2147483647 values"},
		"an absurd product of KV":     {replaced(`"heads": 4, "kv_heads": 2, "head_dim": 8`, `"heads": 1, "kv_heads": 2, "head_dim": 2000000000`), "at most 2147483647 values"},
		"heads beyond int64":          {replaced(`"heads": 4`, `"heads": 9223372036854775808`), "cannot unmarshal"},
		"an escape in an op":          {replaced(`"gate"`, `"o\u001b[31mut"`), `text: got "o\x1b[31mut", want printable`},
		"an escape in the name":       {replaced(`"tiny"`, `"o\u001b[31mut"`), `kernel: inventory "o\x1b[31mut": text: got "o\x1b[31mut", want printable`},
		"a line break in a label":     {replaced(`"label": "k"`, `"label": "k\nk"`), `text: got "k\nk"`},
		"a turn of direction":         {replaced(`"label": "k"`, `"label": "\u202ek"`), `text: got "\u202ek"`},
		"a bell in a type":            {strings.ReplaceAll(inventoryFile, `"b"`, `"\u0007"`), `text: got "\a"`},
		"an escape in a file":         {replaced(`l{layer}`, `\u001b{layer}`), `text: got`},
		"an op twice":                 {replaced(`"gate"`, `"out"`), `op: got "out"`},
		"an unknown bound op":         {replaced(`"bound_op": "out"`, `"bound_op": "up"`), `bound_op: got "up"`},
		"an unknown step":             {replaced(`"progression_step": 3`, `"progression_step": 2`), "progression_step: got 2"},
		"a file without the op":       {replaced(`{op}/l`, `l`), "{op} in it"},
		"a file without the layer":    {replaced(`l{layer}-`, ``), "{layer} in it"},
		"a file without the position": {replaced(`p{pos:02}-s{step:04}`, ``), "{pos} or {step} in it"},
		"an unknown field":            {replaced(`{pos:02}`, `{head}`), "got {head, want {op}"},
		"a width of an op":            {replaced(`{op}`, `{op:02}`), "got {op:02"},
		"an open brace":               {replaced(`.bin`, `{`), "got {, want {op}"},
		"a closing brace alone":       {replaced(`.bin`, `}`), "closing brace"},
		"an archive without a name":   {replaced(`.bin`, `.npz`), "a name in .npz"},
		"a name without an archive":   {replaced(`"file"`, `"tensor": "x", "file"`), "a name in .npz"},
	} {
		_, err := kernel.Parse("x.json", []byte(tc.text))
		assert.ErrorContains(t, err, tc.want, name)
		if err != nil {
			assert.True(t, strings.HasPrefix(err.Error(), "kernel: "), "%v", err)
		}
	}
}

// Two tensors under one name would be one compared twice, and one never.
func TestInventoryNamesAreDistinct(t *testing.T) {
	ops := func(names ...string) []kernel.Op {
		var out []kernel.Op
		for _, n := range names {
			out = append(out, kernel.Op{Name: n, Label: n})
		}
		return out
	}
	for _, tc := range []struct {
		file, tensor string
		layers       int
		steps        []int
		ops          []kernel.Op
		want         string // "" for distinct names
	}{
		{"f{layer}{pos}.bin", "", 12, []int{1, 11}, ops("q"), `got "f111.bin" for both layer=1 pos=11 op=q and layer=11 pos=1 op=q`},
		{"f{layer:02}{pos:02}.bin", "", 12, []int{1, 11}, ops("q"), ""},
		{"f{layer:02}{pos:02}.bin", "", 12, []int{1, 110}, ops("q"), ""}, // 110 is no 1 behind 10
		{"f{layer}-{pos}.bin", "", 12, []int{1, 11}, ops("q"), ""},
		{"f{layer}1{pos}.bin", "", 12, []int{1, 11}, ops("q"), `got "f1111.bin" for both`},
		{"{op}{layer}.bin", "", 12, []int{1}, ops("q", "q1"), `got "q10.bin" for both`},
		{"{op}{layer}.bin", "", 12, []int{1}, ops("q", "k"), ""},
		{"{op}_{layer}_{pos}.bin", "", 3, []int{1, 2}, ops("q", "q_1"), ""},
		{"{op}_{layer}.bin", "", 3, []int{1}, ops("q", "q_1"), ""},
		{"x{layer}.npz", "{pos}{op}", 12, []int{1, 11}, ops("q", "1q"), `for both layer=0 pos=1 op=1q and layer=0 pos=11 op=q`},
		{"x{layer}.npz", "{pos}{op}", 12, []int{1, 11}, ops("q", "k"), ""},
		{"{op}{layer}.bin", "", 1 << 16, []int{1, 2, 3, 4, 5}, ops("q"), "{pos} or {step} in it"},
		{"{layer}{op}{pos}.bin", "", 1 << 16, []int{1, 2, 3, 4, 5}, ops("1"), "want text between the fields"},
		{"{op}.bin", "", 1, []int{1}, ops("../q"), `op: got "../q", want a name that stays`},
		{"{op}.bin", "", 1, []int{1}, ops("q", "./q"), `op: got "./q"`},
	} {
		inv := &kernel.Inventory{Name: "x", Types: []kernel.LayerType{{Name: "a", Heads: 1, KVHeads: 1, HeadDim: 1}}, Layers: make([]int, tc.layers),
			Ops: tc.ops, Positions: kernel.Steps(1, tc.steps...), File: tc.file, Tensor: tc.tensor}
		err := inv.Validate()
		if tc.want != "" {
			assert.ErrorContains(t, err, tc.want, tc.file)
			continue
		}
		if assert.NoError(t, err, tc.file) && tc.tensor == "" {
			seen := map[string]bool{}
			for i := range inv.Len() {
				seen[inv.FileOf(inv.Key(i))] = true
			}
			assert.Len(t, seen, inv.Len(), tc.file)
		}
	}
}

func TestLoad(t *testing.T) {
	inv, err := kernel.Load("gemma4-30")
	require.NoError(t, err)
	require.Equal(t, 840, inv.Len())
	path := filepath.Join(t.TempDir(), "inv.json")
	require.NoError(t, os.WriteFile(path, []byte(inventoryFile), 0o666))
	inv, err = kernel.Load(path)
	require.NoError(t, err)
	require.Equal(t, "tiny", inv.Name)
	_, err = kernel.Load("gemma4-31")
	require.ErrorContains(t, err, "no built-in one (gemma4-30), and no file")
	_, err = kernel.Load(t.TempDir())
	require.Error(t, err)
}

// Shapes as transformers' Gemma4TextAttention, Qwen2Attention and
// Gemma3Attention project them.
func TestFromConfig(t *testing.T) {
	type shape = [3]int // heads, KV heads, width
	for _, tc := range []struct {
		name, config  string
		layers        int
		local, global shape
		globals       []int
	}{
		{"Gemma 4, keys are values", `{"model_type": "gemma4", "text_config": {"model_type": "gemma4_text", "num_hidden_layers": 30, "hidden_size": 2816, "num_attention_heads": 16,
			"num_key_value_heads": 8, "head_dim": 256, "global_head_dim": 512, "num_global_key_value_heads": 2, "attention_k_eq_v": true}}`,
			30, shape{16, 8, 256}, shape{16, 2, 512}, []int{5, 11, 17, 23, 29}},
		{"Gemma 4, keys aren't", `{"model_type": "gemma4_text", "num_hidden_layers": 3, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256, "global_head_dim": 512,
			"num_global_key_value_heads": 1, "layer_types": ["sliding_attention", "sliding_attention", "full_attention"]}`,
			3, shape{8, 2, 256}, shape{8, 2, 512}, []int{2}},
		// As transformers: "Last layer must use `full_attention`".
		{"Gemma 4, the last layer by layer_types", `{"model_type": "gemma4_text", "num_hidden_layers": 3, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256, "global_head_dim": 512,
			"num_kv_shared_layers": 0, "layer_types": ["full_attention", "sliding_attention", "sliding_attention"]}`,
			3, shape{8, 2, 256}, shape{8, 2, 512}, []int{0, 2}},
		{"Gemma 4, the last layer by the pattern", `{"model_type": "gemma4_text", "num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256, "global_head_dim": 512}`,
			8, shape{8, 2, 256}, shape{8, 2, 512}, []int{5, 7}},
		{"another family's last layer", `{"model_type": "x", "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256, "global_head_dim": 512,
			"layer_types": ["full_attention", "sliding_attention"]}`,
			2, shape{8, 2, 256}, shape{8, 2, 512}, []int{0}},
		{"Qwen2", `{"model_type": "qwen2", "num_hidden_layers": 4, "hidden_size": 896, "num_attention_heads": 14, "num_key_value_heads": 2}`,
			4, shape{14, 2, 64}, shape{14, 2, 64}, []int{0, 1, 2, 3}},
		{"Gemma 3, the pattern as a number", `{"model_type": "gemma3_text", "num_hidden_layers": 7, "hidden_size": 1152, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256, "sliding_window_pattern": 3}`,
			7, shape{4, 1, 256}, shape{4, 1, 256}, []int{2, 5}},
	} {
		inv, err := kernel.Parse("config.json", []byte(tc.config))
		require.NoError(t, err, tc.name)
		require.Len(t, inv.Layers, tc.layers, tc.name)
		global := map[int]bool{}
		for _, l := range tc.globals {
			global[l] = true
		}
		for l := range inv.Layers {
			want := tc.local
			if global[l] {
				want = tc.global
			}
			qh, qw := inv.Shape(kernel.Key{Layer: l, Op: q})
			kh, kw := inv.Shape(kernel.Key{Layer: l, Op: k})
			require.Equal(t, [4]int{want[0], want[2], want[1], want[2]}, [4]int{qh, qw, kh, kw}, "%s: layer %d", tc.name, l)
		}
		require.Equal(t, kernel.Gemma4().Positions, inv.Positions)
	}
	for name, text := range map[string]string{
		"no heads":           `{"num_hidden_layers": 3}`,
		"no layers":          `{"text_config": {"num_attention_heads": 3}}`,
		"types don't match":  `{"num_hidden_layers": 3, "num_attention_heads": 1, "head_dim": 2, "layer_types": ["full_attention"]}`,
		"an unknown type":    `{"num_hidden_layers": 1, "num_attention_heads": 1, "head_dim": 2, "layer_types": ["linear_attention"]}`,
		"no width":           `{"num_hidden_layers": 1, "num_attention_heads": 1}`,
		"a pattern of 0":     `{"num_hidden_layers": 1, "num_attention_heads": 1, "head_dim": 2, "sliding_window_pattern": 0}`,
		"Gemma 4 by default": `{"model_type": "gemma4_text", "num_hidden_layers": 6, "num_attention_heads": 8, "head_dim": 256}`,
		"huge":               `{"num_hidden_layers": 100000000000, "num_attention_heads": 8, "head_dim": 256}`,
	} {
		_, err := kernel.Parse("config.json", []byte(text))
		assert.Error(t, err, name)
	}
}

func TestFromConfigRefusesWhatItCannotSay(t *testing.T) {
	const start = `{"model_type": "gemma4_text", "num_hidden_layers": 6, "num_attention_heads": 8, "head_dim": 256, "global_head_dim": 512, `
	for config, want := range map[string]string{
		start + `"num_kv_shared_layers": 2}`:                                               "kernel: config config.json: num_kv_shared_layers: got 2, want 0: layers that share",
		start + `"sliding_window_pattern": 3}`:                                             "sliding_window_pattern: got 3, want 6, or layer_types",
		`{"model_type": "gemma4", "text_config": ` + start + `"num_kv_shared_layers": 2}}`: "num_kv_shared_layers: got 2",
	} {
		_, err := kernel.Parse("config.json", []byte(config))
		assert.ErrorContains(t, err, want)
	}
}

func TestWithPositions(t *testing.T) {
	inv, err := kernel.Gemma4().WithPositions(kernel.Steps(100, 2, 4, 8))
	require.NoError(t, err)
	assert.Equal(t, 360, inv.Len())
	assert.Equal(t, 1, inv.Progression)
	assert.Equal(t, "hf2q_q_normed_layer00_pos107.bin", inv.FileOf(kernel.Key{Position: 2}))
	assert.Equal(t, 840, kernel.Gemma4().Len())
	_, err = kernel.Gemma4().WithPositions(nil)
	assert.ErrorContains(t, err, "0 positions")
	_, err = kernel.Gemma4().WithPositions(kernel.Steps(1, make([]int, 3_000_000)...))
	assert.ErrorContains(t, err, "tensors: got 3.6e+08, want at most 268435456")
	_, err = kernel.Gemma4().WithPositions(kernel.Steps(-5, 1))
	assert.ErrorContains(t, err, "not negative")
}

func FuzzParseInventory(f *testing.F) {
	f.Add([]byte(inventoryFile))
	f.Add([]byte(`{"num_hidden_layers": 3, "num_attention_heads": 1, "head_dim": 2, "layer_types": ["full_attention"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		inv, err := kernel.Parse("x", data)
		if err != nil {
			return
		}
		for _, i := range []int{0, inv.Len() / 2, inv.Len() - 1} {
			at := inv.Key(i)
			heads, width := inv.Shape(at)
			if inv.Index(at) != i || heads <= 0 || width <= 0 || inv.FileOf(at) == "" && inv.File != "" {
				t.Fatalf("tensor %d: %+v, %d x %d, %q", i, at, heads, width, inv.FileOf(at))
			}
		}
	})
}
