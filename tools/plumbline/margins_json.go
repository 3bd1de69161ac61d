package main

import (
	"errors"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden"
	"github.com/plumbline-go/plumbline/tools/internal/margins"
)

// marginsSchema is the version of the object that margins --json prints.
const marginsSchema = 1

// marginsJSON is the object that margins --json prints. Cases and positions have
// the names of the int8 engine owners' report where the figure is theirs
// ("float" is the reference, "int8" the candidate, whatever they are), so that
// what reads theirs reads these.
type marginsJSON struct {
	SchemaVersion int                    `json:"schema_version"`
	Conclusion    conformance.Conclusion `json:"conclusion"`
	// Failures say what a conclusion "fails" rests on.
	Failures  []string    `json:"failures,omitempty"`
	Power     []string    `json:"power"`
	Notes     []string    `json:"notes,omitempty"`
	Reference engine.Info `json:"ref"`
	Candidate engine.Info `json:"cand"`
	TopN      int         `json:"top_n,omitempty"`
	// TieBand is null when nothing could be compared.
	TieBand   *golden.Budget      `json:"tie_band"`
	Scale     *marginsScaleJSON   `json:"int32_scale"`
	Cases     []marginsCaseJSON   `json:"cases"`
	Summaries marginsSummaryPairs `json:"summaries"`
	Reproduce string              `json:"reproduce"`
}

type marginsScaleJSON struct {
	Value     num `json:"value"`
	Positions int `json:"positions"`
	RowMin    num `json:"row_min"`
	RowMax    num `json:"row_max"`
}

type marginsCaseJSON struct {
	Label    string `json:"label"`
	Group    string `json:"group,omitempty"`
	Question string `json:"question"`
	Int8IDs  []int  `json:"int8_output_ids"`
	FloatIDs []int  `json:"float_output_ids"`
	N        int    `json:"n_positions_compared"`
	NAgree   int    `json:"n_agree"`

	NComparable int                   `json:"n_comparable"`
	FirstFlip   *int                  `json:"first_flip"`
	Notes       []string              `json:"notes,omitempty"`
	Skipped     string                `json:"skipped,omitempty"`
	Error       *marginsErrorJSON     `json:"error,omitempty"`
	Positions   []marginsPositionJSON `json:"positions"`
}

type marginsErrorJSON struct {
	Side    margins.Side `json:"side,omitempty"`
	Kind    margins.Kind `json:"kind,omitempty"`
	File    string       `json:"file,omitempty"`
	Row     *int         `json:"row,omitempty"`
	Message string       `json:"message"`
}

type marginsPositionJSON struct {
	Position             int  `json:"position"`
	FloatToken           int  `json:"float_token"`
	Int8Token            int  `json:"int8_token"`
	Agree                bool `json:"agree"`
	FloatTop1Logit       num  `json:"float_top1_logit"`
	FloatTop2Logit       num  `json:"float_top2_logit"`
	FloatMargin          num  `json:"float_top1_top2_margin"`
	ZMargin              num  `json:"z_top1_top2_margin"`
	FloatLogitOfInt8     num  `json:"float_logit_of_int8_token"`
	FloatMarginToChoice  num  `json:"float_margin_top1_to_int8_choice"`
	Int8RankInFloatOrder int  `json:"int8_token_rank_in_float_order"`
	ZMarginToChoice      num  `json:"z_margin_top1_to_int8_choice"`
	Spearman             num  `json:"spearman_full_vocab"`
	SpearmanTopN         num  `json:"spearman_top_n"`
	MaxAbsZDiffTopN      num  `json:"max_abs_z_diff_top_n"`

	Comparable bool                `json:"comparable"`
	Class      *conformance.Margin `json:"class"` // null after a flip
	Regret     *num                `json:"regret_nats"`
	KL         *num                `json:"kl_nats"`
	KLRowScale *num                `json:"kl_row_scale_nats,omitempty"`
	RelativeL2 *num                `json:"centred_relative_l2"`
	Scale      num                 `json:"scale"`
	NoiseZ     num                 `json:"noise_z"`
}

// marginsSummaryPairs are per group, everything last.
type marginsSummaryPairs struct {
	Comparable []marginsComparableJSON `json:"comparable"`
	All        []marginsNaiveJSON      `json:"all"`
}

type marginsComparableJSON struct {
	Group      string                     `json:"group"`
	Cases      int                        `json:"cases"`
	OfCases    int                        `json:"of_cases"`
	Positions  int                        `json:"positions"`
	Of         int                        `json:"of_positions"`
	Classes    map[conformance.Margin]int `json:"classes"`
	Agree      int                        `json:"agree"`
	KL         *marginsStatsJSON          `json:"kl_nats"`
	KLRowScale *marginsStatsJSON          `json:"kl_row_scale_nats,omitempty"`
	Regret     *marginsStatsJSON          `json:"regret_nats"`
	Spearman   *marginsStatsJSON          `json:"spearman_full_vocab"`
}

type marginsNaiveJSON struct {
	Group       string            `json:"group"`
	Positions   int               `json:"positions"`
	Agree       int               `json:"agree"`
	AgreeMargin *marginsStatsJSON `json:"z_top1_top2_margin_where_agree"`
	FlipMargin  *marginsStatsJSON `json:"z_margin_top1_to_int8_choice_where_differ"`
	FlipRanks   []int             `json:"int8_token_rank_where_differ"`
	Spearman    *marginsStatsJSON `json:"spearman_full_vocab"`
}

type marginsStatsJSON struct {
	N      int `json:"n"`
	Min    num `json:"min"`
	Median num `json:"median"`
	Mean   num `json:"mean"`
	P99    num `json:"p99"`
	Max    num `json:"max"`
}

// marginsStats is nil for a figure that no position has.
func marginsStats(s margins.Stats) *marginsStatsJSON {
	if s.N == 0 {
		return nil
	}
	return &marginsStatsJSON{s.N, num(s.Min), num(s.Median), num(s.Mean), num(s.P99), num(s.Max)}
}

func (r *marginReport) json(reproduce string) *marginsJSON {
	out := &marginsJSON{SchemaVersion: marginsSchema, Conclusion: r.conclusion(), Failures: r.failures(), Power: r.power(),
		Reference: r.reference, Candidate: r.candidate, TopN: r.Top, Cases: []marginsCaseJSON{}, Reproduce: reproduce}
	if out.Power == nil {
		out.Power = []string{}
	}
	if r.band.Holds(0) { // not NaN: something was comparable
		out.TieBand = &r.band
	}
	if s := r.Scale; s != nil {
		out.Scale = &marginsScaleJSON{num(s.Value), s.Positions, num(s.Min), num(s.Max)}
	}
	cases, groupOf := r.ordered()
	for _, c := range cases {
		out.Cases = append(out.Cases, r.caseJSON(c, groupOf[c.Name]))
	}
	for _, g := range r.sets() {
		s, n := r.Comparable(g), r.Naive(g)
		all := map[conformance.Margin]int{}
		for _, class := range classes {
			all[class] = s.Classes[class]
		}
		out.Summaries.Comparable = append(out.Summaries.Comparable, marginsComparableJSON{s.Group, s.Cases, s.OfCases, s.Positions, s.Of, all, s.Agree,
			marginsStats(s.KL), marginsStats(s.KLRowScale), marginsStats(s.Regret), marginsStats(s.Spearman)})
		out.Summaries.All = append(out.Summaries.All, marginsNaiveJSON{n.Group, n.Positions, n.Agree,
			marginsStats(n.AgreeMargin), marginsStats(n.FlipMargin), append([]int{}, n.FlipRanks...), marginsStats(n.Spearman)})
	}
	return out
}

func (r *marginReport) caseJSON(c *margins.Case, group string) marginsCaseJSON {
	out := marginsCaseJSON{Label: c.Name, Group: group, Question: c.Prompt, Int8IDs: append([]int{}, c.CandTokens...), FloatIDs: append([]int{}, c.RefTokens...),
		N: len(c.Positions), NAgree: c.Agree(), NComparable: c.Comparable(), Notes: c.Notes, Skipped: c.Skipped, Positions: []marginsPositionJSON{}}
	if c.Compared() && c.FirstFlip >= 0 {
		out.FirstFlip = &c.FirstFlip
	}
	if c.Err != nil {
		out.Error = &marginsErrorJSON{Message: c.Err.Error()}
		var f *margins.Fault
		if errors.As(c.Err, &f) {
			out.Error.Side, out.Error.Kind, out.Error.File = f.Side, f.Kind, f.File
			if f.Row >= 0 {
				out.Error.Row = &f.Row
			}
		}
	}
	// unit is null where a side's logits have none.
	unit := func(x float64, has bool) *num {
		if !has {
			return nil
		}
		n := num(x)
		return &n
	}
	for i := range c.Positions {
		p := &c.Positions[i]
		j := marginsPositionJSON{Position: p.Index, FloatToken: p.RefToken, Int8Token: p.CandToken, Agree: p.Agree(),
			FloatTop1Logit: num(p.Top1), FloatTop2Logit: num(p.Top2), FloatMargin: num(p.Margin), ZMargin: num(p.ZMargin),
			FloatLogitOfInt8: num(p.Choice), FloatMarginToChoice: num(p.ChoiceMargin), Int8RankInFloatOrder: p.Rank, ZMarginToChoice: num(p.ZChoice),
			Spearman: num(p.Spearman), SpearmanTopN: num(p.SpearmanTop), MaxAbsZDiffTopN: num(p.MaxZDiffTop),
			Comparable: p.Comparable(), Scale: num(p.Scale), NoiseZ: num(p.Noise),
			Regret: unit(p.Regret, !r.RefInt32), KL: unit(p.KL, !r.RefInt32), KLRowScale: unit(p.KLRowScale, !r.RefInt32 && r.CandInt32),
			RelativeL2: unit(p.CentredL2, !r.RefInt32 && !r.CandInt32)}
		if p.Comparable() {
			j.Class = &p.Class
		}
		out.Positions = append(out.Positions, j)
	}
	return out
}

// noMargins prints the JSON object for a candidate's folder that can't be
// compared as a whole, and returns err. Where err is the run's own fault, there
// is no object.
func (a *app) noMargins(folder string, reference engine.Info, err error) error {
	var e *exitError
	if !a.json || !errors.As(err, &e) {
		return err
	}
	out := &marginsJSON{SchemaVersion: marginsSchema, Conclusion: conformance.NothingJudged, Power: []string{}, Notes: []string{err.Error()},
		Reference: reference, Cases: []marginsCaseJSON{}, Reproduce: a.commandLine(),
		Summaries: marginsSummaryPairs{Comparable: []marginsComparableJSON{}, All: []marginsNaiveJSON{}}}
	if side, readErr := dumpfmt.ReadEngineFile(folder); readErr == nil {
		out.Candidate = infoOfFile(side)
	}
	if e.code == exitFails {
		out.Conclusion, out.Failures = conformance.Fails, []string{err.Error()}
	}
	if failed := a.emitJSON(out); failed != nil {
		return failed
	}
	return err
}
