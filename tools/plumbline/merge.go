package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/conformance/report"
)

func newMerge(a *app) *cobra.Command {
	var out, baseline string
	var partial bool
	cmd := &cobra.Command{
		Use:   "merge FOLDER…",
		Short: "Join the reports of a run's shards to the report of the whole run",
		Long: `merge takes the report folders of all shards of one run of plumbline gate, and gives
the report that the run without shards would have given: the same in every byte but for
the times. Medians over the cases, the first bad row and what layers behave like are
found again from what the shards kept beside their reports, in evidence.bin. No model is
needed.

An argument is a report folder, its report.json, or a folder of report folders.

A shard that is missing or there twice, of another run (another model, candidate, case,
check, bound or --costs) or of another build, and one that is half-written or whose two
files don't belong together, are refused: no verdict is given on a part.

Exit codes: 0 conforms; 1 does not conform; 2 the shards can't be joined; 3 nothing, or a
Core check nowhere, could be judged. --allow-partial turns the latter half of 3 into 0.`,
		Example: `  plumbline merge reports/0 reports/1 reports/2 reports/3
  plumbline merge ./reports --out ./report
  plumbline merge ./reports --baseline ./last/report.json
  plumbline merge ./reports --json --allow-partial`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageErrorf("got no argument, want the report folders of the shards")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.merge(args, out, baseline, partial) },
	}
	fl := cmd.Flags()
	fl.StringVar(&out, "out", "", "folder, new or empty, that gets report.json, report.md, junit.xml and report.html")
	fl.StringVar(&baseline, "baseline", "", "report.json of an earlier run that this one must not be worse than")
	fl.BoolVar(&partial, "allow-partial", false, "exit 0 when nothing failed but a Core check was judged nowhere")
	return cmd
}

func (a *app) merge(args []string, out, baseline string, partial bool) error {
	if out != "" {
		if err := emptyOrNew("out", out); err != nil {
			return err
		}
	}
	var shards []conformance.ShardReport
	for _, arg := range args {
		files, err := reportsIn(arg)
		if err != nil {
			return fmt.Errorf("merge: %w", err)
		}
		for _, file := range files {
			s := conformance.ShardReport{Name: file}
			if s.Report, err = report.ReadFile(file); err != nil {
				return fmt.Errorf("merge: %w", err)
			}
			s.Evidence, err = os.ReadFile(conformance.EvidencePath(file))
			if errors.Is(err, fs.ErrNotExist) && s.Report.Shard == nil {
				err = nil // it is no shard, which is what there is to say
			}
			if err != nil {
				return fmt.Errorf("merge: %s: %w: a shard's report is merged by what stands beside it", file, err)
			}
			shards = append(shards, s)
		}
	}
	o := conformance.MergeOptions{AllowPartial: partial, BaselineName: baseline}
	if baseline != "" {
		var err error
		if o.Baseline, err = readReport("baseline", baseline); err != nil {
			return err
		}
	}
	rep, err := conformance.Merge(shards, o)
	if err != nil {
		return err
	}
	return a.conclude(rep, partial, "out", out)
}

// reportsIn are the reports that an argument names: a file, a report folder, or a
// folder of report folders.
func reportsIn(path string) ([]string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		return []string{path}, nil
	}
	own := filepath.Join(path, "report.json")
	if _, err := os.Stat(own); err == nil {
		return []string{own}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		file := filepath.Join(path, e.Name(), "report.json")
		if _, err := os.Stat(file); err == nil {
			out = append(out, file)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: got no report.json in it, and none in its folders", path)
	}
	return out, nil
}
