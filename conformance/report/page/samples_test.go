package page_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

// sample is a report of a model with so many rows and cases; a fault comes in at row
// bad, -1 for none.
func sample(rows, cases, bad int) *conformance.Report {
	rng := rand.New(rand.NewPCG(1, 2))
	r := &conformance.Report{
		SchemaVersion: conformance.SchemaVersion, Conclusion: conformance.Conforms, Power: []string{"every prompt was judged at its last position", "not seen: a fault at earlier positions that the last row does not feel"},
		Sources: []engine.Probe{}, Cases: map[string]conformance.CaseVerdict{}, Reproduce: "plumbline gate --model ./m --candidate ./dumps", Executed: 3 * cases,
		Candidate:   engine.Info{Name: "an engine", Version: "1.4", Layers: engine.LayersInt8Scaled, Logits: engine.LogitsInt32, Weights: "int8", Model: "qwen2"},
		Reference:   engine.Info{Name: "plumbline-reference", DType: "float32", Model: "qwen2"},
		Golden:      &conformance.GoldenInfo{Name: "qwen2-trained", Engine: "transformers", Cases: cases},
		Tool:        conformance.ToolInfo{Version: "v1.2.3", Go: "go1.26", OS: "linux", Arch: "amd64"},
		DepthBounds: &conformance.DepthBounds{Median: conformance.Limit{Value: 2, Source: "2 times the emulation's own error"}, Single: conformance.Limit{Value: 3, Source: "3 times the emulation's own error"}, Cases: 5},
		Times:       &conformance.Times{Started: "2026-01-02T03:04:05Z", Seconds: 12.5, Cases: map[string]conformance.Number{}},
	}
	for _, c := range conformance.Builtin().Checks() {
		i := conformance.CheckInfo{ID: c.ID, Rule: c.Rule, Catches: c.Catches, Level: c.Level, Sides: c.Sides}
		for _, k := range c.Controls {
			i.Controls = append(i.Controls, k.Mutant)
		}
		r.About = append(r.About, i)
	}
	for n := range cases {
		name := fmt.Sprintf("prompt_%03d_capital_of_country", n)
		v := conformance.CaseVerdict{Judged: true, File: "dumps/" + name + ".layers.bin"}
		var local, accumulated []conformance.Finding
		for row := range rows {
			l, a := 1+0.2*rng.Float64(), 1+0.2*rng.Float64()
			switch {
			case bad >= 0 && row == bad:
				l, a = 20+5*rng.Float64(), 2.5+rng.Float64()
			case bad >= 0 && row > bad:
				l, a = 4+2*rng.Float64(), 3.1+rng.Float64()
			}
			d := conformance.DepthRow{Row: row, Probe: engine.RowProbe(row), Accumulated: conformance.Number(a / 10), AccumulatedRatio: conformance.Number(a), NormRatio: 1}
			if row > 0 {
				share, ratio := conformance.Number(l/20), conformance.Number(l)
				d.Local, d.LocalRatio = &share, &ratio
				if l > 3 {
					local = append(local, overLimit(row, "local error", float64(share), 3./20, v.File))
				}
			}
			if a > 3 {
				accumulated = append(accumulated, overLimit(row, "accumulated relative L2", a/10, 0.3, v.File))
			}
			v.Depth = append(v.Depth, d)
		}
		if bad >= 0 {
			at, p := bad, engine.RowProbe(bad)
			v.FirstBadRow, v.Source = &at, &p
		}
		for step := range 8 {
			s := conformance.LogitStep{Step: step, Class: conformance.Match, Margin: conformance.Number(8 * rng.Float64()), TieBand: 0.6, Rank: 1}
			if rng.Float64() < 0.1 {
				s.Class, s.Rank = conformance.TieFlip, 2
				s.Margin = conformance.Number(0.5 * rng.Float64())
				s.Regret = s.Margin
			}
			v.Logits = append(v.Logits, s)
		}
		r.Cases[name] = v
		r.Times.Cases[name] = conformance.Number(rng.Float64())
		add := func(id string, fs []conformance.Finding) {
			res := conformance.Result{ID: id, Case: name, Side: conformance.SideCandidate, Level: conformance.Core, Status: conformance.Pass}
			if len(fs) > 0 {
				res.Status, res.Findings, res.Rule = conformance.Fail, fs, "a rule"
			}
			r.Checks = append(r.Checks, res)
		}
		for _, id := range []string{"ResidualShape", "PromptTokens", "LastTokenEmbed", "LogitRowContract", "LogitCandidate"} {
			add(id, nil)
		}
		add("ResidualCandidate", accumulated)
		add("LocalError", local)
		r.Checks = append(r.Checks, conformance.Result{ID: "StopRule", Case: name, Side: conformance.SideCandidate, Level: conformance.Extended, Status: conformance.Skip,
			Reason: "no stop id was chosen within the budget: the case has no power here"},
			conformance.Result{ID: "ResidualGolden", Case: name, Side: conformance.SideReference, Level: conformance.Extended, Status: conformance.Pass,
				Findings: []conformance.Finding{{Probe: "blocks.3.resid_post", Metric: "relative L2", Got: 1e-6, Limit: conformance.Limit{Value: 5e-6, Source: "10 times the float32 engine's own error"}, At: conformance.AtRow(4)}}})
	}
	r.Logits = &conformance.LogitSummary{Cases: cases, Positions: 8 * cases, Offered: 8 * cases, Match: 8 * cases, Top1Agreement: 1, ErrorRatioMedian: 1.1}
	if bad >= 0 {
		kind, p, row := conformance.KindLayer, engine.RowProbe(bad), bad
		r.Conclusion, r.Kind, r.Source, r.FirstBadRow, r.Sources = conformance.Fails, &kind, &p, &row, []engine.Probe{p}
		r.Notes = []string{"later layers run on the reference's KV cache: their local error stays high behind a source"}
	}
	r.RouteMargins = []conformance.RouteMargins{
		{Name: "deepseek2", Router: "*", Band: 3e-5, Edges: []conformance.Number{1e-5, 2e-5, 4e-5, 8e-5, 1.6e-4, 3.2e-4}, Match: []int{0, 3, 20, 400, 300}, Tie: []int{2, 1, 0, 0, 0}, Flip: []int{0, 0, 1, 0, 0}, Unjudged: 12},
		{Name: "deepseek2", Router: "blocks.3.route_ids", Band: 3e-5, Edges: []conformance.Number{1e-5, 2e-5}, Match: []int{3}, Tie: []int{2}, Flip: []int{0}},
	}
	return r
}

func overLimit(row int, what string, got, limit float64, file string) conformance.Finding {
	return conformance.Finding{Probe: engine.RowProbe(row), Metric: what, Got: conformance.Number(got),
		Limit: conformance.Limit{Value: conformance.Number(limit), Source: "3 times the int8 emulation's own error on the same prompt"},
		At:    conformance.At{Row: row, Channel: -1, File: file}, Detail: fmt.Sprintf("%.2f times the yardstick's error", 3*got/limit)}
}

// partial is a report of a candidate without logits.
func partial() *conformance.Report {
	r := sample(29, 6, -1)
	r.Conclusion, r.Logits, r.RouteMargins, r.Golden, r.Times = conformance.Partial, nil, nil, nil, nil
	r.NotJudged = []conformance.NotJudged{
		{ID: "LogitRowContract", WouldRun: "needs a logit dump, NAME.logits.bin, and its output_ids in at least one case"},
		{ID: "LogitCandidate", WouldRun: "needs a logit dump, NAME.logits.bin, in at least one case"},
	}
	n := 0
	for name, c := range r.Cases {
		c.Logits = nil
		r.Cases[name] = c
	}
	for i, c := range r.Checks {
		if c.ID == "LogitCandidate" || c.ID == "LogitRowContract" {
			r.Checks[i].Status, r.Checks[i].Reason = conformance.Unsupported, "no logits in this case"
			n++
		}
	}
	return r
}

// hostile has in every text what could break a page.
func hostile(text string) *conformance.Report {
	r := sample(4, 2, 2)
	nan := conformance.Number(math.NaN())
	inf := conformance.Number(math.Inf(1))
	p, kind, step := engine.Probe(text), conformance.Kind(text), 3
	r.Conclusion = conformance.Fails
	r.Source, r.Kind, r.Sources = &p, &kind, []engine.Probe{p, p + "x"}
	r.Power, r.Notes, r.Reproduce = []string{text}, []string{text}, text
	r.NotJudged = []conformance.NotJudged{{ID: text, WouldRun: text}}
	r.Candidate = engine.Info{Name: text, Version: text, Layers: text, Logits: text, Weights: text, Activations: text, KVCache: text, DType: text, Model: text}
	r.Reference, r.Golden = r.Candidate, &conformance.GoldenInfo{Name: text, Engine: text}
	r.Tool = conformance.ToolInfo{Version: text, Revision: text, Modified: true, Go: text, OS: text, Arch: text}
	r.Times = &conformance.Times{Started: text, Seconds: nan, Cases: map[string]conformance.Number{text: inf}}
	r.DepthBounds = &conformance.DepthBounds{Median: conformance.Limit{Value: nan, Source: text}, Single: conformance.Limit{Value: inf, Source: text}, Cases: 5}
	f := conformance.Finding{Probe: p, Metric: text, Got: nan, Limit: conformance.Limit{Value: inf, Source: text}, At: conformance.At{Row: 2, Channel: 1, Step: &step, Position: &step, Point: &step, File: text}, Detail: text}
	waiver := conformance.Waiver{Check: text, Case: text, Probe: text, Reason: text, Expires: text}
	r.Waivers = []conformance.WaiverUse{{Waiver: waiver, Used: 1, Problem: text}}
	r.Features = []conformance.Feature{conformance.Feature(text)}
	change := conformance.Change{Check: text, Case: text, Probe: text, Metric: text, Before: nan, After: inf, Limit: conformance.Limit{Value: nan, Source: text}, Detail: text}
	r.Baseline = &conformance.BaselineInfo{Name: text, Candidate: text, Noise: conformance.Limit{Value: nan, Source: text}, NoiseBasis: text, Regressions: []conformance.Change{change}, Improvements: []conformance.Change{change}}
	r.Shard = &conformance.ShardInfo{Index: 0, Total: 2, Plan: text, AllCases: 4}
	r.About = append(r.About, conformance.CheckInfo{ID: text, Rule: text, Catches: []string{text}, Level: conformance.Level(text), Sides: []conformance.Side{conformance.Side(text)}, Controls: []string{text}})
	for _, s := range []conformance.Status{conformance.Fail, conformance.Error, conformance.Pass, conformance.Skip, conformance.Unsupported, conformance.Status(text)} {
		r.Checks = append(r.Checks, conformance.Result{ID: text, Case: text, Side: conformance.SideCandidate, Level: conformance.Core, Status: s, Kind: kind, Reason: text, Rule: text, Findings: []conformance.Finding{f}})
	}
	r.Checks = append(r.Checks, conformance.Result{ID: text, Case: text, Side: conformance.SideCandidate, Status: conformance.Fail, Findings: []conformance.Finding{f}, Waived: &waiver})
	c := r.Cases["prompt_000_capital_of_country"]
	c.Source, c.File, c.Reason, c.FirstBadPosition = &p, text, text, &step
	c.Depth[1].LocalRatio, c.Depth[2].AccumulatedRatio, c.Depth[3].AccumulatedRatio = &nan, inf, nan
	c.Depth[0].Probe = p
	c.Logits = append(c.Logits, conformance.LogitStep{Class: conformance.Margin(text), Margin: nan}, conformance.LogitStep{Class: conformance.Wrong, Margin: inf, Regret: nan, TieBand: nan}, conformance.LogitStep{Class: conformance.Wrong, Margin: 2, Regret: 2, TieBand: nan})
	r.Cases[text] = c
	r.Cases["none"] = conformance.CaseVerdict{Reason: text, File: text}
	r.RouteMargins[0].Name, r.RouteMargins[0].Band = text, nan
	r.RouteMargins[1].Router = text
	return r
}
