package conformance

import (
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/plumbline-go/plumbline/engine"
)

// SchemaVersion is the version of the report's JSON, whose schema package
// conformance/report publishes. Version 1 said nothing of the checks that passed.
const SchemaVersion = 2

// Result is one check on one case.
type Result struct {
	ID string `json:"id"`
	// Case is the case's name, or "*" for a verdict over all cases.
	Case     string    `json:"case"`
	Side     Side      `json:"side"`
	Level    Level     `json:"level"`
	Status   Status    `json:"status"`
	Kind     Kind      `json:"kind,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Rule     string    `json:"rule,omitempty"`
	Findings []Finding `json:"findings,omitempty"`
	// Waived is set on a failure that a waiver accepts: it doesn't count as one, and
	// neither as a verdict of the check.
	Waived *Waiver `json:"waived,omitempty"`
}

// CaseVerdict is what one case says by itself.
type CaseVerdict struct {
	FirstBadRow *int          `json:"first_bad_row"`
	Source      *engine.Probe `json:"source"`
	// FirstBadPosition is as in Report.
	FirstBadPosition *int `json:"first_bad_position"`
	// Judged is false for a case that gave no values, with the reason.
	Judged bool   `json:"judged"`
	Reason string `json:"reason,omitempty"`
	// Inputs is the FNV-1a 64 of the case's text and of its token ids, one after the
	// other: a case of the same name that has others is another case.
	Inputs string `json:"inputs,omitempty"`
	// File is the file at fault, when one is.
	File string `json:"file,omitempty"`
	// Logits has one entry per output token; empty for a case whose logits were
	// not compared.
	Logits []LogitStep `json:"logits,omitempty"`
	// Depth is the error along the depth of the model, one entry per row; empty
	// for a case that was not judged by value.
	Depth []DepthRow `json:"depth,omitempty"`
	// Probes are the places offered at every position, in depth order.
	Probes []ProbeRow `json:"probes,omitempty"`
}

// ProbeRow is the error of one place over the positions, on the candidate's own
// rows. Errors are shares of the layer's update, or of the place itself where it
// is not the residual stream.
type ProbeRow struct {
	Probe engine.Probe `json:"probe"`
	// Error is over all positions but 0, Ratio the same over the yardstick's.
	Error Number `json:"error"`
	Ratio Number `json:"ratio"`
	// WorstPosition has the largest ratio, WorstRatio.
	WorstPosition int    `json:"worst_position"`
	WorstRatio    Number `json:"worst_ratio"`
	// Gain is the share of the half's own update in the error; null where there
	// are too few positions to tell.
	Gain *Number `json:"gain,omitempty"`
}

// DepthRow is the error of one row.
type DepthRow struct {
	Row   int          `json:"row"`
	Probe engine.Probe `json:"probe"`
	// Accumulated is the relative L2 from the reference's row, AccumulatedRatio
	// the same over the yardstick's.
	Accumulated      Number `json:"accumulated"`
	AccumulatedRatio Number `json:"accumulated_ratio"`
	NormRatio        Number `json:"norm_ratio"`
	// Update is what the reference's layer before this row adds, over the row: both
	// norms. null for row 0.
	Update *Number `json:"update,omitempty"`
	// Local is the error that the layer before this row introduced, as a share
	// of its update; null for row 0, which no layer wrote, and where a row can't
	// be measured.
	Local      *Number `json:"local"`
	LocalRatio *Number `json:"local_ratio"`
	// LocalAllPositions is true when Local is over all positions, with keys and values of
	// the candidate's own rows; else it is that of the last position on the
	// reference's cache.
	LocalAllPositions bool `json:"local_all_positions,omitempty"`
}

// LogitStep is one row of logits beside the reference's, along the candidate's
// own tokens. Probabilities and margins are in nats.
type LogitStep struct {
	Step  int    `json:"step"`
	Class Margin `json:"class"`
	// Top is the reference's token and Pick the candidate's, at place Rank of the
	// reference's row, counted from 1.
	Top  int `json:"top"`
	Pick int `json:"pick"`
	Rank int `json:"rank"`
	// Margin is the reference's, Regret what Pick loses, TieBand what a tie may
	// lose.
	Margin  Number `json:"margin"`
	Regret  Number `json:"regret"`
	TieBand Number `json:"tie_band"`
	// KL is KL(reference || candidate), Error the relative L2 of the row without
	// its mean, ErrorRatio the same over the yardstick's.
	KL         Number `json:"kl"`
	YardKL     Number `json:"yardstick_kl"`
	Error      Number `json:"relative_l2"`
	ErrorRatio Number `json:"relative_l2_ratio"`
	// Scale is the norm of the candidate's row over the reference's; for integer
	// logits, the value of one unit.
	Scale Number `json:"scale"`
}

func stepsOf(p *LogitProfile) []LogitStep {
	if p == nil {
		return nil
	}
	out := make([]LogitStep, len(p.Rows))
	for i, r := range p.Rows {
		out[i] = LogitStep{Step: i, Class: r.Class, Top: r.Top, Pick: r.Pick, Rank: r.Rank,
			Margin: Number(r.Margin), Regret: Number(r.Regret), TieBand: Number(r.Band),
			KL: Number(r.KL.Got), YardKL: Number(r.KL.Yard), Error: Number(r.Error.Got), ErrorRatio: Number(r.Error.Ratio()), Scale: Number(r.Scale)}
	}
	return out
}

func depthOf(p *Profile, exact *ProbeProfile) []DepthRow {
	if p == nil {
		return nil
	}
	out := make([]DepthRow, len(p.Accumulated))
	for i, m := range p.Accumulated {
		out[i] = DepthRow{Row: i, Probe: engine.RowProbe(i), Accumulated: Number(m.Got),
			AccumulatedRatio: Number(m.Ratio()), NormRatio: Number(p.NormRatio[i])}
		if i > 0 {
			update := Number(p.Update[i-1])
			out[i].Update = &update
		}
		if m.Missing {
			out[i].Accumulated, out[i].AccumulatedRatio = Number(math.NaN()), Number(math.NaN())
		}
		if i > 0 && !p.Local[i-1].Missing {
			local, ratio := Number(p.Local[i-1].Got), Number(p.Local[i-1].Ratio())
			out[i].Local, out[i].LocalRatio = &local, &ratio
		}
		if i > 0 && exact != nil && exact.Layers[i-1].Local.measured() {
			m := exact.Layers[i-1].Local.All
			local, ratio := Number(m.Got), Number(m.Ratio())
			out[i].Local, out[i].LocalRatio, out[i].LocalAllPositions = &local, &ratio, true
		}
	}
	return out
}

func probesOf(p *ProbeProfile) []ProbeRow {
	if p == nil {
		return nil
	}
	var out []ProbeRow
	for n, l := range p.Layers {
		for _, part := range engine.Parts() {
			m, ok := l.Parts[part]
			if !ok || !m.measured() {
				continue
			}
			at, r := m.worst()
			row := ProbeRow{Probe: engine.Block(n, part), Error: Number(m.All.Got), Ratio: Number(m.All.Ratio()), WorstPosition: at, WorstRatio: Number(r)}
			if g, ok := l.Gains[part]; ok {
				gain := Number(g.Got)
				row.Gain = &gain
			}
			out = append(out, row)
		}
	}
	return out
}

// NotJudged is a Core check that was judged on no case, or left out of one on request.
type NotJudged struct {
	ID string `json:"id"`
	// Case is what it was left out of, "*" being the verdict over all cases; empty for a
	// check that was judged nowhere.
	Case     string `json:"case,omitempty"`
	WouldRun string `json:"would_run_with"`
}

// Report is the outcome of a run.
type Report struct {
	SchemaVersion int        `json:"schema_version"`
	Conclusion    Conclusion `json:"conclusion"`
	// FirstBadRow is the dump row over all cases, null when no row is bad.
	FirstBadRow *int  `json:"first_bad_row"`
	Kind        *Kind `json:"kind"`
	// FirstBadPosition is the first position that is wrong at the source, counted
	// from 0: 0 or 1 for a layer that is wrong everywhere, more for a fault of the
	// cache or of a position. null where only last tokens were dumped.
	FirstBadPosition *int `json:"first_bad_position"`
	// Power says what these dumps can't show.
	Power []string `json:"power"`
	// Source is the most upstream source; Sources are all independent ones.
	Source  *engine.Probe  `json:"source"`
	Sources []engine.Probe `json:"sources"`
	// Notes explain the localisation.
	Notes  []string               `json:"notes,omitempty"`
	Checks []Result               `json:"checks"`
	Cases  map[string]CaseVerdict `json:"cases"`
	// Logits is what all logit rows of the run say together; null when none were
	// compared.
	Logits *LogitSummary `json:"logits,omitempty"`
	// Executed counts the checks of the candidate that came to a verdict.
	Executed  int         `json:"executed"`
	NotJudged []NotJudged `json:"core_not_judged,omitempty"`
	// ReferenceFailed is true when a check of the reference itself failed: then
	// no verdict on a candidate can be trusted.
	ReferenceFailed bool `json:"reference_failed,omitempty"`
	// PartialAllowed is true where whoever ran this accepts a partial verdict: it then
	// is no failure of the run. The conclusion stays what it is.
	PartialAllowed bool   `json:"partial_allowed,omitempty"`
	Reproduce      string `json:"reproduce"`

	Candidate engine.Info `json:"candidate"`
	Reference engine.Info `json:"reference"`
	// Golden is null where the reference was held to no recording.
	Golden *GoldenInfo `json:"golden"`
	Tool   ToolInfo    `json:"tool"`
	// About describes the checks that ran, in the order of the registry.
	About []CheckInfo `json:"about"`
	// DepthBounds are the bounds of Depth; null where no rows were judged by value.
	DepthBounds *DepthBounds `json:"depth_bounds,omitempty"`
	// RouteMargins has the margins of routers, those of all together first.
	RouteMargins []RouteMargins `json:"route_margins,omitempty"`
	// Features is what the candidate claims to offer; null where it claims nothing
	// in particular.
	Features []Feature `json:"features,omitempty"`
	// Waivers are those of the run, used or not; SourceWaived is true when Source and
	// FirstBadRow are those of waived failures.
	Waivers      []WaiverUse `json:"waivers,omitempty"`
	SourceWaived bool        `json:"source_waived,omitempty"`
	// Skips are what was left out on request, by Config.Skip and by Config.Only.
	Skips []CheckSkip `json:"skips,omitempty"`
	// Only are the checks that the run was restricted to; empty for one of all.
	Only []string `json:"only,omitempty"`
	// Baseline is null where the run was compared with no earlier one.
	Baseline *BaselineInfo `json:"baseline,omitempty"`
	// Repeat is null where the build was run once.
	Repeat *RepeatInfo `json:"repeat,omitempty"`
	// Ratchet says how a report that serves as a baseline was made from others, the
	// earliest step first; empty for a run's own.
	Ratchet []RatchetStep `json:"ratchet,omitempty"`
	// Shard is null for a run of all cases.
	Shard *ShardInfo `json:"shard,omitempty"`
	Times *Times     `json:"times,omitempty"`

	// evidence is what merging needs of a shard.
	evidence []byte
}

// WriteJSON writes the report as one indented JSON object.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("conformance: report: %w", err)
	}
	return nil
}

// Failures returns the results of the candidate that failed or gave no answer, but
// for those that are waived or reported only.
func (r *Report) Failures() []Result {
	var out []Result
	for _, c := range r.Checks {
		if c.Side == SideCandidate && c.Waived == nil && c.Level != Provisional && (c.Status == Fail || c.Status == Error) {
			out = append(out, c)
		}
	}
	return out
}
