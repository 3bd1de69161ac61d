package conformance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// gatherer collects the evidence of one case after the other.
type gatherer struct {
	cfg      *Config
	budgets  Budgets
	needs    Need // of the checks on the candidate
	refNeeds Need // of the checks on the reference
	declared engine.Info
	tableMax float64
	// shadow opens the float64 reference on first use.
	shadow func() (engine.Reference, error)
	// single opens the float32 reference, for a reference that is not.
	single func() (engine.Reference, error)
}

// roundingOf is one rounding (half a unit in the last place) of a float type.
func roundingOf(dtype string) float64 {
	if dtype == "float64" {
		return math.Exp2(-53)
	}
	return math.Exp2(-24)
}

// gather collects one case's evidence. The error is the run's, never the
// candidate's. closely says whether the reference is judged on this case by the checks that
// need more runs of it.
func (g *gatherer) gather(ctx context.Context, c engine.Case, closely bool) (*Evidence, error) {
	ref := g.cfg.Reference
	judgeReference := closely || (g.refNeeds&(NeedGolden|NeedDecode) != 0 && g.cfg.Golden != nil && g.cfg.Golden.Has(c.Name))
	ev := &Evidence{
		Case: c, Arch: ref.Weights().Arch(), Budgets: g.budgets,
		Declared: g.declared, TableMax: g.tableMax,
		Rounding:        roundingOf(ref.Describe().DType),
		referenceJudged: judgeReference,
		listsOwnCases:   g.cfg.Cases == nil,
	}
	if g.needs == 0 && (g.refNeeds == 0 || !judgeReference) {
		return ev, nil // no check looks at this case
	}
	g.text(ev)
	var resp *engine.Response
	if g.cfg.Candidate != nil && g.needs != 0 {
		var err error
		if resp, err = g.candidate(ctx, ev); err != nil {
			return nil, err
		}
		if resp != nil {
			defer resp.Close()
		}
	}
	if !judgeReference && ev.Candidate == nil && ev.LogitForm == nil && ev.Places == nil {
		return ev, nil
	}
	if err := idsUsable(ev.Arch, ev.Case); err != nil {
		if g.cfg.Candidate == nil || g.cfg.Cases != nil {
			return nil, err // the caller's prompts, not the candidate's
		}
		ev.referenceJudged = false
		if ev.CandidateErr == nil { // a broken case has no ids, and says why itself
			ev.CandidateErr = &engine.MalformedError{Provenance: true, Err: err}
		}
		ev.Candidate, ev.LogitForm, ev.Places = nil, nil, nil
		return ev, nil
	}
	trace, err := g.capture(ctx, ev)
	if err != nil {
		return nil, err
	}
	if ev.LastEmbedding, err = ref.Embedding(c.TokenIDs[len(c.TokenIDs)-1]); err != nil {
		return nil, fmt.Errorf("conformance: case %s: %w", c.Name, err)
	}
	if ev.FirstEmbedding, err = ref.Embedding(c.TokenIDs[0]); err != nil {
		return nil, fmt.Errorf("conformance: case %s: %w", c.Name, err)
	}
	if judgeReference {
		if err := g.referenceSide(ctx, ev, closely); err != nil {
			return nil, fmt.Errorf("conformance: case %s: %w", c.Name, err)
		}
	}
	if ev.PromptIDs != nil && !slices.Equal(ev.PromptIDs, c.TokenIDs) {
		ev.NoProfile, ev.NoLogits = "the candidate ran other token ids", "the candidate ran other token ids"
		return ev, nil
	}
	if ev.Candidate != nil && g.needs&NeedProfile != 0 {
		if err := g.profile(ctx, ev, trace); err != nil {
			return nil, fmt.Errorf("conformance: case %s: %w", c.Name, err)
		}
	}
	if ev.Places != nil && g.needs&NeedProfile != 0 && ev.CandidateErr == nil {
		if err := g.probeProfile(ctx, ev); err != nil {
			return nil, fmt.Errorf("conformance: case %s: probes: %w", c.Name, err)
		}
	}
	if ev.LogitForm != nil && g.needs&NeedLogits != 0 && ev.CandidateErr == nil {
		if err := g.logits(ctx, ev, resp.Logits); err != nil {
			return nil, fmt.Errorf("conformance: case %s: logits: %w", c.Name, err)
		}
	}
	return ev, nil
}

// capture runs the reference on the prompt, if a check looks at its rows.
func (g *gatherer) capture(ctx context.Context, ev *Evidence) (engine.Trace, error) {
	const rows = NeedRows | NeedWholeStep | NeedBatched | NeedLastHidden | NeedGolden | NeedProfile
	if (g.needs|g.refNeeds)&rows == 0 {
		return nil, nil
	}
	trace, err := g.cfg.Reference.Capture(ctx, ev.Case.TokenIDs)
	if err != nil {
		return nil, fmt.Errorf("conformance: case %s: reference capture: %w", ev.Case.Name, err)
	}
	ev.Reference = asCapture(trace.Rows(), ev)
	return trace, nil
}

// text tokenises the case's text, where there is a tokenizer.
func (g *gatherer) text(ev *Evidence) {
	if g.needs&NeedText == 0 {
		return
	}
	encode := g.cfg.Encode
	if w, ok := g.cfg.Reference.Weights().(engine.Encoder); ok && encode == nil {
		encode = w.Encode
	}
	if encode == nil {
		ev.NoText = "no tokenizer comes with the model"
		return
	}
	var err error
	if ev.TextIDs, err = encode(ev.Case.Text); err != nil {
		ev.TextIDs, ev.NoText = nil, err.Error()
	}
}

// idsUsable refuses a case whose ids a model can't run.
func idsUsable(a engine.Arch, c engine.Case) error {
	if len(c.TokenIDs) == 0 {
		return fmt.Errorf("conformance: case %s: no token ids", c.Name)
	}
	for i, id := range c.TokenIDs {
		if id < 0 || id >= a.Vocab {
			return fmt.Errorf("conformance: case %s: token_ids[%d]: got %d, want 0 <= id < %d (the model's vocabulary)",
				c.Name, i, id, a.Vocab)
		}
	}
	if m := a.MaxPositions; m > 0 && len(c.TokenIDs) > m {
		return fmt.Errorf("conformance: case %s: token_ids: got %d, want at most %d (the model's positions)",
			c.Name, len(c.TokenIDs), m)
	}
	return nil
}

// candidate asks the candidate, within the time that a case has, and loads its
// rows, unless their header already says that they can't be compared: then
// nothing of that size is read. The response is nil when there is no answer.
func (g *gatherer) candidate(ctx context.Context, ev *Evidence) (resp *engine.Response, err error) {
	if _, ok := g.cfg.Candidate.(engine.SelfTimed); !ok {
		limited, cancel := context.WithTimeout(ctx, g.cfg.timeout())
		defer cancel()
		ctx = limited
	}
	req := engine.Request{Case: ev.Case}
	if g.needs&NeedProbes != 0 {
		req.Probes = g.cfg.Probes
	}
	if req.NoLogits = g.needs&NeedLogits == 0; !req.NoLogits {
		req.DecodeSteps = g.decodeSteps()
	}
	resp, err = g.cfg.Candidate.Run(ctx, req)
	if err != nil {
		if ctx.Err() != nil && !errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
		if runsFault(err) {
			return nil, fmt.Errorf("conformance: case %s: candidate: %w", ev.Case.Name, err)
		}
		ev.CandidateErr = err
		return nil, nil
	}
	g.load(ev, resp)
	return resp, nil
}

// load reads what the response holds. What is wrong with it is the candidate's
// fault, and goes into ev.
func (g *gatherer) load(ev *Evidence, resp *engine.Response) {
	ev.Notes = resp.Notes
	broken := func(file string, err error) { ev.CandidateErr = &engine.MalformedError{File: file, Err: err} }
	ev.PromptIDs = resp.PromptIDs
	if resp.Logits != nil {
		rows, vocab := resp.Logits.Shape()
		if rows > 0 && vocab != ev.Arch.Vocab {
			ev.wrongVocabulary = true
			broken(resp.Files.Logits, fmt.Errorf("conformance: case %s: logits %s: vocabulary: got %d, want %d",
				ev.Case.Name, resp.Files.Logits, vocab, ev.Arch.Vocab))
			return
		}
	}
	if resp.Logits != nil && ev.Arch.MaxPositions > 0 {
		if rows, _ := resp.Logits.Shape(); rows > ev.Arch.MaxPositions {
			broken(resp.Files.Logits, fmt.Errorf("conformance: case %s: logits %s: rows: got %d, want at most %d (the model's positions)",
				ev.Case.Name, resp.Files.Logits, rows, ev.Arch.MaxPositions))
			return
		}
	}
	for i, id := range resp.OutputIDs {
		if id < 0 || id >= ev.Arch.Vocab {
			broken(resp.Files.Logits, fmt.Errorf("conformance: case %s: output_ids[%d]: got %d, want 0 <= id < %d (the model's vocabulary)",
				ev.Case.Name, i, id, ev.Arch.Vocab))
			return
		}
	}
	ev.OutputIDs = resp.OutputIDs
	if resp.Logits != nil && g.needs&NeedLogits != 0 {
		form, err := readLogits(resp.Logits, resp.OutputIDs, resp.Files.Logits)
		if err != nil {
			broken(resp.Files.Logits, err)
			return
		}
		ev.LogitForm = form
	}
	if err := g.places(ev, resp); err != nil {
		broken(resp.Files.Probes, err)
		return
	}
	if resp.Layers == nil {
		ev.NoProfile = "no layer dump"
		if ev.Places != nil {
			ev.NoProfile = "no layer dump, and probes without embed and every resid_post at the last prompt position"
			if ev.Candidate = captureOfPlaces(ev); ev.Candidate != nil {
				ev.CandidateFile = ev.Candidate.File
			}
		}
		return
	}
	ev.Offered = true
	ev.CandidateHeader = resp.Layers.Header()
	ev.CandidateFile = resp.Files.Layers
	if h := ev.CandidateHeader; h.Rows != ev.Arch.Layers+1 || h.Width != ev.Arch.Hidden {
		ev.NoProfile = "wrong shape"
		return
	}
	capt := &Capture{Header: ev.CandidateHeader, File: ev.CandidateFile}
	for i := range ev.CandidateHeader.Rows {
		row := make([]float64, ev.CandidateHeader.Width)
		step, err := resp.Layers.Row(i, row)
		if err != nil {
			broken(ev.CandidateFile, err)
			return
		}
		capt.Rows = append(capt.Rows, row)
		capt.Steps = append(capt.Steps, step)
	}
	ev.Candidate = capt
}

func asCapture(rows [][]float64, ev *Evidence) *Capture {
	return &Capture{
		Header: engine.CaptureHeader{
			Rows: len(rows), Width: ev.Arch.Hidden,
			Fingerprint: dumpfmt.Fingerprint(ev.Case.Text), Mode: engine.CaptureModeIncremental,
		},
		Rows: rows, Steps: make([]float64, len(rows)),
	}
}

// referenceSide runs what the checks on the reference look at.
func (g *gatherer) referenceSide(ctx context.Context, ev *Evidence, closely bool) error {
	ref, ids := g.cfg.Reference, ev.Case.TokenIDs
	if g.refNeeds&NeedGolden != 0 && g.cfg.Golden != nil && g.cfg.Golden.HasLayers(ev.Case.Name) {
		if err := g.golden(ctx, ev); err != nil {
			return err
		}
	}
	if err := g.decode(ctx, ev, closely); err != nil {
		return err
	}
	if !closely {
		return nil
	}
	var err error
	if g.refNeeds&NeedLastHidden != 0 {
		if ev.LastHidden, err = ref.LastHidden(ctx, ids); err != nil {
			return err
		}
		if ev.NormOfLast, err = ref.FinalNorm(ctx, ev.Reference.Rows[len(ev.Reference.Rows)-1]); err != nil {
			return err
		}
	}
	if g.refNeeds&NeedWholeStep != 0 {
		if ev.WholeStep, err = ref.CaptureWholeStep(ctx, ids); err != nil {
			return err
		}
	}
	if g.refNeeds&NeedBatched != 0 {
		if ev.Batched, err = ref.CaptureBatched(ctx, ids); err != nil {
			return err
		}
		if _, err = g.rows64(ctx, ev); err != nil {
			return err
		}
	}
	return nil
}

func (g *gatherer) rows64(ctx context.Context, ev *Evidence) (engine.Trace, error) {
	s, err := g.shadow()
	if err != nil {
		return nil, fmt.Errorf("float64 yardstick: %w", err)
	}
	tr, err := s.Capture(ctx, ev.Case.TokenIDs)
	if err != nil {
		return nil, err
	}
	ev.Rows64 = tr.Rows()
	return tr, nil
}

// profile measures the candidate beside the yardstick of its own arithmetic.
func (g *gatherer) profile(ctx context.Context, ev *Evidence, trace engine.Trace) error {
	rows, measurable := usableRows(ev.Candidate.Rows)
	if !measurable {
		ev.NoProfile = "no two rows in a row carry information"
		return nil
	}
	if row, what := degenerate(trace.Rows()); row >= 0 {
		ev.NoProfile = fmt.Sprintf("row %d of the reference itself is %s", row, what)
		return nil
	}
	if h := ev.Candidate.Header; h.Fingerprint != dumpfmt.Fingerprint(ev.Case.Text) || h.Mode != engine.CaptureModeIncremental {
		ev.NoProfile = "another prompt or capture mode"
		return nil
	}
	a := arithmeticOf(ev.Declared)
	t, factors := truth{trace: trace}, g.budgets.Int8
	if a.float {
		// The truth is float64; the yardstick is the float32 run beside it.
		tr64, err := g.rows64(ctx, ev)
		if err != nil {
			return err
		}
		yard := trace
		if g.cfg.Reference.Describe().DType != "float32" {
			single, err := g.single()
			if err != nil {
				return fmt.Errorf("float32 yardstick: %w", err)
			}
			if yard, err = single.Capture(ctx, ev.Case.TokenIDs); err != nil {
				return fmt.Errorf("float32 yardstick: %w", err)
			}
		}
		t = truth{trace: tr64, yard: yard.Rows(), floor: roundingOf("float32")}
		factors = g.budgets.Float
	} else {
		if g.cfg.Yardstick == nil {
			return noYardstick(g.declared)
		}
		yard, err := g.cfg.Yardstick.Emulate(ctx, a.scheme, ev.Case.TokenIDs)
		if err = emulating(err); err != nil {
			var none bool
			if ev.NoProfile, none = noEmulation(err); none {
				return nil
			}
			return err
		}
		t.yard = yard
		if a.scheme.FloatWeights {
			t.floor = roundingOf("float32") // its embedding is exact, and an engine's is float32
		}
	}
	t.pushed = func() (path, error) {
		return g.cfg.paths.get(fmt.Sprint(a, ev.Case.TokenIDs), func() (path, error) { return push(ctx, t.trace, t.yard, true) })
	}
	t.everywhere = a.unknown != ""
	p, err := profileOf(ctx, t, rows)
	if err != nil {
		return err
	}
	p.Factors, p.SchemeUnknown = factors, a.unknown
	last := len(ev.Candidate.Rows) - 1
	normed, err := g.cfg.Reference.FinalNorm(ctx, t.trace.Rows()[last])
	if err != nil {
		return err
	}
	p.PostNormLast = rows[last] != nil && metric.RelativeL2(ev.Candidate.Rows[last], normed) < g.budgets.Nearer.Value*p.Accumulated[last].Got
	ev.Profile, ev.trace, ev.yard = p, t.trace, t.yard
	return nil
}
