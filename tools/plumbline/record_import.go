package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/golden"
)

// importInto copies the dump folder of a trusted engine, and checks the copy.
func (a *app) importInto(ctx context.Context, ref *reference.Engine, from, dir string, r *golden.Recording) error {
	fail := func(err error) error { return fmt.Errorf("--from %s: %w", dumpfmt.Printable(from), err) }
	if err := a.copyDumps(from, dir); err != nil {
		return fail(err)
	}
	folder, err := dumpfmt.OpenFolder(dir)
	if err != nil {
		return fail(inFolder(err, dir, from))
	}
	e := folder.Engine()
	self := recordedEngine(ref.Describe())
	r.Engine, r.Reference = golden.RecordedEngine{Name: e.Name, Version: e.Version, DType: e.DType}, &self
	if err := trusted(e, self.Name); err != nil {
		return fail(err)
	}
	text, err := a.text()
	if err != nil {
		return err
	}
	if text.missing {
		a.warn("--from %s: token_ids not held to the texts: the model has no tokenizer", dumpfmt.Printable(from))
	}
	arch := ref.Weights().Arch()
	for _, c := range folder.Cases() {
		if err := importable(c, arch, text); err != nil {
			return fail(fmt.Errorf("case %s: %w", dumpfmt.Printable(c.Name), inFolder(err, dir, from)))
		}
	}
	plain, err := golden.OpenFolder(dir)
	if err != nil {
		return fail(inFolder(err, dir, from))
	}
	// First by the reference's own error: what the recording is off by itself is no
	// measure before that.
	if err := a.holdToReference(ctx, ref, plain, dir); err != nil {
		return fail(err)
	}
	return a.measureRecording(ctx, ref, dir, r)
}

// inFolder names the folder that the user gave, not its copy.
func inFolder(err error, copied, from string) error {
	return errors.New(strings.ReplaceAll(err.Error(), copied, from))
}

// trusted refuses a side whose numbers can't be goldens.
func trusted(e dumpfmt.EngineFile, self string) error {
	plain := func(s string) bool { return s == "" || s == "float32" }
	switch {
	case e.Name == self:
		return fmt.Errorf("engine.json: name: got %q, which is the reference itself: its own goldens are recorded with --prompts", e.Name)
	case e.Layers != dumpfmt.LayersFloat32:
		return fmt.Errorf("engine.json: layers: got %q, want %q", e.Layers, dumpfmt.LayersFloat32)
	case e.Logits != "" && e.Logits != dumpfmt.LogitsFloat32:
		return fmt.Errorf("engine.json: logits: got %q, want %q", e.Logits, dumpfmt.LogitsFloat32)
	case e.DType != "float32":
		return fmt.Errorf(`engine.json: dtype: got %q, want "float32": goldens come from a float32 engine that says so`, e.DType)
	case !plain(e.Weights) || !plain(e.Activations):
		return fmt.Errorf("engine.json: weights and activations: got %q and %q, want float32: a quantised engine is a candidate", e.Weights, e.Activations)
	}
	return nil
}

// importable holds one case to its form and to the model's tokenizer.
func importable(c *dumpfmt.Case, arch engine.Arch, text *modelText) error {
	if err := c.Check(); err != nil {
		return err
	}
	ids := c.File.TokenIDs
	if at, got, want := misfit(ids, arch, len(c.File.OutputIDs)); got != "" {
		return fmt.Errorf("token_ids[%d]: got %s, want %s", at, got, want)
	}
	if text.err == nil {
		want, err := text.encode(c.File.Text)
		if err != nil {
			return fmt.Errorf("text: %w", err)
		}
		if i := firstDifference(ids, want); i >= 0 {
			return fmt.Errorf("token_ids[%d]: got %s, want %s, which %s makes of the text", i, idAt(ids, i), idAt(want, i), text.file)
		}
	} else if !text.missing {
		return fmt.Errorf("token_ids can't be held to the text: %w", text.err)
	}
	if c.LayersPath == "" {
		return errors.New("got no layer dump, want one: without rows nothing is held to the reference")
	}
	l, err := c.OpenFloatLayers()
	if err != nil {
		return err
	}
	defer l.Close()
	if h := l.Header(); h.Rows != arch.Layers+1 || h.Width != arch.Hidden {
		return fmt.Errorf("layers: got %d rows of %d, want %d of %d (the model's)", h.Rows, h.Width, arch.Layers+1, arch.Hidden)
	}
	if c.LogitsPath == "" {
		return nil
	}
	d, err := c.OpenFloatLogits()
	if err != nil {
		return err
	}
	defer d.Close()
	if h := d.Header(); h.Rows == 0 || h.Vocab != arch.Vocab || h.Rows != len(c.File.OutputIDs) {
		return fmt.Errorf("logits: got %d rows of %d for %d output_ids, want a row of %d (the model's vocabulary) for each, and at least one",
			h.Rows, h.Vocab, len(c.File.OutputIDs), arch.Vocab)
	}
	return nil
}

// firstDifference is the first place at which two lists of ids differ, -1 for none.
func firstDifference(a, b []int) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return i
		}
	}
	return -1
}

func idAt(ids []int, i int) string {
	if i >= len(ids) {
		return "none"
	}
	return fmt.Sprint(ids[i])
}

// copyDumps copies engine.json and the files of the cases; what it leaves out is named
// on standard error.
func (a *app) copyDumps(from, dir string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	var left []string
	for _, e := range entries {
		name := e.Name()
		if !strings.HasSuffix(name, ".json") && !strings.HasSuffix(name, ".layers.bin") && !strings.HasSuffix(name, ".logits.bin") {
			left = append(left, name)
			continue
		}
		if err := copyFile(filepath.Join(from, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	if len(left) > 0 {
		a.warn("--from %s: left out, since nothing holds them to the reference: %s", dumpfmt.Printable(from), printables(left, 20))
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if st, err := in.Stat(); err != nil || !st.Mode().IsRegular() {
		return cmp.Or(err, fmt.Errorf("%s: got no regular file", dumpfmt.Printable(from)))
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// holdToReference refuses a set that the reference doesn't come to itself, by the
// checks that a gate holds the reference to a golden with, and names the first layer.
func (a *app) holdToReference(ctx context.Context, ref *reference.Engine, set *golden.Set, dir string) error {
	folder, err := dumpfmt.OpenFolder(dir)
	if err != nil {
		return err
	}
	cfg := conformance.Config{Reference: ref, Golden: set, Only: []string{"ResidualGolden", "GreedyGolden", "LogitGolden"}}
	logits := map[string]bool{}
	for _, c := range folder.Cases() {
		cfg.Cases = append(cfg.Cases, engine.Case{Name: c.Name, Text: c.File.Text, TokenIDs: c.File.TokenIDs, Stop: c.File.Stop})
		logits[c.Name] = c.LogitsPath != ""
	}
	task := a.progress().Start("hold to the reference", len(cfg.Cases))
	cfg.Progress = func(_, _ int, name string) { task.Step(name) }
	rep, err := conformance.Evaluate(ctx, cfg)
	task.End()
	if err != nil {
		return err
	}
	judged := map[string]bool{}
	var failed []conformance.Result
	for _, r := range rep.Checks {
		switch r.Status {
		case conformance.Fail, conformance.Error:
			failed = append(failed, r)
		case conformance.Pass:
			judged[r.ID+" "+r.Case] = true
		}
	}
	if len(failed) > 0 {
		slices.SortStableFunc(failed, func(a, b conformance.Result) int { return rowOfFailure(a) - rowOfFailure(b) })
		f := failed[0]
		more := ""
		if n := len(failed) - 1; n > 0 {
			more = fmt.Sprintf(" (and %s more)", plural(n, "failure"))
		}
		return fmt.Errorf("the reference doesn't come to these values: case %s: %s: %s%s; a golden that the float reference doesn't match is none",
			dumpfmt.Printable(f.Case), f.ID, whatFailed(f), more)
	}
	for _, c := range cfg.Cases {
		for _, id := range []string{"ResidualGolden", "LogitGolden"} {
			if !judged[id+" "+c.Name] && (id == "ResidualGolden" || logits[c.Name]) {
				return fmt.Errorf("case %s: %s was not judged, so nothing holds it to the reference", dumpfmt.Printable(c.Name), id)
			}
		}
	}
	return nil
}

// whatFailed is the finding that is furthest up, which is the first, or the reason where
// there is none.
func whatFailed(r conformance.Result) string {
	if len(r.Findings) == 0 {
		return r.Reason
	}
	return r.Findings[0].String()
}

// rowOfFailure orders failures by how far up they are: rows of layers by their number,
// then logits.
func rowOfFailure(r conformance.Result) int {
	row := math.MaxInt32
	if r.ID != "ResidualGolden" {
		return row
	}
	for _, f := range r.Findings {
		if f.At.Row >= 0 {
			row = min(row, f.At.Row)
		}
	}
	return row
}
