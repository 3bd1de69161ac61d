package margins

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/dumpfmt"
)

var (
	nan = math.NaN()
	// The rows whose figures are worked out below.
	ref0, cand0 = []float32{1, 3, 2, 0, -1}, []float32{1.5, 2.5, 2.75, 0, -1}
	ref1        = []float32{4, 0, -2, 1, 2}
)

func compare(t *testing.T, candDir, refDir string) *Result {
	t.Helper()
	res, err := Compare(context.Background(), open(t, candDir), open(t, refDir), 3, nil)
	require.NoError(t, err)
	return res
}

func requireNear(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.IsNaN(want) && math.IsNaN(got) {
		return
	}
	if !(math.Abs(got-want) <= 1e-14*math.Max(1, math.Abs(want))) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// The reference's row has mean 1 and variance (0+4+1+1+4)/5 = 2. Its ranks are 3
// 5 4 2 1 against 3 4 5 2 1: Spearman is 1 - 6*2/(5*24). Of the top three, tokens
// 1 2 0, they are 3 2 1 against 2 3 1: 1 - 6*2/(3*8). KL by mpmath, z by numpy.
func TestFigures(t *testing.T) {
	refDir, candDir := t.TempDir(), t.TempDir()
	writeFloat(t, refDir, "a", dumpfmt.CaseFile{OutputIDs: []int{1, 0}, Text: "x", TokenIDs: []int{1}}, [][]float32{ref0, ref1})
	writeFloat(t, candDir, "a", dumpfmt.CaseFile{OutputIDs: []int{2, 0}, Text: "x", TokenIDs: []int{1}}, [][]float32{cand0, ref1})
	res := compare(t, candDir, refDir)
	require.Len(t, res.Cases, 1)
	c := &res.Cases[0]
	require.NoError(t, c.Err)
	require.Empty(t, c.Notes)
	require.Equal(t, []int{1, 0}, c.RefTokens)
	require.Equal(t, []int{2, 0}, c.CandTokens)
	require.Zero(t, c.FirstFlip)
	require.Len(t, c.Positions, 2)
	p := c.Positions[0]
	require.True(t, p.Comparable())
	require.False(t, p.Agree())
	require.Equal(t, 2, p.Rank)
	for name, pair := range map[string][2]float64{
		"top 1": {p.Top1, 3}, "top 2": {p.Top2, 2}, "margin": {p.Margin, 1}, "z margin": {p.ZMargin, math.Sqrt2 / 2},
		"choice": {p.Choice, 2}, "margin to choice": {p.ChoiceMargin, 1}, "z to choice": {p.ZChoice, math.Sqrt2 / 2},
		"regret": {p.Regret, 1}, "spearman": {p.Spearman, 0.9}, "spearman top 3": {p.SpearmanTop, 0.5},
		"max |dz| top 3": {p.MaxZDiffTop, 0.4803990361538941}, "kl": {p.KL, 0.164381058163238234},
		"kl at the row's scale": {p.KLRowScale, nan}, "relative l2": {p.CentredL2, 0.30822070014844877},
		"scale": {p.Scale, 0.975}, "noise": {p.Noise, 0.42999452700325824},
	} {
		requireNear(t, name, pair[0], pair[1])
	}

	// The same row on both sides, but after the flip.
	p = c.Positions[1]
	require.False(t, p.Comparable())
	require.True(t, p.Agree())
	require.Equal(t, 1, p.Rank)
	for name, pair := range map[string][2]float64{
		"margin": {p.Margin, 2}, "margin to choice": {p.ChoiceMargin, 0}, "z to choice": {p.ZChoice, 0}, "regret": {p.Regret, 0},
		"spearman": {p.Spearman, 1}, "max |dz|": {p.MaxZDiffTop, 0}, "kl": {p.KL, 0}, "relative l2": {p.CentredL2, 0}, "scale": {p.Scale, 1},
	} {
		requireNear(t, name, pair[0], pair[1])
	}
}

// The candidate's rows are the reference's times 100 and 120, so at their own
// scale nothing is lost. Their sums of squares are 10 and 20, so the common scale
// is (100*10 + 120*20)/30. KL there by mpmath.
func TestScaleOfInt32Logits(t *testing.T) {
	refDir, candDir := t.TempDir(), t.TempDir()
	writeFloat(t, refDir, "a", dumpfmt.CaseFile{}, [][]float32{ref0, ref1})
	writeInt(t, candDir, "a", dumpfmt.CaseFile{}, [][]int32{{100, 300, 200, 0, -100}, {480, 0, -240, 120, 240}})
	res := compare(t, candDir, refDir)
	require.NoError(t, res.Cases[0].Err)
	require.NotNil(t, res.Scale)
	requireNear(t, "scale", res.Scale.Value, 113.333333333333333)
	requireNear(t, "smallest", res.Scale.Min, 100)
	requireNear(t, "largest", res.Scale.Max, 120)
	require.Equal(t, 2, res.Scale.Positions)
	for i, want := range []float64{0.00550824685622974458, 0.00159023614977016948} {
		p := res.Cases[0].Positions[i]
		requireNear(t, "kl", p.KL, want)
		if !(p.KLRowScale <= 1e-30) {
			t.Errorf("kl at the row's own scale: got %v, want 0", p.KLRowScale)
		}
		require.True(t, math.IsNaN(p.CentredL2), "a row without unit has no relative error")
		requireNear(t, "regret", p.Regret, 0)
	}

	// Only comparable positions count for the scale.
	writeInt(t, candDir, "a", dumpfmt.CaseFile{}, [][]int32{{100, 200, 300, 0, -100}, {480, 0, -240, 120, 240}})
	res = compare(t, candDir, refDir)
	require.Equal(t, 1, res.Scale.Positions)
	requireNear(t, "slope of the first row", res.Scale.Value, 90) // (0*0 + 1*2 + 2*1 + 1*1 + 2*2)/10 * 100

	// Without a unit on the reference's side there is nothing in nats.
	res = compare(t, candDir, candDir)
	require.Nil(t, res.Scale)
	p := res.Cases[0].Positions[0]
	for name, x := range map[string]float64{"kl": p.KL, "own kl": p.KLRowScale, "regret": p.Regret, "relative l2": p.CentredL2} {
		require.True(t, math.IsNaN(x), name)
	}
	require.Zero(t, res.Comparable(res.Everything("")).KL.N)
	require.Zero(t, res.Comparable(res.Everything("")).Regret.N)
	requireNear(t, "spearman", p.Spearman, 1)

	// Logits that run against the reference's have no scale, and no KL.
	writeInt(t, candDir, "a", dumpfmt.CaseFile{}, [][]int32{{-100, -300, -200, 0, 100}, {-480, 0, 240, -120, -240}})
	res = compare(t, candDir, refDir)
	require.Negative(t, res.Scale.Value)
	require.True(t, math.IsNaN(res.Cases[0].Positions[0].KL))
	require.True(t, math.IsNaN(res.Comparable(res.Everything("")).KL.Mean), "a KL that isn't defined doesn't vanish from the mean")
}

// After a tie flip at position 1, the candidate's third row is as wrong as can
// be. It counts for the owners' summary, not for ours.
func TestAfterTheFlipNothingCounts(t *testing.T) {
	refDir, candDir := t.TempDir(), t.TempDir()
	tied := []float32{5, 5.0001, -3, 0, 1}
	flipped := []float32{5.0001, 5, -3, 0, 1}
	opposite := []float32{-4, 0, 2, -1, -2}
	same := dumpfmt.CaseFile{Text: "x", TokenIDs: []int{1}}
	// The last two have the same tokens again, and other inputs still.
	writeFloat(t, refDir, "a", same, [][]float32{ref0, tied, ref1, ref0, ref0})
	writeFloat(t, refDir, "b", same, [][]float32{ref0, ref1, ref1})
	writeFloat(t, candDir, "a", same, [][]float32{ref0, flipped, opposite, ref0, ref0})
	writeFloat(t, candDir, "b", same, [][]float32{ref0, ref1, ref1})
	res := compare(t, candDir, refDir)
	res.Classify(0.01)
	require.Zero(t, res.Wrong())
	a := &res.Cases[0]
	require.Equal(t, 1, a.FirstFlip)
	require.Equal(t, []conformance.Margin{conformance.Match, conformance.TieFlip, "", "", ""},
		[]conformance.Margin{a.Positions[0].Class, a.Positions[1].Class, a.Positions[2].Class, a.Positions[3].Class, a.Positions[4].Class})

	ours := res.Comparable(res.Everything("all"))
	require.Equal(t, 5, ours.Positions)
	require.Equal(t, 8, ours.Of)
	require.Equal(t, 4, ours.Agree)
	require.Equal(t, map[conformance.Margin]int{conformance.Match: 4, conformance.TieFlip: 1}, ours.Classes)
	require.Equal(t, 5, ours.KL.N)
	require.Less(t, ours.KL.Max, 1e-7)
	require.Less(t, ours.Regret.Max, 1e-3)
	requireNear(t, "spearman min", ours.Spearman.Min, 0.9) // one swap of neighbours in five

	theirs := res.Naive(res.Everything("all"))
	require.Equal(t, 8, theirs.Positions)
	require.Equal(t, 6, theirs.Agree)
	require.Equal(t, 6, theirs.AgreeMargin.N)
	require.Equal(t, []int{2, 5}, theirs.FlipRanks)
	requireNear(t, "spearman min", theirs.Spearman.Min, -1)
	after := res.AfterFlip()
	require.Equal(t, 3, after.N)
	requireNear(t, "after the flip", after.Mean, 1./3) // -1, 1, 1

	// By group, and only what a group names.
	require.Equal(t, 2, res.Comparable(Group{"g", []string{"a"}}).Positions)
	require.Equal(t, 3, res.Naive(Group{"g", []string{"b"}}).Positions)
}

// Tokens 0 1 2 are the reference's top three, on which both sides have one order;
// of the candidate's, 3 0 1, they don't.
func TestTopIsTheReferences(t *testing.T) {
	refDir, candDir := t.TempDir(), t.TempDir()
	writeFloat(t, refDir, "a", dumpfmt.CaseFile{}, [][]float32{{6, 5, 4, 0, -1}})
	writeFloat(t, candDir, "a", dumpfmt.CaseFile{}, [][]float32{{6, 5, 4, 7, -1}})
	requireNear(t, "spearman", compare(t, candDir, refDir).Cases[0].Positions[0].SpearmanTop, 1)
}

func TestClassOf(t *testing.T) {
	for _, tt := range []struct {
		z    float64
		want conformance.Margin
	}{{0, conformance.TieFlip}, {0.25, conformance.TieFlip}, {0.2500001, conformance.Drift}, {0.75, conformance.Drift},
		{0.7500001, conformance.Wrong}, {nan, conformance.Wrong}, {math.Inf(1), conformance.Wrong}} {
		p := &Position{RefToken: 1, CandToken: 2, ZChoice: tt.z}
		require.Equal(t, tt.want, classOf(p, 0.25), tt.z)
		p.CandToken = 1
		require.Equal(t, conformance.Match, classOf(p, 0.25), tt.z)
	}
	require.Equal(t, conformance.Wrong, classOf(&Position{CandToken: 1, ZChoice: 0.1}, nan), "without a band nothing is a tie")
}

func TestDefaultTieBand(t *testing.T) {
	result := func(noise ...float64) *Result {
		c := Case{Positions: []Position{{AfterFlip: true, Noise: 40}}}
		for _, x := range noise {
			c.Positions = append(c.Positions, Position{Noise: x})
		}
		return &Result{Cases: []Case{c}}
	}
	b := result(0.02, 0.01, 0.07).DefaultTieBand()
	requireNear(t, "3 times the median", b.Value, 0.06)
	require.Contains(t, b.Source, "0.02 z, median of 3 comparable rows")
	require.Empty(t, b.Expires)
	require.Zero(t, result(0).DefaultTieBand().Value, "identical rows excuse nothing")
	b = result(2, 2, 2).DefaultTieBand()
	require.Equal(t, 0.5, b.Value, "garbage doesn't excuse itself")
	require.NotEmpty(t, b.Expires)
	require.Contains(t, b.Why, "gives 6")
	require.True(t, math.IsNaN(result().DefaultTieBand().Value))
}

// A side that tells no tokens has those of its rows, the lowest index on ties.
func TestTokensThatArentTold(t *testing.T) {
	refDir, candDir := t.TempDir(), t.TempDir()
	rows := [][]float32{{1, 7, 7, 0}, {7, 1, 0, 7}}
	writeFloat(t, refDir, "a", dumpfmt.CaseFile{Text: "x", TokenIDs: []int{1}, OutputIDs: []int{1, 0}}, rows)
	writeFloat(t, candDir, "a", dumpfmt.CaseFile{Text: "x", TokenIDs: []int{1}}, rows)
	c := compare(t, candDir, refDir).Cases[0]
	require.NoError(t, c.Err)
	require.Equal(t, []int{1, 0}, c.CandTokens)
	require.Equal(t, -1, c.FirstFlip)
	require.Len(t, c.Notes, 1)
	require.Contains(t, c.Notes[0], "the candidate doesn't tell its output_ids")
}

func TestCompareEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	writeFloat(t, dir, "a", dumpfmt.CaseFile{}, [][]float32{ref0})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Compare(ctx, open(t, dir), open(t, dir), 3, nil)
	require.ErrorIs(t, err, context.Canceled)
}

func TestStepsNameTheCases(t *testing.T) {
	dir := t.TempDir()
	writeFloat(t, dir, "b", dumpfmt.CaseFile{}, [][]float32{ref0})
	writeFloat(t, dir, "a", dumpfmt.CaseFile{}, [][]float32{ref0})
	var seen []string
	_, err := Compare(context.Background(), open(t, dir), open(t, dir), 3, func(name string) { seen = append(seen, name) })
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, seen)
}
