package conformance

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
)

// hashOf is over all that shards of one run must agree on.
func (p *runPlan) hashOf(cfg *Config, checks []*Check, rep *Report) (string, error) {
	type planned struct {
		Name  string
		Text  string
		IDs   []int
		Stop  []int
		Shard int
	}
	in := struct {
		Schema               int
		Tool                 ToolInfo
		Reference, Candidate engine.Info
		Golden               string
		Cases                []planned
		Together             []int
		Closely              []bool
		Owner                map[runPart]int
		Checks               []string
		Waivers              []Waiver
		Skips                []CheckSkip
		Features             []Feature
		Budgets              Budgets
		Probes               []engine.Probe
		DecodeSteps, Total   int
		HasCandidate         bool
		OwnCases             bool
	}{Schema: SchemaVersion, Tool: rep.Tool, Reference: rep.Reference, Candidate: rep.Candidate, Together: p.together, Closely: p.closely,
		Owner: p.owner, Waivers: cfg.Waivers, Skips: cfg.Skip, Features: rep.Features, Budgets: cfg.budgets(), Probes: cfg.Probes, DecodeSteps: cfg.DecodeSteps, Total: p.shard.Total,
		HasCandidate: cfg.Candidate != nil, OwnCases: cfg.Cases == nil}
	if cfg.Golden != nil {
		in.Golden = cfg.Golden.Name()
	}
	for i, c := range p.cases {
		in.Cases = append(in.Cases, planned{c.Name, c.Text, c.TokenIDs, c.Stop, p.shardOf[i]})
	}
	for _, c := range checks {
		in.Checks = append(in.Checks, c.ID)
	}
	b, err := json.Marshal(in)
	if err != nil {
		return "", fmt.Errorf("conformance: shard: plan: %w", err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}
