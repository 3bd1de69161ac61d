package conformance

import "time"

// settling is what turns the results of checks into a conclusion: the same where a run
// ends and where shards of one are merged.
type settling struct {
	waivers      []Waiver
	today        time.Time
	baseline     *Report
	baselineName string
}

func (c *Config) settling() settling {
	return settling{waivers: c.Waivers, today: c.now(), baseline: c.Baseline, baselineName: c.BaselineName}
}

// settle holds the results to what the candidate claims (Report.Features), to the
// waivers and to the baseline, and concludes. A shard is compared with no baseline: its
// cases are not all.
func (r *Report) settle(checks []*Check, s settling) error {
	r.holdToClaims(checks)
	r.waive(s.waivers, s.today)
	r.holdToValues()
	if s.baseline != nil && r.Shard == nil {
		if err := r.HoldToBaseline(s.baseline, s.baselineName); err != nil {
			return err
		}
		r.Notes = append(r.Notes, baselineExpired(s.today)...)
	}
	r.conclude()
	return nil
}
