package conformance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/plumbline-go/plumbline/engine"
)

// EvidenceFile is the name of the file that merging needs beside a shard's report.
const EvidenceFile = "evidence.bin"

// evidenceMagic is what the file starts with. Its number is that of the layout behind it.
const evidenceMagic = "plumbline shard evidence 1\n"

// shardWire is what the file holds.
type shardWire struct {
	// Shard is ShardInfo without its hash of this.
	Shard ShardInfo
	Tool  ToolInfo
	// Whole is true for a candidate that nothing could be asked: each shard says all
	// there is to say.
	Whole                bool
	Reference, Candidate engine.Info
	HasCandidate         bool
	Golden               *GoldenInfo
	Reproduce            string
	Power                []string
	// OwnRecording is as in said.golden.
	OwnRecording string
	Waivers      []Waiver
	Skips        []CheckSkip
	Only         []string
	Features     []Feature
	Checks       []string
	Arch         engine.Arch
	Budgets      Budgets
	// DecodeSteps is what the candidate was asked for, 0 where it chose that itself.
	DecodeSteps int
	Cases       []caseWire
	// Parts are what the checks said that rest on work of this shard that is no
	// case's, Across what was said of a whole run.
	Parts []outcomeWire
	// Rest is the report's part that is neither: as JSON.
	Rest []byte
}

// restWire are the fields of a report that come from one shard as they are.
type restWire struct {
	RouteMargins []RouteMargins `json:"route_margins"`
}

// keepEvidence makes the file's content, and says in the report which shard it is.
func (r *Report) keepEvidence(ctx context.Context, cfg *Config, plan *runPlan, evs []*Evidence) error {
	s := plan.shard
	w := shardWire{
		Shard: ShardInfo{Index: s.Index, Total: s.Total, Plan: plan.hash, AllCases: len(plan.cases), Cases: len(evs)},
		Tool:  r.Tool, Whole: evs == nil, Reference: r.Reference, Candidate: r.Candidate, HasCandidate: cfg.Candidate != nil, Golden: r.Golden,
		Reproduce: cfg.Reproduce, Power: cfg.Power, OwnRecording: cfg.ownRecording(r.Reference.Name),
		Waivers: cfg.Waivers, Skips: r.Skips, Only: cfg.Only, Features: r.Features, Arch: cfg.Reference.Weights().Arch(), Budgets: cfg.budgets(),
	}
	if cfg.Cases != nil {
		w.DecodeSteps = (&gatherer{cfg: cfg}).decodeSteps()
	}
	byCase := map[string][]outcomeWire{}
	for _, c := range r.Checks {
		o := wireOfOutcome(c.ID, c.Side, Outcome{Status: c.Status, Kind: c.Kind, Reason: c.Reason, Findings: c.Findings})
		if c.Case == "*" {
			w.Parts = append(w.Parts, o) // those over this shard's cases are left unread
			continue
		}
		byCase[c.Case] = append(byCase[c.Case], o)
	}
	for _, c := range r.About {
		w.Checks = append(w.Checks, c.ID)
	}
	for _, part := range runParts {
		if plan.does(part) {
			w.Shard.Parts = append(w.Shard.Parts, string(part))
		}
	}
	own := plan.own()
	stoodOut := map[int]bool{}
	for k, ev := range evs {
		c := wireOf(ev)
		c.Index, c.Outcomes = own[k], byCase[ev.Case.Name]
		for n := range ev.Arch.Layers {
			if stoodOut[n] || !ev.standsOutAt(n) {
				continue // of all cases the first that stands out is asked
			}
			m, err := ev.missesLayers(ctx, n)
			if err != nil {
				return err
			}
			if stoodOut[n] = true; c.Misses == nil {
				c.Misses = map[int]layerMisses{}
			}
			c.Misses[n] = m
		}
		w.Cases = append(w.Cases, c)
	}
	var err error
	if w.Rest, err = json.Marshal(restWire{RouteMargins: r.RouteMargins}); err != nil {
		return fmt.Errorf("conformance: shard: %w", err)
	}
	var b bytes.Buffer
	b.WriteString(evidenceMagic)
	if err := gob.NewEncoder(&b).Encode(w); err != nil {
		return fmt.Errorf("conformance: shard: evidence: %w", err)
	}
	r.evidence = b.Bytes()
	info := w.Shard
	info.Evidence = evidenceHash(r.evidence)
	r.Shard = &info
	return nil
}

func evidenceHash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// EvidencePath is where the evidence of a shard stands beside its report: EvidenceFile for
// report.json, NAME.EvidenceFile for NAME.json.
func EvidencePath(report string) string {
	dir, file := filepath.Split(report)
	if file == "report.json" {
		return dir + EvidenceFile
	}
	return dir + strings.TrimSuffix(file, ".json") + "." + EvidenceFile
}

// HasEvidence reports whether the report is that of a shard's run, and not one that was
// read from a file.
func (r *Report) HasEvidence() bool { return r.evidence != nil }

// WriteEvidence writes what [Merge] needs of a shard beside its report, as EvidenceFile
// in the report's folder. A report of a whole run has none.
func (r *Report) WriteEvidence(w io.Writer) error {
	if r.evidence == nil {
		return errors.New("conformance: evidence: got a report that is not a shard's run, want one of a Config with Shard")
	}
	if _, err := w.Write(r.evidence); err != nil {
		return fmt.Errorf("conformance: evidence: %w", err)
	}
	return nil
}

// readEvidence reads the file's content and holds it to the report beside it.
func readEvidence(name string, b []byte, r *Report) (*shardWire, error) {
	if len(b) < len(evidenceMagic) || string(b[:len(evidenceMagic)]) != evidenceMagic {
		return nil, fmt.Errorf("conformance: merge: %s: got another start than %q: it is no evidence of a shard, or one of another version", name, evidenceMagic)
	}
	if got := evidenceHash(b); got != r.Shard.Evidence {
		return nil, fmt.Errorf("conformance: merge: %s: sha256: got %s of %d bytes, want %s as its report says: it is half-written, or belongs to another report",
			name, got, len(b), r.Shard.Evidence)
	}
	var w shardWire
	if err := gob.NewDecoder(bytes.NewReader(b[len(evidenceMagic):])).Decode(&w); err != nil {
		return nil, fmt.Errorf("conformance: merge: %s: %w", name, err)
	}
	want := *r.Shard
	want.Evidence = ""
	if got, want := fmt.Sprintf("%+v", w.Shard), fmt.Sprintf("%+v", want); got != want {
		return nil, fmt.Errorf("conformance: merge: %s: shard: got %s, want %s as its report says", name, got, want)
	}
	return &w, nil
}
