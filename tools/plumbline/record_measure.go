package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// recordingMeasure says what the precision of a recording is.
const recordingMeasure = "layers: relative L2 of each recorded float32 row from the same row of the reference in float64; " +
	"logits: the same of the rows without their mean, along the recorded tokens"

// measureRecording adds to a manifest what the finished folder holds: its files' hashes,
// its cases, and how far each row is from float64.
func (a *app) measureRecording(ctx context.Context, ref engine.Reference, dir string, r *golden.Recording) error {
	double, err := ref.Float64()
	if err != nil {
		return err
	}
	folder, err := dumpfmt.OpenFolder(dir)
	if err != nil {
		return err
	}
	r.Precision = golden.Precision{Measure: recordingMeasure, Cases: map[string]golden.RowPrecision{}}
	task := a.progress().Start("measure", len(folder.Cases()))
	defer task.End()
	for _, c := range folder.Cases() {
		p, err := measureCase(ctx, double, c)
		if err != nil {
			return fmt.Errorf("case %s: %w", dumpfmt.Printable(c.Name), err)
		}
		r.Cases = append(r.Cases, c.Name)
		r.Precision.Cases[c.Name] = p
		task.Step(c.Name)
	}
	var files []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		files = append(files, e.Name())
	}
	r.Goldens, err = golden.HashFiles(os.DirFS(dir), r.Set, files)
	return err
}

func measureCase(ctx context.Context, double engine.Reference, c *dumpfmt.Case) (golden.RowPrecision, error) {
	var p golden.RowPrecision
	trace, err := double.Capture(ctx, c.File.TokenIDs)
	if err != nil {
		return p, err
	}
	layers, err := c.OpenFloatLayers()
	if err != nil {
		return p, err
	}
	defer layers.Close()
	row := make([]float64, layers.Header().Width)
	for i, want := range trace.Rows() {
		if err := layers.Row64(i, row); err != nil {
			return p, err
		}
		p.Layers = append(p.Layers, metric.RelativeL2(row, want))
	}
	if c.LogitsPath == "" || len(c.File.OutputIDs) == 0 {
		return p, nil
	}
	logits, err := c.OpenFloatLogits()
	if err != nil {
		return p, err
	}
	defer logits.Close()
	d, err := double.Decode(ctx, c.File.TokenIDs, engine.DecodeOptions{Forced: c.File.OutputIDs})
	if err != nil {
		return p, err
	}
	row = make([]float64, logits.Header().Vocab)
	for i, want := range d.Logits {
		if err := logits.Row64(i, row); err != nil {
			return p, err
		}
		p.Logits = append(p.Logits, metric.CentredL2(row, want))
	}
	return p, nil
}

// checkpointFS is where a checkpoint's files lie: its folder, or for a GGUF file that
// file alone.
func checkpointFS(weights []string) (fs.FS, string) {
	dir, base := filepath.Split(weights[0])
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if strings.HasSuffix(base, ".gguf") {
		return onlyFile{os.DirFS(dir), base}, base
	}
	return os.DirFS(dir), filepath.Base(dir)
}

// onlyFile is a folder of which one file is seen.
type onlyFile struct {
	fs.FS
	name string
}

// ReadDir implements fs.ReadDirFS.
func (o onlyFile) ReadDir(string) ([]fs.DirEntry, error) {
	info, err := fs.Stat(o.FS, o.name)
	if err != nil {
		return nil, err
	}
	return []fs.DirEntry{fs.FileInfoToDirEntry(info)}, nil
}
