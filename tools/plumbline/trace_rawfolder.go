package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden/trace"
)

// rawFolder is a folder of the tensors that a source's trace was made of: index.json,
// [{file, shape, dtype, tensor_sha256}], and the files it lists, raw and little-endian:
//
//	hidden_STAGE_CONDITION_SCOPE.bin         bfloat16 or float32, [tokens, width]
//	route_ids_LAYER_CONDITION_SCOPE.bin      int64 or int32, [tokens, k]
//	route_weights_LAYER_CONDITION_SCOPE.bin  float32, [tokens, k]
//
// It is a [trace.Recorded].
type rawFolder struct {
	plan    trace.Plan
	shape   trace.Shape
	hidden  map[rawPlace]trace.Hidden
	ids     map[rawPlace][][]int
	weights map[rawPlace]trace.Routes // without ids
	// Tensors is how many files there are, Hashed how many have a hash, which held.
	Tensors, Hashed int
}

// rawPlace is a stage or a gate, a condition and a scope, by index.
type rawPlace struct{ place, condition, scope int }

var _ trace.Recorded = (*rawFolder)(nil)

// rawError says that a folder of recorded tensors is broken.
type rawError struct{ file, what, got, want string }

func (e *rawError) Error() string {
	return fmt.Sprintf("recorded tensors: %s: %s: got %s, want %s", dumpfmt.Printable(e.file), e.what, dumpfmt.Printable(e.got), e.want)
}

// rawEntry is a line of index.json.
type rawEntry struct {
	File   string  `json:"file"`
	Shape  []int   `json:"shape"`
	DType  string  `json:"dtype"`
	SHA256 *string `json:"tensor_sha256"`
}

const (
	rawIndex   = "index.json"
	maxRawFile = 1 << 30
)

// readRawFolder reads and checks all of a folder.
func readRawFolder(dir string, p trace.Plan, s trace.Shape) (*rawFolder, error) {
	index := filepath.Join(dir, rawIndex)
	data, err := os.ReadFile(index)
	if err != nil {
		return nil, err
	}
	if dumpfmt.HasBOM(data) {
		return nil, &rawError{index, "JSON", "a byte order mark", "a list of {file, shape, dtype}"}
	}
	var entries []rawEntry
	if err := json.Unmarshal(data, &entries); err != nil {
		return nil, &rawError{index, "JSON", err.Error(), "a list of {file, shape, dtype}"}
	}
	if len(entries) == 0 {
		return nil, &rawError{index, "files", "none", "at least one"}
	}
	r := &rawFolder{plan: p, shape: s, hidden: map[rawPlace]trace.Hidden{}, ids: map[rawPlace][][]int{}, weights: map[rawPlace]trace.Routes{}}
	for _, e := range entries {
		if err := r.add(dir, e); err != nil {
			return nil, err
		}
	}
	for at := range r.ids {
		if w, ok := r.weights[at]; !ok || len(w.Weights) != len(r.ids[at]) {
			return nil, &rawError{index, "routes of " + r.name(at), "ids without as many weights", "both"}
		}
	}
	if len(r.ids) != len(r.weights) {
		return nil, &rawError{index, "routes", fmt.Sprintf("%d of ids, %d of weights", len(r.ids), len(r.weights)), "as many"}
	}
	return r, nil
}

func (r *rawFolder) name(at rawPlace) string {
	return fmt.Sprintf("%s, %s, %s", trace.LayerName(r.shape.Gates[at.place]), r.plan.Conditions[at.condition].Name, trace.Scopes()[at.scope])
}

// add reads one file.
func (r *rawFolder) add(dir string, e rawEntry) error {
	bad := func(what, got, want string) error { return &rawError{e.File, what, got, want} }
	kind, at, ok := r.place(e.File)
	if !ok {
		return bad("name", "neither stage nor gate, condition and scope of the trace", "as in hidden_layer_03_s0_eos_full_input.bin")
	}
	sizes := map[string]map[string]int{
		"hidden":        {string(trace.BFloat16): 2, string(trace.Float32): 4},
		"route_ids":     {"torch.int64": 8, "torch.int32": 4},
		"route_weights": {string(trace.Float32): 4},
	}
	size, ok := sizes[kind][e.DType]
	if !ok {
		return bad("dtype", e.DType, "bfloat16 or float32 rows, int64 or int32 ids, float32 weights")
	}
	width := r.shape.TopK
	if kind == "hidden" {
		width = r.shape.Hidden
	}
	if len(e.Shape) != 2 || e.Shape[0] < 1 || e.Shape[1] != width || e.Shape[0] > maxRawFile/(width*size) {
		return bad("shape", fmt.Sprint(e.Shape), fmt.Sprintf("[tokens, %d]", width))
	}
	path, want := filepath.Join(dir, e.File), int64(e.Shape[0]*width*size)
	if st, err := os.Stat(path); err != nil {
		return bad("file", err.Error(), "the tensor")
	} else if st.Size() != want {
		return bad("file", fmt.Sprintf("%d bytes", st.Size()), fmt.Sprintf("%d, as the shape says", want))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	r.Tensors++
	if e.SHA256 != nil {
		h := sha256.New()
		fmt.Fprintf(h, `{"shape":[%d,%d],"dtype":"%s"}`, e.Shape[0], e.Shape[1], e.DType)
		h.Write([]byte{0})
		h.Write(data)
		if got := hex.EncodeToString(h.Sum(nil)); got != *e.SHA256 {
			return bad("tensor_sha256", got, *e.SHA256)
		}
		r.Hashed++
	}
	again := false
	switch kind {
	case "hidden":
		_, again = r.hidden[at]
		r.hidden[at] = trace.Hidden{DType: trace.DType(e.DType), Rows: rowsOf(data, width, size, floatOf)}
	case "route_ids":
		_, again = r.ids[at]
		r.ids[at] = rowsOf(data, width, size, intOf)
	default:
		_, again = r.weights[at]
		r.weights[at] = trace.Routes{DType: trace.DType(e.DType), Weights: rowsOf(data, width, size, floatOf)}
	}
	if again {
		return bad("file", "its place a second time", "each once")
	}
	return nil
}

// place takes a file's name apart.
func (r *rawFolder) place(file string) (kind string, at rawPlace, ok bool) {
	name, isBin := strings.CutSuffix(file, ".bin")
	if !isBin || filepath.Base(file) != file {
		return "", at, false
	}
	names := r.shape.GateNames()
	for _, k := range []string{"hidden", "route_ids", "route_weights"} {
		if rest, found := strings.CutPrefix(name, k+"_"); found {
			kind, name = k, rest
			break
		}
	}
	if kind == "hidden" {
		names = r.shape.StageNames()
	}
	for scope, s := range trace.Scopes() {
		for c, condition := range r.plan.Conditions {
			if where, found := strings.CutSuffix(name, "_"+condition.Name+"_"+s); found {
				at = rawPlace{slices.Index(names, where), c, scope}
				return kind, at, kind != "" && at.place >= 0
			}
		}
	}
	return "", at, false
}

// rowsOf takes rows of values apart.
func rowsOf[T any](data []byte, width, size int, value func([]byte) T) [][]T {
	rows := make([][]T, len(data)/(width*size))
	for i := range rows {
		rows[i] = make([]T, width)
		for k := range rows[i] {
			rows[i][k] = value(data[(i*width+k)*size:][:size])
		}
	}
	return rows
}

func floatOf(b []byte) float32 {
	if len(b) == 2 {
		return math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16)
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(b))
}

func intOf(b []byte) int {
	if len(b) == 4 {
		return int(int32(binary.LittleEndian.Uint32(b)))
	}
	return int(int64(binary.LittleEndian.Uint64(b)))
}

// Hidden implements [trace.Recorded].
func (r *rawFolder) Hidden(stage, condition, scope int) (trace.Hidden, bool) {
	h, ok := r.hidden[rawPlace{stage, condition, scope}]
	return h, ok
}

// Routes implements [trace.Recorded].
func (r *rawFolder) Routes(gate, condition, scope int) (trace.Routes, bool) {
	at := rawPlace{gate, condition, scope}
	out, ok := r.weights[at]
	out.IDs = r.ids[at]
	return out, ok
}

// fullInput is the scope of all tokens.
var fullInput = slices.Index(trace.Scopes(), trace.FullInput)

// conditions are those whose routes were recorded at every gate for all tokens.
func (r *rawFolder) conditions() []int {
	var out []int
	for c := range r.plan.Conditions {
		all := true
		for g := range r.shape.Gates {
			_, ok := r.Routes(g, c, fullInput)
			all = all && ok
		}
		if all {
			out = append(out, c)
		}
	}
	return out
}

// missing is what conditions that have any file lack, by stage and gate, all tokens.
func (r *rawFolder) missing() []recordedGap {
	has := make([]bool, len(r.plan.Conditions))
	for at := range r.hidden {
		has[at.condition] = true
	}
	for at := range r.ids {
		has[at.condition] = true
	}
	out := []recordedGap{}
	look := func(kind string, names []string, there func(place, condition int) bool) {
		for place, name := range names {
			g := recordedGap{Name: name, Kind: kind}
			for c, condition := range r.plan.Conditions {
				if has[c] && !there(place, c) {
					g.Conditions = append(g.Conditions, condition.Name)
				}
			}
			if g.Conditions != nil {
				out = append(out, g)
			}
		}
	}
	look("hidden rows", r.shape.StageNames(), func(stage, c int) bool { _, ok := r.Hidden(stage, c, fullInput); return ok })
	look("routes", r.shape.GateNames(), func(gate, c int) bool { _, ok := r.Routes(gate, c, fullInput); return ok })
	return out
}
