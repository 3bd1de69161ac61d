package conformance_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

// own is a candidate that brings its own cases, as a dump folder does, and
// answers with tokens alone.
type own struct {
	cases  []engine.Case
	output map[string][]int
}

func (own) Info(context.Context) (engine.Info, error) { return engine.Info{Name: "own"}, nil }

func (o own) Cases(context.Context) ([]engine.Case, error) { return o.cases, nil }

func (o own) Run(_ context.Context, req engine.Request) (*engine.Response, error) {
	return &engine.Response{PromptIDs: req.Case.TokenIDs, OutputIDs: o.output[req.Case.Name]}, nil
}

func judgedOn(t *testing.T, id string, c engine.Candidate) map[string]conformance.Result {
	t.Helper()
	cfg, err := embedded()
	require.NoError(t, err)
	cfg.Candidate, cfg.Cases, cfg.Golden, cfg.ReferenceCases, cfg.Only = c, nil, nil, 0, []string{id}
	rep, err := conformance.Evaluate(t.Context(), cfg)
	require.NoError(t, err)
	out := map[string]conformance.Result{}
	for _, r := range rep.Checks {
		if r.Side == conformance.SideCandidate {
			out[r.Case] = r
		}
	}
	return out
}

// TestOwnIDsAreHeldToTheText: a folder's ids are what the model's tokenizer makes
// of the folder's text.
func TestOwnIDsAreHeldToTheText(t *testing.T) {
	cfg, err := embedded()
	require.NoError(t, err)
	right := cfg.Cases[4] // digits
	wrong, doubled := right, right
	wrong.Name, doubled.Name = "wrong", "doubled"
	wrong.TokenIDs = slices.Clone(right.TokenIDs)
	wrong.TokenIDs[7]++
	doubled.TokenIDs = append([]int{right.TokenIDs[0]}, right.TokenIDs...)
	got := judgedOn(t, "PromptTokens", own{cases: []engine.Case{right, wrong, doubled}})
	assert.Equal(t, conformance.Pass, got[right.Name].Status)
	require.Equal(t, conformance.Fail, got["wrong"].Status)
	assert.Equal(t, "token_ids[7]", got["wrong"].Findings[0].Metric)
	require.Equal(t, conformance.Fail, got["doubled"].Status)
	assert.Contains(t, got["doubled"].Findings[0].Detail, "stands there twice")
}

// TestIDsWithNothingToHoldThemTo: without a tokenizer a folder's own ids are not
// passed, they are not judged.
func TestIDsWithNothingToHoldThemTo(t *testing.T) {
	cfg, err := embedded()
	require.NoError(t, err)
	cfg.Candidate, cfg.Only = own{cases: cfg.Cases[:1]}, []string{"PromptTokens"}
	cfg.Cases, cfg.Golden, cfg.Encode = nil, nil, nil
	rep, err := conformance.Evaluate(t.Context(), cfg)
	require.NoError(t, err)
	require.Len(t, rep.Checks, 1)
	assert.Equal(t, conformance.Unsupported, rep.Checks[0].Status)
	assert.Equal(t, conformance.NothingJudged, rep.Conclusion)
}

// TestOutputsEndWhereTheyShould: on a stop id, or with a budget that a folder
// doesn't tell. (Where the budget was asked for, the check's controls break off.)
func TestOutputsEndWhereTheyShould(t *testing.T) {
	cfg, err := embedded()
	require.NoError(t, err)
	stop := cfg.Cases[0].Stop
	require.NotEmpty(t, stop)
	o := own{output: map[string][]int{
		"full":    {5, 6, 7, 8},
		"stopped": {5, stop[0]},
		"broken":  {5, 6},
		"past":    {5, stop[0], 7},
		"last":    {5, 6, 7, stop[0]},
	}}
	for name := range o.output {
		c := cfg.Cases[4]
		c.Name = name
		o.cases = append(o.cases, c)
	}
	got := judgedOn(t, "StopRule", o)
	assert.Equal(t, conformance.Skip, got["full"].Status, "nothing to stop on")
	assert.Equal(t, conformance.Pass, got["stopped"].Status)
	assert.Equal(t, conformance.Pass, got["last"].Status)
	assert.Equal(t, conformance.Skip, got["broken"].Status, "a folder's outputs may have had different budgets")
	assert.Equal(t, conformance.Fail, got["past"].Status)
}
