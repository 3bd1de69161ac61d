package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
)

// What an answer to a fake looks like.
const (
	SmokeSawRight = "right"
	SmokeSawWrong = "wrong" // every value is one more than it should be
	SmokeSawOther = "neither"
)

// SmokeResult says what came back for one fake.
type SmokeResult struct {
	Case string `json:"case"`
	// Want is SmokeSawRight or SmokeSawWrong.
	Want string `json:"want"`
	// Saw is one of the three; empty when there was no readable answer.
	Saw string `json:"saw"`
	// Holds is true when the two agree.
	Holds bool `json:"holds"`
	// Why says what was seen instead.
	Why string `json:"why,omitempty"`
}

// Smoke tests the way between a candidate and Plumbline, before the engine
// behind it is judged: a right answer must be read as right and a wrong one be
// seen as wrong, and the right one again after that, so that no answer is an
// earlier one's. The candidate must know the two fakes ([engine.SmokeRight],
// [engine.SmokeWrong]). Idea: the smoke command of bowtie,
// https://github.com/bowtie-json-schema/bowtie.
//
// The error is the run's: a program that can't be found, a cancelled context.
func Smoke(ctx context.Context, c engine.Candidate) ([]SmokeResult, error) {
	info, infoErr := c.Info(ctx)
	if infoErr != nil && (!candidatesFault(infoErr) || ctx.Err() != nil) {
		return nil, fmt.Errorf("conformance: smoke: candidate: %w", infoErr)
	}
	right, wrong := engine.SmokeRight(), engine.SmokeWrong()
	out := []SmokeResult{
		{Case: right.Name, Want: SmokeSawRight},
		{Case: wrong.Name, Want: SmokeSawWrong},
		{Case: right.Name, Want: SmokeSawRight},
	}
	for i, k := range []engine.Case{right, wrong, right} {
		r := &out[i]
		err := infoErr
		if err == nil {
			r.Saw, err = smokeAnswer(ctx, c, k, info)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var setup *engine.SetupError
		if errors.As(err, &setup) {
			return nil, fmt.Errorf("conformance: smoke: candidate: %w", err)
		}
		if err != nil {
			r.Why = err.Error()
		}
		if r.Holds = r.Saw == r.Want; !r.Holds && r.Why == "" {
			r.Why = fmt.Sprintf("got the answer that is %s, want the one that is %s", r.Saw, r.Want)
		}
	}
	return out, nil
}

// smokeAnswer says what the candidate's answer to a fake is; with SmokeSawOther
// the error says where it differs.
func smokeAnswer(ctx context.Context, c engine.Candidate, k engine.Case, info engine.Info) (saw string, err error) {
	resp, err := c.Run(ctx, engine.Request{Case: k})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, resp.Close()) }()
	var tables []smokeTable
	if l := resp.Layers; l != nil {
		h := l.Header()
		if h.Fingerprint != dumpfmt.Fingerprint(k.Text) || h.Mode != engine.CaptureModeIncremental {
			return SmokeSawOther, fmt.Errorf("layers: fingerprint and capture mode: got 0x%016X and %d, want 0x%016X and %d",
				h.Fingerprint, h.Mode, dumpfmt.Fingerprint(k.Text), engine.CaptureModeIncremental)
		}
		tables = append(tables, smokeTable{"layers", resp.Files.Layers, info.Layers, engine.SmokeRows(k), h.Rows, h.Width, func(i int, dst []float64) error {
			_, err := l.Row(i, dst)
			return err
		}})
	} else if info.Layers != "" {
		return SmokeSawOther, errors.New("layers: got no dump, though the side declares them")
	}
	if l := resp.Logits; l != nil {
		rows, vocab := l.Shape()
		tables = append(tables, smokeTable{"logits", resp.Files.Logits, info.Logits, engine.SmokeLogits(k), rows, vocab, l.Row})
	} else if info.Logits != "" {
		return SmokeSawOther, errors.New("logits: got no dump, though the side declares them")
	}
	if len(tables) == 0 {
		return SmokeSawOther, errors.New("got neither layers nor logits")
	}
	for _, t := range tables {
		now, err := t.judge(k)
		if err != nil {
			return SmokeSawOther, err
		}
		if saw != "" && now != saw {
			return SmokeSawOther, fmt.Errorf("%s: got the answer that is %s beside %s that are %s", t.name, now, tables[0].name, saw)
		}
		saw = now
	}
	return saw, nil
}
