package main

import (
	"context"
	"errors"
	"math"
	"os"

	"github.com/spf13/cobra"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden"
	"github.com/plumbline-go/plumbline/tools/internal/bisect"
	"github.com/plumbline-go/plumbline/tools/internal/margins"
)

type marginsFlags struct {
	ref, cand, groups string
	top               int
	tieBand           float64
	tieBandGiven      bool
}

func newMargins(a *app) *cobra.Command {
	var f marginsFlags
	cmd := &cobra.Command{
		Use:   "margins --ref FOLDER --cand FOLDER",
		Short: "Compare the logit dumps of two folders token by token",
		Long: `Prints, for every case of the reference folder and every output token: both sides' tokens;
the margin of the reference's largest logit over its second and over the candidate's pick, in
standard deviations of the reference's row (z); the pick's rank in the reference's order; its
regret, i.e. the log-probability it loses (nats); KL(reference || candidate) in nats; Spearman
over the vocabulary and over the reference's --top tokens; the largest |z-difference| in those.

Both sides decode freely: after the first token that differs they read different inputs. Those
positions are printed and marked, and the first summary doesn't count them. The second one
counts every position, as a report without the cut would.

Each comparable pick has a class: MATCH, the same token; TIE-FLIP, another one within the tie
band of the reference's; DRIFT, within 3 times the band; WRONG, beyond. --tie-band Z sets the
band in z; without it, it is 3 times the candidate's own noise, at most 0.5, and the output says
which. (gate has a yardstick, and so a band for each row; there WRONG begins at 2 bands.)

Int32 logits have no unit. Ranks, z and Spearman need none. For KL the candidate's scale is
estimated once over all comparable positions; "KL own" takes every row at the scale that fits it
best, for an engine whose rows each have a unit of their own.

The tokens are output_ids of NAME.json; where a side doesn't tell them, the largest logit of each
row, the lowest index on ties. Outputs of different length are compared as far as both go, when
the shorter one ends with a stop id.

--groups FILE is a JSON object {"group": ["case", …]}: the summaries by group, the cases in that
order.

Exit codes: 0 measured (no verdict: there is no yardstick here, gate has one); 1 a pick is WRONG,
or a dump of the candidate is broken, of another prompt or vocabulary, or doesn't fit its tokens;
2 the run itself broke, a broken reference dump included; 3 nothing could be compared.`,
		Example: `  plumbline margins --ref goldens --cand dumps
  plumbline margins --ref goldens --cand dumps --groups groups.json --top 20
  plumbline margins --ref goldens --cand dumps --tie-band 0.3 --json`,
		Args: exactArgs(0, "none: the folders are flags"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.tieBandGiven = cmd.Flags().Changed("tie-band")
			return runMargins(cmd.Context(), a, f)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.ref, "ref", "", "dump folder of the reference (required)")
	fl.StringVar(&f.cand, "cand", "", "dump folder of the candidate (required)")
	fl.IntVar(&f.top, "top", 50, "the reference's N largest logits, for the top-N figures")
	fl.Float64Var(&f.tieBand, "tie-band", 0, "largest margin of a tie, in standard deviations of the reference's row (default: derived)")
	fl.StringVar(&f.groups, "groups", "", "JSON file that names groups of cases")
	return cmd
}

// marginReport is everything that margins found.
type marginReport struct {
	*margins.Result
	groups               []bisect.Group // nil when none were given
	band                 golden.Budget
	candidate, reference engine.Info
}

func runMargins(ctx context.Context, a *app, f marginsFlags) error {
	if err := need([2]string{"ref", f.ref}, [2]string{"cand", f.cand}); err != nil {
		return err
	}
	switch {
	case f.top < 2: // one token has no order
		return usageErrorf("--top: got %d, want at least 2", f.top)
	case f.tieBandGiven && (!(f.tieBand >= 0) || math.IsInf(f.tieBand, 0)):
		return usageErrorf("--tie-band: got %v, want 0 or more standard deviations", f.tieBand)
	}
	var groups []bisect.Group
	if f.groups != "" {
		data, err := os.ReadFile(f.groups)
		if err != nil {
			return err
		}
		if groups, err = bisect.ParseGroups(f.groups, data); err != nil {
			return err
		}
	}
	ref, err := dumpfmt.OpenFolder(f.ref)
	if err != nil {
		return err // the golden's fault, or the flag's
	}
	cand, err := dumpfmt.OpenFolder(f.cand)
	if err != nil {
		return a.noMargins(f.cand, infoOf(ref), candidateFolderError(err))
	}
	r := &marginReport{groups: groups, candidate: infoOf(cand), reference: infoOf(ref)}
	if r.Result, err = a.compareMargins(ctx, cand, ref, f.top); err != nil {
		return err
	}
	if err := r.checkGroups(); err != nil {
		return err
	}
	r.band = r.DefaultTieBand()
	if f.tieBandGiven {
		r.band = golden.Budget{Value: f.tieBand, Source: "the flag --tie-band", Multiple: 1, Why: "set by whoever ran this"}
	}
	r.Classify(r.band.Value)
	if err := a.showMargins(r); err != nil {
		return err
	}
	return exitWith(r.exitCode())
}

func (a *app) compareMargins(ctx context.Context, cand, ref *dumpfmt.Folder, top int) (*margins.Result, error) {
	task := a.progress().Start("margins", len(ref.Cases()))
	defer task.End()
	return margins.Compare(ctx, cand, ref, top, task.Step)
}

// checkGroups refuses groups with a case that neither folder has.
func (r *marginReport) checkGroups() error {
	var known []bisect.Case
	for i := range r.Cases {
		known = append(known, bisect.Case{Name: r.Cases[i].Name})
	}
	return bisect.CheckGroups(r.groups, known)
}

// ordered are the cases in the order of the groups, then those in none.
func (r *marginReport) ordered() (cases []*margins.Case, groupOf map[string]string) {
	groupOf = map[string]string{}
	byName := map[string]*margins.Case{}
	for i := range r.Cases {
		byName[r.Cases[i].Name] = &r.Cases[i]
	}
	for _, g := range r.groups {
		for _, name := range g.Cases {
			groupOf[name] = g.Name
			cases = append(cases, byName[name])
		}
	}
	for i := range r.Cases {
		if _, ok := groupOf[r.Cases[i].Name]; !ok {
			cases = append(cases, &r.Cases[i])
		}
	}
	return cases, groupOf
}

// sets are the groups, and everything.
func (r *marginReport) sets() []margins.Group {
	var out []margins.Group
	for _, g := range r.groups {
		out = append(out, margins.Group(g))
	}
	return append(out, r.Everything(bisect.AllGroup))
}

// compared counts the cases with figures.
func (r *marginReport) compared() int {
	n := 0
	for i := range r.Cases {
		if r.Cases[i].Compared() {
			n++
		}
	}
	return n
}

// exitCode weighs all cases: a broken reference breaks the run, a broken
// candidate or a wrong pick doesn't conform, and nothing compared is never a
// success.
func (r *marginReport) exitCode() int {
	code := exitDone
	for i := range r.Cases {
		if err := r.Cases[i].Err; err != nil {
			if c := marginsFaultCode(err); c == exitBroken || code == exitDone {
				code = c
			}
		}
	}
	switch {
	case code == exitDone && r.Wrong() > 0:
		return exitFails
	case code == exitDone && r.compared() == 0:
		return exitNotJudged
	}
	return code
}

// marginsFaultCode is 1 for the candidate's faults and 2 for everything else, an
// error of the system's included.
func marginsFaultCode(err error) int {
	var f *margins.Fault
	if errors.As(err, &f) && f.Side == margins.Candidate {
		return exitFails
	}
	return exitBroken
}

// conclusion says no more than margins can: that the candidate fails, or nothing.
func (r *marginReport) conclusion() conformance.Conclusion {
	for i := range r.Cases {
		if err := r.Cases[i].Err; err != nil && marginsFaultCode(err) == exitFails {
			return conformance.Fails
		}
	}
	if r.Wrong() > 0 {
		return conformance.Fails
	}
	return conformance.NothingJudged
}
