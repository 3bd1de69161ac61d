package trace

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/golden/canonical"
)

// The small made-up model of testdata/record_trace.py: its rows and routes are
// drawn here as they are there.

func smallShape() Shape {
	return Shape{Layers: 3, Gates: []int{1, 2}, Hidden: 5, Experts: 6, TopK: 2}
}

var smallBoundary = map[string]int{"eos": 91, "bos": 90, "x": 7, "period": 8}

type smallSource struct {
	Source
	content  []int
	crossing int
}

var smallSources = []smallSource{
	{Source{ID: "plain/one", Domain: "plain", Text: "a b c d"}, []int{11, 12, 13, 14}, 1},
	{Source{ID: "plain/two", Domain: "plain", Text: "déjà vu"}, []int{15, 16, 11}, 0},
}

// draw is splitmix64 of a key and an index.
func draw(key, i int) uint64 {
	z := uint64(key)*0x9E3779B97F4A7C15 + uint64(i)*0xD1342543DE82EF95 + 0x2545F4914F6CDD1D
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

func (s smallSource) variants() []Variant {
	var out []Variant
	for _, c := range Standard().Conditions {
		ids := []int{smallBoundary[c.Boundary]}
		if c.System {
			ids = append(ids, 21, 22, 23)
		}
		ids = append(ids, 24)
		v := Variant{BoundaryCrossing: s.crossing}
		for i := range s.content {
			v.ContentPositions = append(v.ContentPositions, len(ids)+i)
		}
		ids = append(append(ids, s.content...), slices.Repeat([]int{25}, s.crossing)...)
		v.TokenIDs = append(ids, 26, 27)
		out = append(out, v)
	}
	return out
}

func smallRows(stage, condition int, ids []int) [][]float32 {
	var rows [][]float32
	for at, token := range ids {
		key := token
		if stage > 0 {
			key = (stage*8+condition)*1000 + at*31 + token
		}
		row := make([]float32, smallShape().Hidden)
		for i := range row {
			row[i] = float32(math.Ldexp(float64(int(draw(key, i)%255)-127)/32, stage+int(draw(key, i+100)%3)))
		}
		rows = append(rows, row)
	}
	return rows
}

func smallRoutes(layer, condition int, ids []int) Routes {
	r := Routes{DType: Float32}
	for at, token := range ids {
		shared := token == 12 || token == 14 || token == 16
		key := (layer*8+condition)*3000 + at*17 + token
		if shared {
			key = layer*77 + token
		}
		experts := []int{0, 1, 2, 3, 4, 5}
		slices.SortFunc(experts, func(a, b int) int {
			if draw(key, a) < draw(key, b) {
				return -1
			}
			return 1
		})
		experts = experts[:2]
		weights := make([]float32, 2)
		for i, e := range experts {
			weights[i] = float32(math.Ldexp(float64(draw(key, 50+e)>>40), -25))
		}
		if shared && condition >= 4 {
			slices.Reverse(experts)
			slices.Reverse(weights)
		}
		r.IDs, r.Weights = append(r.IDs, experts), append(r.Weights, weights)
	}
	return r
}

// feed gives all of a source to an accumulator.
func (s smallSource) feed(t testing.TB, a *Accumulator) *SourceTrace {
	t.Helper()
	variants := s.variants()
	require.NoError(t, a.Start(s.Source, variants, smallBoundary))
	for stage := range smallShape().Stages() {
		for c, v := range variants {
			require.NoError(t, a.Hidden(stage, c, smallRows(stage, c, v.TokenIDs)))
		}
	}
	for _, layer := range smallShape().Gates {
		for c, v := range variants {
			require.NoError(t, a.Routes(layer, c, smallRoutes(layer, c, v.TokenIDs)))
		}
	}
	st, err := a.Finish(0.25, nil)
	require.NoError(t, err)
	return st
}

func newSmall(t testing.TB) *Accumulator {
	t.Helper()
	a, err := NewAccumulator(Standard(), smallShape(), BFloat16)
	require.NoError(t, err)
	return a
}

func smallHead() Head {
	pad := 91
	sum := hexSHA256([]byte("archive"))
	sel := Selection{Domains: []string{"plain"}, PerDomain: 2, TNewsArchive: &sum}
	h := Head{
		CapturedAt: "2026-01-02T03:04:05+00:00",
		Model: Model{
			Repo: "nobody/small", Revision: "none", CheckpointIdentity: "made up", Architecture: "Small", DType: "bfloat16",
			RevisionContract: canonical.Object(canonical.Member{Key: "made_up", Value: canonical.Bool(true)}, canonical.Member{Key: "share", Value: canonical.Float(0.5)}),
			Files:            []FileIdentity{{"config.json", 2, hexSHA256([]byte("{}"))}},
		},
		Tokenizer:     TokenizerContract{Length: 92, VocabSize: 90, SpecialIDs: []int{90, 91}, Pad: &pad, Conditions: Standard().Conditions},
		Sources:       NewSourceContract(sel),
		Execution:     Execution{Platform: "none", InputDevice: "cpu", LoadSeconds: 1e-05, MaxRSSKiB: 4096},
		ClaimBoundary: []string{"Nothing was run."},
	}
	h.Sources.TargetScope = "content — \"quoted\", <kept>\u2028 & \u007f\u0001"
	return h
}

// small is the recorded document, and what it is written from.
func small(t testing.TB) (*Document, []byte) {
	t.Helper()
	data, err := os.ReadFile("testdata/small.json")
	require.NoError(t, err)
	d, err := Parse("small.json", data)
	require.NoError(t, err)
	return d, data
}

// kept are a small source's tensors.
type kept struct {
	source   smallSource
	hidden   func(stage, condition, scope int, h Hidden) Hidden
	routes   func(gate, condition, scope int, r Routes) Routes
	onlyEven bool // conditions that were kept
}

func (k kept) at(condition, scope int) (ids, positions []int) {
	v := k.source.variants()[condition]
	if scope == scopeContent {
		return v.TokenIDs, v.ContentPositions
	}
	for i := range v.TokenIDs {
		positions = append(positions, i)
	}
	return v.TokenIDs, positions
}

func (k kept) Hidden(stage, condition, scope int) (Hidden, bool) {
	if k.onlyEven && condition%2 == 1 {
		return Hidden{}, false
	}
	ids, positions := k.at(condition, scope)
	h := Hidden{BFloat16, smallRows(stage, condition, ids)}.At(positions)
	if k.hidden != nil {
		h = k.hidden(stage, condition, scope, h)
	}
	return h, true
}

func (k kept) Routes(gate, condition, scope int) (Routes, bool) {
	if k.onlyEven && condition%2 == 1 {
		return Routes{}, false
	}
	ids, positions := k.at(condition, scope)
	r := smallRoutes(smallShape().Gates[gate], condition, ids).At(positions)
	if k.routes != nil {
		r = k.routes(gate, condition, scope, r)
	}
	return r, true
}

// edited is the recorded document with a text replaced, once.
func edited(t testing.TB, old, replacement string) []byte {
	t.Helper()
	_, data := small(t)
	require.Contains(t, string(data), old)
	return []byte(strings.Replace(string(data), old, replacement, 1))
}
