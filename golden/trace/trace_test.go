package trace

import (
	"bytes"
	"encoding/hex"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden/canonical"
)

func writeSmall(t *testing.T, path string) Written {
	t.Helper()
	w, err := NewWriter(path, Standard(), smallShape(), BFloat16, dumpfmt.WriteOptions{})
	require.NoError(t, err)
	a := newSmall(t)
	for _, s := range smallSources {
		require.NoError(t, w.Add(s.feed(t, a)))
	}
	done, err := w.Finish(smallHead())
	require.NoError(t, err)
	return done
}

// TestDocumentEqualsPython: keys, order, counts and hashes exactly; figures that
// are float32 in PyTorch exactly too, others within float64's last digits.
func TestDocumentEqualsPython(t *testing.T) {
	want, data := small(t)
	path := filepath.Join(t.TempDir(), "new", "trace.json")
	done := writeSmall(t, path)
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, hexSHA256(got), done.SHA256)
	require.Equal(t, int64(len(got)), done.Bytes)
	require.Equal(t, 2, done.Sources)
	require.Equal(t, 0.5, done.ForwardSeconds)
	require.Equal(t, int64(7*8*2*2), done.Summary.RouteDecisions)

	d, err := Read(path)
	require.NoError(t, err)
	c := Compare(want, d)
	require.Greater(t, c.Compared, 3000)
	double := map[string]bool{}
	for _, f := range []string{"conditions.*.target_content", "conditions.*.full_input", "target_comparisons.*"} {
		for _, k := range []string{"load_cv", "normalized_load_entropy", "mean_set_jaccard", "mean_token_weighted_tv", "aggregate_load_tv"} {
			double["sources[*].router_layers.*."+f+"."+k] = true
		}
	}
	for _, k := range []string{"routes.*.*.source_mean_token_weighted_tv", "routes.*.*.source_mean_aggregate_load_tv", "routes.*.*.token_weighted_mean_set_jaccard", "hidden.*.*.token_weighted_mean_cosine_similarity"} {
		double["summary."+k] = true
	}
	for _, f := range c.Fields {
		if f.Different > 0 && (!double[f.Field] || !(f.MaxRel <= 8*0x1p-52)) {
			t.Errorf("%s: %d of %d differ, by %g (relative %g) at %s", f.Field, f.Different, f.Compared, f.MaxAbs, f.MaxRel, f.At)
		}
	}
	require.Empty(t, c.Run)
	// Bytes: everything but the digits of those figures.
	require.Equal(t, strings.Count(string(data), "\n"), strings.Count(string(got), "\n"))
	for i, line := range strings.Split(string(data), "\n") {
		mine := strings.Split(string(got), "\n")[i]
		key, _, _ := strings.Cut(line, ":")
		require.True(t, strings.HasPrefix(mine, key), "line %d: %q, want %q", i+1, mine, line)
	}
}

// TestRecordedDocumentIsWrittenAgain: reading and writing give Python's bytes back.
func TestRecordedDocumentIsWrittenAgain(t *testing.T) {
	d, data := small(t)
	var b bytes.Buffer
	require.NoError(t, d.Encode(&b))
	require.Equal(t, string(data), b.String())
	path := filepath.Join(t.TempDir(), "trace.json")
	require.NoError(t, Write(path, d, dumpfmt.WriteOptions{}))
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, data, got)
	require.ErrorIs(t, Write(path, d, dumpfmt.WriteOptions{}), os.ErrExist)
}

// TestOrderOfFeedingMeansNothing: condition by condition, backwards, gates first.
func TestOrderOfFeedingMeansNothing(t *testing.T) {
	s := smallSources[0]
	want := s.feed(t, newSmall(t))
	a := newSmall(t)
	variants := s.variants()
	require.NoError(t, a.Start(s.Source, variants, nil))
	for c := len(variants) - 1; c >= 0; c-- {
		for _, layer := range smallShape().Gates {
			r := smallRoutes(layer, c, variants[c].TokenIDs)
			require.NoError(t, a.Routes(layer, c, r))
			for i := range r.IDs { // the caller's again
				clear(r.IDs[i])
				clear(r.Weights[i])
			}
		}
		for stage := smallShape().Stages() - 1; stage >= 0; stage-- {
			rows := smallRows(stage, c, variants[c].TokenIDs)
			require.NoError(t, a.Hidden(stage, c, rows))
			for _, row := range rows {
				clear(row)
			}
		}
	}
	got, err := a.Finish(0.25, nil)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// TestContentIsDroppedOnceItsEdgesAreDone: place by place, no place holds anything
// of the one before.
func TestContentIsDroppedOnceItsEdgesAreDone(t *testing.T) {
	s := smallSources[0]
	a := newSmall(t)
	variants := s.variants()
	require.NoError(t, a.Start(s.Source, variants, smallBoundary))
	held := func() (n int) {
		for _, p := range a.stages {
			for _, h := range p.value {
				n += len(h.Rows)
			}
		}
		for _, p := range a.gates {
			for _, r := range p.value {
				n += len(r.IDs) + len(r.Weights)
			}
		}
		return n
	}
	for c, v := range variants {
		require.NoError(t, a.Hidden(0, c, smallRows(0, c, v.TokenIDs)))
		if c == 0 {
			require.Equal(t, 4, held())
		}
	}
	require.Zero(t, held())
	for c, v := range variants {
		require.NoError(t, a.Routes(1, c, smallRoutes(1, c, v.TokenIDs)))
	}
	require.Zero(t, held())
}

// TestHiddenByHand: two tokens of two columns.
func TestHiddenByHand(t *testing.T) {
	h := Hidden{Float32, [][]float32{{3, 4}, {-1, 2}}}
	s, err := DescribeHidden("", h)
	require.NoError(t, err)
	require.Equal(t, 2., s.Mean)
	require.Equal(t, single(math.Sqrt((1.+4+9+0)/4)), s.Std)
	require.Equal(t, single(math.Sqrt((9.+16+1+4)/4)), s.RMS)
	require.Equal(t, 4., s.MaxAbs)
	require.Equal(t, []int{2, 2}, s.Shape)

	c, err := CompareHidden("", h, Hidden{Float32, [][]float32{{3, 4}, {2, 1}}})
	require.NoError(t, err)
	require.Equal(t, HiddenComparison{
		Tokens: 2, ExactRows: 1, MeanCosine: .5, MinCosine: 0,
		MeanRelativeL2: single(single(math.Sqrt(10)/math.Sqrt(5)) / 2), MaxAbsDelta: 3,
	}, c)
	// A zero row has cosine 0, and its norm counts as 1e-12.
	c, err = CompareHidden("", Hidden{Float32, [][]float32{{0, 0}}}, Hidden{Float32, [][]float32{{0, 2}}})
	require.NoError(t, err)
	require.Equal(t, HiddenComparison{Tokens: 1, MeanRelativeL2: single(2e12), MaxAbsDelta: 2}, c)
}

// The hashes of Python's hashlib for these bytes.
func TestHashes(t *testing.T) {
	rows := [][]float32{{1, -2.5}, {0, float32(math.Copysign(0, -1))}, {0x1p-126, 3e38}}
	for i, x := range rows[2] {
		rows[2][i] = math.Float32frombits(math.Float32bits(x) &^ 0xFFFF)
	}
	require.Equal(t, "a1be9adf1a6b4d3233e192f75b7a9979440d9379f65dfdaab91e7e3705b862d0", TensorHash(BFloat16, rows))
	require.Equal(t, "b246df9a056477623724103ae423f911759b8f706008d297d26f62e09d31468b", TensorHash(Float32, rows))
	require.Equal(t, "4b62b1a722b53c297c90d887b48c2cb24865311d27b7c713fbaa70e29802b4be", IDsHash([]int{3, 0, 12}))
	require.Equal(t, "e6effb57958b201181f09b9489a6cc256836fac07013ae939778bac1189a8050", RoutesHash([][]int{{3, 0}, {12, 1}}))
	sum, err := canonical.Array(canonical.Ints([]int64{3, 0}), canonical.Ints([]int64{12, 1})).SHA256(canonical.SortedKeys)
	require.NoError(t, err)
	require.Equal(t, hex.EncodeToString(sum[:]), RoutesHash([][]int{{3, 0}, {12, 1}}), "it is canonical JSON")
	require.NotEqual(t, TensorHash(Float32, [][]float32{{1, 2}}), TensorHash(Float32, [][]float32{{1}, {2}}), "the shape counts")
}

func TestStep(t *testing.T) {
	for _, c := range []struct {
		t       DType
		x, want float64
	}{
		{Float32, 1, 0x1p-23}, {Float32, -1.9, 0x1p-23}, {Float32, 0.9, 0x1p-24}, {Float32, 0, 0x1p-149}, {Float32, 0x1p-140, 0x1p-149},
		{BFloat16, 1, 0x1p-7}, {BFloat16, 0.1, 0x1p-11}, {BFloat16, 0, 0x1p-133}, {BFloat16, 0x1p-130, 0x1p-133},
	} {
		require.Equal(t, c.want, c.t.Step(c.x), "%s %g", c.t, c.x)
		if c.t == Float32 && c.x > 0 {
			require.Equal(t, c.want, float64(math.Nextafter32(float32(c.x), 2))-float64(float32(c.x)))
		}
	}
}

func TestShapeNames(t *testing.T) {
	s := Shape{Layers: 27, Gates: []int{1}, Hidden: 1, Experts: 2, TopK: 1}
	require.Equal(t, 29, s.Stages())
	require.Equal(t, "embedding layer_00 layer_26 final_norm", strings.Join([]string{s.StageName(0), s.StageName(1), s.StageName(27), s.StageName(28)}, " "))
	for stage := range s.Stages() {
		back, ok := s.StageOfProbe(s.Probe(stage))
		require.True(t, ok)
		require.Equal(t, stage, back)
	}
	require.Equal(t, "blocks.26.resid_post", s.Probe(27))
	for _, p := range []string{"blocks.27.resid_post", "blocks.-1.resid_post", "blocks.01.resid_post", "blocks.1.resid_mid", "layer_01", ""} {
		_, ok := s.StageOfProbe(p)
		require.False(t, ok, p)
	}
}

// TestStandardPlan: the script's names, in its order.
func TestStandardPlan(t *testing.T) {
	p := Standard()
	require.NoError(t, p.Validate())
	require.Equal(t, "s0_eos s0_bos s0_x s0_period s1_eos s1_bos s1_x s1_period", strings.Join(p.Names(), " "))
	var edges []string
	for _, e := range p.Edges {
		edges = append(edges, e.Name+"="+e.Left+"-"+e.Right)
	}
	require.Equal(t, "system_eos=s0_eos-s1_eos system_bos=s0_bos-s1_bos system_x=s0_x-s1_x system_period=s0_period-s1_period "+
		"bos_at_s0=s0_eos-s0_bos bos_at_s1=s1_eos-s1_bos x_at_s0=s0_eos-s0_x x_at_s1=s1_eos-s1_x period_at_s0=s0_eos-s0_period period_at_s1=s1_eos-s1_period", strings.Join(edges, " "))
	require.Equal(t, []string{"eos", "bos", "x", "period"}, p.Boundaries())
	text, start, end := p.Text(p.Conditions[4], "Hi")
	require.Equal(t, "You are a helpful assistant.\n\nUser: Hi\n\nAssistant:", text)
	require.Equal(t, "Hi", text[start:end])
	for _, broken := range []func(*Plan){
		func(p *Plan) { p.Conditions[1].Name = "s0_eos" },
		func(p *Plan) { p.Conditions[1].Boundary = "" },
		func(p *Plan) { p.Edges[0].Right = "s9_eos" },
		func(p *Plan) { p.Edges[1].Name = "system_eos" },
		func(p *Plan) { p.Edges[1].Left = p.Edges[1].Right },
		func(p *Plan) { p.Edges = nil },
	} {
		p := Standard()
		broken(&p)
		require.Error(t, p.Validate())
	}
}
