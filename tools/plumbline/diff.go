package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden"
	"github.com/plumbline-go/plumbline/golden/kernel"
	"github.com/plumbline-go/plumbline/golden/metric"
)

type diffFlags struct {
	ref, cand, fromCSV, inventory    string
	steps                            string
	firstPos                         int
	csv, summary, plots, title       string
	breach, maxAbs, nrmse, drilldown float64
}

func newDiff(a *app) *cobra.Command {
	var f diffFlags
	def := kernel.DefaultThresholds()
	cmd := &cobra.Command{
		Use:   "diff --ref DIR --cand DIR",
		Short: "Compare the attention tensors of two folders, and hold them to the kernel bound",
		Long: `Compares, for each layer and position, the tensors q_normed, k_normed, v_normed and sdpa_out of a
candidate (a quantised KV cache, another attention kernel) with a reference's: the first breach per op
and of all, ordered by layer, then position, then op; per layer the largest nRMSE of sdpa_out, which
the kernel's own test wants below 0.15 (nRMSE = sqrt(sum sq diff / sum sq ref), float64); and a class:
floor-candidate, bug-candidate or ambiguous.

The tables, KEY NUMBERS and EXPORT are those of the script tq_c0_diff.py, line by line, and so is what
they say where the script is wrong: it leaves missing tensors out, lets a NaN pass, and takes nRMSE 0 for an
all-zero reference. Plumbline's own lines come after them, say where and why the two differ, and decide.

--inventory says which tensors there are: gemma4-30 (built in; the default), a JSON file, or the config.json
of a checkpoint, which tells layers, heads and widths. --steps and --first-pos set the decode steps and the
sequence position of step 1. An inventory file is an object of:
  name, family           text
  layer_types            {"NAME": {"heads": N, "kv_heads": N, "head_dim": N}, …}
  layers, pattern        how many, and the types of the first ones, repeated: ["local", "local", "global"]
  positions              {"first_pos": 22, "steps": [1, 5, …]}
  ops                    [{"name": "q_normed", "label": "q", "kv": false}, …]; default the four above
  bound_op               the op that the kernel bound holds for; default the last
  progression_step       the step of the per-layer table; default 5, or the second
  late_layer             a breach above it needs a closer look; default half the layers
  file                   default "hf2q_{op}_layer{layer:02}_pos{pos:02}.bin"; also {step}
  tensor                 the name inside, where file ends in .npz or .safetensors
positions and layers are required. A config.json keeps the positions and file names of gemma4-30.
Files are raw little-endian float32, [heads, head width], or .npy, .npz, .safetensors, by their extension; q and k are
those behind their norms and before RoPE. In the output pos is the decode step; in file names {pos} is the position in
the sequence, first_pos + step - 1.

--from-csv judges a CSV that was recorded before, without the tensors.

Exit codes: 0 floor: every tensor compared, no breach, the bound holds; 1 a breach, the bound violated, or
any tensor missing, of another size, unreadable or not finite, or a reference that is all zero, or a
recorded CSV that is malformed or holds figures that no two tensors have; 2 the run itself broke; 3 nothing
could be compared.`,
		Example: `  plumbline diff --ref dense --cand tq --csv raw.csv --summary summary.md
  plumbline diff --from-csv raw.csv --nrmse 0.2
  plumbline diff --ref dense --cand tq --inventory model/config.json --steps 1-64 --first-pos 100 --plots plots`,
		Args: exactArgs(0, "none: the folders are flags"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			changed := map[string]bool{}
			for _, name := range []string{"steps", "first-pos", "breach", "max-abs", "nrmse", "drilldown"} {
				changed[name] = cmd.Flags().Changed(name)
			}
			return runDiff(cmd.Context(), a, f, changed)
		},
	}
	a.overwriteFlag(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.ref, "ref", "", "folder of the reference's tensors")
	fl.StringVar(&f.cand, "cand", "", "folder of the candidate's tensors")
	fl.StringVar(&f.fromCSV, "from-csv", "", "judge this recorded CSV instead of two folders")
	fl.StringVar(&f.inventory, "inventory", kernel.Gemma4().Name, "which tensors there are: a built-in name, a JSON file, or a config.json")
	fl.StringVar(&f.steps, "steps", "", "decode steps, as in 1,5,10-20 (default: the inventory's)")
	fl.IntVar(&f.firstPos, "first-pos", 0, "sequence position of decode step 1 (default: the inventory's)")
	fl.StringVar(&f.csv, "csv", "", "write the figures of every tensor to this file")
	fl.StringVar(&f.summary, "summary", "", "write the tables as Markdown to this file")
	fl.StringVar(&f.plots, "plots", "", "write plots of the nRMSE of sdpa_out to this folder, as SVG and PNG")
	fl.StringVar(&f.title, "title", "Candidate vs Reference: Layer-by-Layer Audit", "first line of the summary")
	fl.Float64Var(&f.breach, "breach", def.Breach.Value, "a max abs diff above this is a breach")
	fl.Float64Var(&f.maxAbs, "max-abs", def.MaxAbs.Value, "the kernel test's ceiling on the max abs diff of sdpa_out")
	fl.Float64Var(&f.nrmse, "nrmse", def.NRMSE.Value, "the kernel test's ceiling on the nRMSE of sdpa_out")
	fl.Float64Var(&f.drilldown, "drilldown", def.Drilldown.Value, "without a breach, an nRMSE above this at the last step asks for a closer look")
	return cmd
}

// diffReport is everything that diff found.
type diffReport struct {
	inv     *kernel.Inventory
	t       kernel.Thresholds
	flags   diffFlags
	script  *kernel.Script
	verdict *kernel.Verdict
	heads   []tensorHeads
	grid    [][]float64 // nRMSE of the bound op by layer and position; nil without --plots
}

// tensorHeads is a tensor head by head.
type tensorHeads struct {
	why   string
	key   kernel.Key
	stats []metric.TensorStats
}

func runDiff(ctx context.Context, a *app, f diffFlags, changed map[string]bool) error {
	switch {
	case f.fromCSV != "" && (f.ref != "" || f.cand != ""):
		return usageErrorf("--from-csv: got --ref or --cand too, want either recorded figures or tensors")
	case f.fromCSV == "":
		if err := need([2]string{"ref", f.ref}, [2]string{"cand", f.cand}); err != nil {
			return err
		}
	}
	t, err := diffThresholds(f, changed)
	if err != nil {
		return err
	}
	inv, err := diffInventory(f, changed)
	if err != nil {
		return err
	}
	if err := a.mayWriteDiff(f); err != nil {
		return err
	}
	d := &diffReport{inv: inv, t: t, flags: f}
	var folders [2]kernel.Source
	if f.fromCSV == "" {
		if folders, err = diffFolders(f, inv); err != nil {
			return err
		}
		if sameFolder(f.ref, f.cand) {
			fmt.Fprintf(a.stderr, "plumbline: warning: --ref and --cand are the same folder: nothing can differ\n")
		}
	}
	if err := d.run(ctx, a, folders); err != nil {
		return err
	}
	if f.fromCSV == "" {
		if err := d.lookAtHeads(ctx, folders); err != nil {
			return err
		}
		if sameFolder(f.ref, f.cand) {
			d.verdict.Power = append(d.verdict.Power, "the reference and the candidate are the same folder: nothing can differ")
		}
		if err := d.notLookedAt(); err != nil {
			return err
		}
	}
	if err := d.writeFiles(a); err != nil {
		return err
	}
	if err := a.show(d.json(a.commandLine()), d.print(a.commandLine())); err != nil {
		return err
	}
	return exitWith(d.exitCode())
}

// run compares, or reads what was compared, and judges; the CSV is written on the
// way.
func (d *diffReport) run(ctx context.Context, a *app, folders [2]kernel.Source) (err error) {
	judge := kernel.NewJudge(d.inv, d.t)
	if d.flags.plots != "" {
		d.grid = make([][]float64, len(d.inv.Layers))
		for i := range d.grid {
			d.grid[i] = make([]float64, len(d.inv.Positions))
		}
	}
	var table *kernel.CSVWriter
	var file *dumpfmt.File
	if d.flags.csv != "" {
		if file, err = dumpfmt.Create(d.flags.csv, dumpfmt.WriteOptions{Overwrite: a.overwrite}); err != nil {
			return err
		}
		defer func() { _ = file.Abort() }() // nothing after Commit
		if table, err = kernel.NewCSVWriter(file, d.inv); err != nil {
			return err
		}
	}
	task := a.progress().Start("diff", d.inv.Len())
	defer task.End()
	each := func(r kernel.Row) error {
		if d.grid != nil && r.Op == d.inv.BoundOp {
			d.grid[r.Layer][r.Position] = r.Relative() // no number where there is none, not the script's 0
		}
		if table != nil {
			if err := table.Write(r); err != nil {
				return err
			}
		}
		heads, width := d.inv.Shape(r.Key)
		task.StepBytes(func() string { return d.inv.Coordinates(r.Key) }, 8*int64(heads)*int64(width))
		return judge.Add(r)
	}
	if d.flags.fromCSV != "" {
		f, err := os.Open(d.flags.fromCSV)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // only read
		err = kernel.ReadCSV(f, d.flags.fromCSV, d.inv, each)
		var malformed *kernel.CSVError
		if errors.As(err, &malformed) {
			return &exitError{exitFails, err}
		}
		if err != nil {
			return err
		}
	} else if err := kernel.Compare(ctx, d.inv, folders[0], folders[1], kernel.Options{}, each); err != nil {
		return err
	}
	if file != nil {
		if err := file.Commit(); err != nil {
			return err
		}
	}
	d.script, d.verdict = judge.Verdicts()
	return nil
}

// lookAtHeads reads the tensors again that decided, head by head.
func (d *diffReport) lookAtHeads(ctx context.Context, folders [2]kernel.Source) error {
	look := func(why string, k kernel.Key) error {
		stats, err := kernel.Heads(ctx, d.inv, folders[0], folders[1], k)
		if err != nil {
			return fmt.Errorf("%s, read a second time: %w", d.inv.Coordinates(k), err)
		}
		d.heads = append(d.heads, tensorHeads{why, k, stats})
		return nil
	}
	if b := d.verdict.Overall; b != nil {
		if err := look("first breach", b.Key); err != nil {
			return err
		}
	}
	if k, ok := d.worstBound(); ok && !d.verdict.BoundHolds {
		return look("largest nRMSE", k)
	}
	return nil
}

// notLookedAt says when a folder holds more files than the inventory names, such as
// those of other positions.
func (d *diffReport) notLookedAt() error {
	if d.inv.Tensor != "" || strings.ContainsRune(d.inv.File, filepath.Separator) {
		return nil // archives, or folders in the folder
	}
	for _, side := range [][2]string{{"reference", d.flags.ref}, {"candidate", d.flags.cand}} {
		n, err := countFiles(side[1], filepath.Ext(d.inv.File))
		if err != nil {
			return err
		}
		if n > d.inv.Len() {
			d.verdict.Power = append(d.verdict.Power, fmt.Sprintf("the %s's folder holds %d files, the inventory names %d: the others weren't looked at (--steps, --inventory)",
				side[0], n, d.inv.Len()))
		}
	}
	return nil
}

// countFiles counts names with an extension, in constant memory.
func countFiles(dir, ext string) (int, error) {
	f, err := os.Open(dir)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // only read
	for n := 0; ; {
		names, err := f.Readdirnames(1024)
		for _, name := range names {
			if filepath.Ext(name) == ext {
				n++
			}
		}
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// worstBound is the tensor with the largest nRMSE of the bound op.
func (d *diffReport) worstBound() (kernel.Key, bool) {
	worst, at := math.Inf(-1), -1
	for i, l := range d.verdict.Layers {
		if l.Compared > 0 && l.Max > worst {
			worst, at = l.Max, i
		}
	}
	if at < 0 {
		return kernel.Key{}, false
	}
	return kernel.Key{Layer: at, Position: d.verdict.Layers[at].At, Op: d.inv.BoundOp}, true
}

func (d *diffReport) exitCode() int {
	switch d.verdict.Conclusion {
	case kernel.Conforms:
		return exitDone
	case kernel.NothingJudged:
		return exitNotJudged
	}
	return exitFails
}

// diffThresholds are the defaults, with what the flags say.
func diffThresholds(f diffFlags, changed map[string]bool) (kernel.Thresholds, error) {
	t := kernel.DefaultThresholds()
	for _, o := range []struct {
		flag  string
		value float64
		bound *golden.Budget
	}{{"breach", f.breach, &t.Breach}, {"max-abs", f.maxAbs, &t.MaxAbs}, {"nrmse", f.nrmse, &t.NRMSE}, {"drilldown", f.drilldown, &t.Drilldown}} {
		if !changed[o.flag] {
			continue
		}
		if !(o.value >= 0) || math.IsInf(o.value, 1) {
			return t, usageErrorf("--%s: got %v, want a finite number, not negative", o.flag, o.value)
		}
		*o.bound = kernel.Override(o.value, "--"+o.flag)
	}
	return t, t.Validate()
}

func diffInventory(f diffFlags, changed map[string]bool) (*kernel.Inventory, error) {
	inv, err := kernel.Load(f.inventory)
	if err != nil || !changed["steps"] && !changed["first-pos"] {
		return inv, err
	}
	first := inv.Positions[0].Pos - inv.Positions[0].Step + 1
	if changed["first-pos"] {
		first = f.firstPos
	}
	var steps []int
	if changed["steps"] {
		if steps, err = parseSteps(f.steps); err != nil {
			return nil, err
		}
	} else {
		for _, p := range inv.Positions {
			steps = append(steps, p.Step)
		}
	}
	return inv.WithPositions(kernel.Steps(first, steps...))
}

// parseSteps reads "1,5,10-20".
func parseSteps(s string) ([]int, error) {
	var out []int
	for _, part := range strings.Split(s, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(strings.TrimSpace(from))
		last := first
		if err == nil && isRange {
			last, err = strconv.Atoi(strings.TrimSpace(to))
		}
		if err != nil || first < 1 || last < first || last-first > 1<<24 {
			return nil, usageErrorf("--steps: got %q, want ascending decode steps from 1 on, as in 1,5,10-20", s)
		}
		for n := first; n <= last; n++ {
			if len(out) > 0 && n <= out[len(out)-1] {
				return nil, usageErrorf("--steps: got %q, want ascending decode steps from 1 on, as in 1,5,10-20", s)
			}
			out = append(out, n)
		}
	}
	return out, nil
}

// diffFolders refuses what isn't a folder: a mistyped name must not look like a
// folder from which everything is missing.
func diffFolders(f diffFlags, inv *kernel.Inventory) (out [2]kernel.Source, err error) {
	for i, side := range [2][2]string{{"ref", f.ref}, {"cand", f.cand}} {
		st, err := os.Stat(side[1])
		if err != nil {
			return out, fmt.Errorf("--%s: %w", side[0], err)
		}
		if !st.IsDir() {
			return out, fmt.Errorf("--%s %s: got a file, want a folder of tensors", side[0], dumpfmt.Printable(side[1]))
		}
		out[i] = kernel.Folder(side[1], inv)
	}
	return out, nil
}

func sameFolder(a, b string) bool {
	x, err := os.Stat(a)
	y, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(x, y)
}

// mayWriteDiff finds what stands in the way before the work.
func (a *app) mayWriteDiff(f diffFlags) error {
	type named struct {
		flag, path string
		read       bool
	}
	files := []named{{"csv", f.csv, false}, {"summary", f.summary, false}, {"from-csv", f.fromCSV, true}}
	if f.inventory != kernel.Gemma4().Name {
		files = append(files, named{"inventory", f.inventory, true})
	}
	if f.plots != "" {
		for _, name := range plotFiles {
			files = append(files, named{"plots", filepath.Join(f.plots, name), false})
		}
	}
	seen := map[string]named{}
	for _, o := range files {
		if o.path == "" {
			continue
		}
		path, err := realPath(o.path)
		if err != nil {
			return fmt.Errorf("--%s: %w", o.flag, err)
		}
		if other, ok := seen[path]; ok && (!other.read || !o.read) {
			return usageErrorf("--%s and --%s: got %s for both", other.flag, o.flag, dumpfmt.Printable(o.path))
		}
		seen[path] = o
	}
	for _, o := range files {
		if o.path == "" || o.read {
			continue
		}
		if err := a.mayWrite(o.flag, o.path); err != nil {
			return err
		}
	}
	return nil
}

// realPath is what two names of one file have in common: the absolute path without
// links, of a file that need not be there yet.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	rest := ""
	for at := path; ; at = filepath.Dir(at) {
		if there, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(there, rest), nil
		}
		if at == filepath.Dir(at) {
			return path, nil
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

// writeFiles writes what is known only at the end.
func (d *diffReport) writeFiles(a *app) error {
	o := dumpfmt.WriteOptions{Overwrite: a.overwrite}
	if d.flags.summary != "" {
		if err := dumpfmt.WriteFile(d.flags.summary, []byte(d.markdown()), o); err != nil {
			return err
		}
	}
	if d.flags.plots != "" {
		return d.writePlots(o)
	}
	return nil
}
