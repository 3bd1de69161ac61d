package conformance

import (
	"context"
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
)

// places reads what a candidate offers at every position. Where it gives no layer
// dump, its rows at the last prompt position are one.
func (g *gatherer) places(ev *Evidence, resp *engine.Response) error {
	if resp.Probes == nil || (g.needs&NeedProbes == 0 && resp.Layers != nil) {
		return nil
	}
	limit := len(ev.Case.TokenIDs) + max(len(resp.OutputIDs), 0)
	p, err := readPlaces(resp.Probes, ev.Arch, len(ev.Case.TokenIDs), limit, resp.Files.Probes)
	if err != nil {
		return fmt.Errorf("conformance: case %s: probes %s: %w", ev.Case.Name, resp.Files.Probes, err)
	}
	ev.Places = p
	ev.placesIDs = append(append([]int(nil), ev.Case.TokenIDs...), resp.OutputIDs...)
	return nil
}

// captureOfPlaces is the layer dump that places hold, nil when a row is missing.
func captureOfPlaces(ev *Evidence) *Capture {
	rows := ev.Places.lastRows(ev.Arch.Layers, len(ev.Case.TokenIDs)-1)
	if rows == nil {
		return nil
	}
	c := asCapture(rows, ev)
	c.File = ev.Places.File
	return c
}

// probeProfile measures the candidate's places.
func (g *gatherer) probeProfile(ctx context.Context, ev *Evidence) error {
	a := arithmeticOf(ev.Declared)
	t, factors, err := g.layerTruth(a)
	if err != nil {
		return err
	}
	t.headDim, t.headMargin = ev.Arch.HeadDimOf, g.budgets.SwapMargin.Value
	p, err := probeProfileOf(ctx, t, ev.Places, ev.Arch, ev.placesIDs)
	if err != nil {
		if why, none := noEmulation(err); none {
			ev.NoProfile = why
			return nil
		}
		return err
	}
	p.Prompt, p.Factors, p.SchemeUnknown = len(ev.Case.TokenIDs), factors, a.unknown
	p.floatFactors = g.budgets.OwnRowsFloat
	p.float, p.weightsKnown = a.float, a.scheme.FloatWeights && a.unknown == ""
	ev.ProbeProfile, ev.layerRun = p, t.run
	return nil
}

// layerTruth is the truth and the yardstick for layers on given rows.
func (g *gatherer) layerTruth(a arithmetic) (layerTruth, Factors, error) {
	if a.float {
		return g.floatLayers()
	}
	yard := g.cfg.Yardstick
	if yard == nil {
		return layerTruth{}, Factors{}, noYardstick(g.declared)
	}
	ref := g.cfg.Reference
	t := layerTruth{floor: roundingOf("float32"), norm: ref.FinalNorm}
	t.run = func(ctx context.Context, n int, in, mid [][]float64) (want, own engine.LayerRun, err error) {
		if want, err = ref.LayerAll(ctx, n, in, mid); err != nil {
			return nil, nil, err
		}
		own, err = yard.EmulateLayer(ctx, a.scheme, n, in, mid)
		return want, own, emulating(err)
	}
	t.embed = func(ctx context.Context, ids []int) (want, own [][]float64, err error) {
		if want, err = embeddings(ref, ids); err != nil {
			return nil, nil, err
		}
		own, err = yard.EmulateEmbedding(ctx, a.scheme, ids)
		return want, own, emulating(err)
	}
	factors := g.budgets.OwnRowsInt8
	switch {
	case a.unknown != "":
		factors = g.budgets.OwnRowsUnknown
	case a.scheme.FloatWeights:
		factors = g.budgets.OwnRowsKnown
	case a.scheme.RowsInt8:
		factors = g.budgets.OwnRowsScaled
	}
	return t, factors, nil
}

// floatLayers has float64 as the truth and float32 as the yardstick.
func (g *gatherer) floatLayers() (layerTruth, Factors, error) {
	double, err := g.shadow()
	if err != nil {
		return layerTruth{}, Factors{}, fmt.Errorf("float64 yardstick: %w", err)
	}
	single, err := g.single()
	if err != nil {
		return layerTruth{}, Factors{}, fmt.Errorf("float32 yardstick: %w", err)
	}
	return layerTruth{
		floor: roundingOf("float32"),
		norm:  double.FinalNorm,
		run: func(ctx context.Context, n int, in, mid [][]float64) (want, own engine.LayerRun, err error) {
			if want, err = double.LayerAll(ctx, n, in, mid); err != nil {
				return nil, nil, err
			}
			own, err = single.LayerAll(ctx, n, in, mid)
			return want, own, err
		},
		embed: func(_ context.Context, ids []int) (want, own [][]float64, err error) {
			want, err = embeddings(double, ids)
			return want, want, err
		},
	}, g.budgets.OwnRowsFloat, nil
}

func embeddings(ref engine.Reference, ids []int) ([][]float64, error) {
	out := make([][]float64, len(ids))
	for i, id := range ids {
		row, err := ref.Embedding(id)
		if err != nil {
			return nil, err
		}
		out[i] = row
	}
	return out, nil
}

// prefixes puts the dumps of prefixes together, in runs whose candidate gave no
// probes of the whole prompt.
func (g *gatherer) prefixes(ctx context.Context, evs []*Evidence) error {
	if g.needs&NeedProbes == 0 {
		return nil
	}
	byIDs := map[string]*Evidence{}
	for _, ev := range evs {
		if ev.Profile != nil {
			byIDs[fmt.Sprint(ev.Case.TokenIDs)] = ev
		}
	}
	inside := map[*Evidence]bool{} // of a longer chain, which says all that it would
	for _, i := range longestFirst(casesIn(evs)) {
		ev := evs[i]
		if ev.Profile == nil || ev.Places != nil || inside[ev] {
			continue
		}
		p := fromPrefixes(ev, byIDs)
		if p == nil {
			continue
		}
		ids := ev.Case.TokenIDs
		for t := range ids {
			inside[byIDs[fmt.Sprint(ids[:t+1])]] = true
		}
		ev.Places, ev.placesIDs = p, ids
		if err := g.probeProfile(ctx, ev); err != nil {
			return fmt.Errorf("conformance: case %s: from the dumps of its prefixes: %w", ev.Case.Name, err)
		}
	}
	return nil
}

func casesIn(evs []*Evidence) []engine.Case {
	out := make([]engine.Case, len(evs))
	for i, ev := range evs {
		out[i] = ev.Case
	}
	return out
}
