package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline-go/plumbline/conformance"
)

const shardHelp = `--shard I/N judges one of N parts of the cases, I from 0 to N-1, and plumbline merge
joins the N report folders to the report of the whole run. Without the flag, Bazel's
test sharding (TEST_TOTAL_SHARDS, TEST_SHARD_INDEX, TEST_SHARD_STATUS_FILE) and a
Kubernetes Indexed Job (JOB_COMPLETION_INDEX, with PLUMBLINE_SHARDS set to its
completions) say it; --shard none ignores them. --costs REPORT balances the parts by
the times of an earlier report; all shards of a run need the same one. A shard's exit
code is about its own cases, and 0 where it has none.`

// shardFlags say which part of the cases is judged.
type shardFlags struct{ shard, costs string }

func (f *shardFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.shard, "shard", "", "part of the cases, I/N with I from 0, or none; default what Bazel or Kubernetes say")
	fl.StringVar(&f.costs, "costs", "", "report.json of an earlier run, whose times balance the shards")
}

// shardOf is what the flags and the environment give.
type shardOf struct {
	shard *conformance.Shard
	costs map[string]float64
	// wholeRun is the command that repeats the run of all shards.
	wholeRun string
}

// openShard decides which shard this is.
func (a *app) openShard(cmd *cobra.Command, f *gateFlags) error {
	asked := cmd.Flags().Changed("shard")
	switch {
	case f.exact && (asked && f.shards.shard != "none" || f.shards.costs != ""):
		return usageErrorf("--exact compares two folders as a whole: it takes no --shard and no --costs")
	case f.exact:
		return nil
	case asked && f.shards.shard == "none":
	case asked:
		s, err := parseShard(f.shards.shard)
		if err != nil {
			return err
		}
		a.shard = s
	default:
		s, err := conformance.ShardFromEnv(os.Getenv)
		if err != nil {
			return fmt.Errorf("%w (--shard none ignores the environment)", err)
		}
		a.shard = s
	}
	if f.shards.costs != "" {
		rep, err := readReport("costs", f.shards.costs)
		if err != nil {
			return err
		}
		if a.costs = rep.Costs(); a.costs == nil {
			return fmt.Errorf("--costs %s: got a report without times", f.shards.costs)
		}
	}
	if a.shard == nil {
		return nil
	}
	switch {
	case f.baseline.file != "":
		return usageErrorf("--baseline: a shard's cases are not all; give it to plumbline merge")
	case f.baseline.aa != "" || f.baseline.again:
		return usageErrorf("--aa, --aa-again: noise is measured over all cases, without --shard")
	}
	// That the file is there already is no concern of a program's: a script may have
	// run another before it.
	if err := conformance.AnnounceShard(os.Getenv); err != nil && !errors.Is(err, conformance.ErrRunnerShards) {
		return err
	}
	return nil
}

func parseShard(s string) (*conformance.Shard, error) {
	index, total, ok := strings.Cut(s, "/")
	i, err1 := strconv.Atoi(index)
	n, err2 := strconv.Atoi(total)
	if !ok || err1 != nil || err2 != nil || n < 1 || i < 0 || i >= n {
		return nil, usageErrorf("--shard %s: want I/N with 0 <= I < N, or none: shards count from 0", s)
	}
	return &conformance.Shard{Index: i, Total: n}, nil
}

// args are the flags that repeat this shard alone.
func (f *shardFlags) args(s *conformance.Shard) string {
	if s == nil {
		return ""
	}
	args := []string{"--shard", s.String()}
	if f.costs != "" {
		args = append(args, "--costs", f.costs)
	}
	return " " + shellJoin(args)
}
