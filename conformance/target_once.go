package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// TargetWriter writes a target file, as [dumpfmt.TargetWriter] does.
type TargetWriter interface {
	WriteRow(ordinal int, row []float32) error
	Commit() (dumpfmt.TargetSum, error)
	Abort() error
}

// WriterTrial is one thing that a writer of target files was asked to do, and what it
// did wrong; "" where that is nothing.
type WriterTrial struct{ What, Wrong string }

// Some of the trials.
const (
	trialWhole     = "a target is written whole"
	trialExisting  = "a target that exists"
	trialAbandoned = "a target that is abandoned"
)

// targetOnce tries the writer of target files.
func targetOnce() *Check {
	return &Check{
		ID: "TargetOnce",
		Rule: "the writer of targets never writes over an existing file, whenever that came to be; " +
			"what it has begun and not finished is under no name of its own, and an abandoned one leaves nothing",
		Catches: []string{"a pinned target that is replaced", "half a target that looks like one", "a target that others can read"},
		Level:   Extended,
		Sides:   []Side{SideReference},
		Needs:   NeedTargetWriter,
		Basis:   "exact: what is on disk afterwards",
		Controls: []Control{
			{Mutant: "target-overwritten", Side: SideReference, Layer: -1, Metric: trialExisting},
			{Mutant: "target-emptied", Side: SideReference, Layer: -1, Metric: trialExisting},
			{Mutant: "target-in-place", Side: SideReference, Layer: -1, Metric: trialAbandoned},
			{Mutant: "target-leftovers", Side: SideReference, Layer: -1, Metric: trialAbandoned},
			{Mutant: "target-readable", Side: SideReference, Layer: -1, Metric: trialWhole},
		},
		Across: acrossTargetOnce,
	}
}

func acrossTargetOnce(run *RunEvidence) *Outcome {
	ev := run.Teacher
	if ev == nil {
		return nil
	}
	o := pass()
	if ev.NoWriter != "" {
		o = skip(ev.NoWriter)
	}
	var fs []Finding
	for _, t := range ev.Writer {
		if t.Wrong != "" {
			fs = append(fs, Finding{Metric: t.What, Exact: true, Got: 1, Limit: Limit{0, "a target is written once"}, At: Nowhere, Detail: t.Wrong})
		}
	}
	if len(fs) > 0 {
		o = fail("", fs...)
	}
	return &o
}

// tryWriter tries a writer of target files in a folder of its own.
func (ev *TeacherEvidence) tryWriter(create func(path string, spec dumpfmt.TargetSpec) (TargetWriter, error)) {
	if create == nil {
		create = func(path string, spec dumpfmt.TargetSpec) (TargetWriter, error) {
			return dumpfmt.CreateTarget(path, spec)
		}
	}
	dir, err := os.MkdirTemp("", "plumbline-target-")
	if err != nil {
		ev.NoWriter = fmt.Sprintf("there is no folder to try it in: %v", err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }() // the system's own folder for what is left
	for i, x := range []struct {
		what string
		run  func(w writerTrial) error
	}{
		{trialWhole, writerTrial.whole},
		{trialExisting, writerTrial.existing},
		{"a target that appears meanwhile", writerTrial.meanwhile},
		{trialAbandoned, writerTrial.abandoned},
	} {
		w := writerTrial{create, filepath.Join(dir, fmt.Sprint(i))}
		t := WriterTrial{What: x.what}
		if err := x.run(w); err != nil {
			t.Wrong = strings.ReplaceAll(err.Error(), dir, "DIR")
		}
		ev.Writer = append(ev.Writer, t)
	}
}

// writerTrial tries a writer of a small target in a folder.
type writerTrial struct {
	create func(path string, spec dumpfmt.TargetSpec) (TargetWriter, error)
	dir    string
}

var (
	trialSpec = dumpfmt.TargetSpec{Vocab: 3, Prefixes: [][32]byte{{1}, {2}}}
	trialRows = [][]float32{{1, -2, 0.5}, {-0.25, 3, 1e-3}}
	others    = []byte("another target, which somebody has pinned")
)

func (w writerTrial) path() string { return filepath.Join(w.dir, "target.bin") }

// writes begins a target, writes its rows, and commits it.
func (w writerTrial) writes(before func() error) error {
	f, err := w.create(w.path(), trialSpec)
	if err != nil {
		return err
	}
	defer func() { _ = f.Abort() }() // nothing, behind a Commit
	for i, row := range trialRows {
		if err := f.WriteRow(i, row); err != nil {
			return err
		}
	}
	if err := before(); err != nil {
		return err
	}
	_, err = f.Commit()
	return err
}

func (w writerTrial) whole() error {
	err := w.writes(func() error {
		if _, err := os.Lstat(w.path()); !errors.Is(err, os.ErrNotExist) {
			return errors.New("it has its name before it is whole")
		}
		return nil
	})
	if err != nil {
		return err
	}
	data, err := os.ReadFile(w.path())
	if err != nil {
		return err
	}
	got, err := dumpfmt.NewTarget(bytes.NewReader(data), int64(len(data)), w.path())
	if err != nil {
		return err
	}
	row := make([]float32, trialSpec.Vocab)
	for i, want := range trialRows {
		if err := got.Row(i, row); err != nil {
			return err
		}
		for k := range row {
			if row[k] != want[k] {
				return fmt.Errorf("row %d, value %d: got %v, want %v", i, k, row[k], want[k])
			}
		}
	}
	return w.private()
}

// private demands mode 0600, where there are modes.
func (w writerTrial) private() error {
	info, err := os.Stat(w.path())
	if err == nil && runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		return fmt.Errorf("mode: got %v, want -rw-------", info.Mode().Perm())
	}
	return err
}

func (w writerTrial) existing() error {
	if err := w.pin(); err != nil {
		return err
	}
	return w.keeps(w.writes(func() error { return nil }))
}

func (w writerTrial) meanwhile() error { return w.keeps(w.writes(w.pin)) }

func (w writerTrial) pin() error {
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(w.path(), others, 0o600)
}

// keeps demands that a writer failed and left the file that was there.
func (w writerTrial) keeps(err error) error {
	data, rerr := os.ReadFile(w.path())
	switch {
	case rerr != nil:
		return rerr
	case !bytes.Equal(data, others):
		return errors.New("the file that was there has other bytes now")
	case err == nil:
		return errors.New("it says that it wrote a file that it didn't write")
	}
	return nil
}

func (w writerTrial) abandoned() error {
	f, err := w.create(w.path(), trialSpec)
	if err != nil {
		return err
	}
	if err := f.WriteRow(0, trialRows[0]); err != nil {
		return err
	}
	if _, err := os.Lstat(w.path()); !errors.Is(err, os.ErrNotExist) {
		return errors.New("half a target has the name of a whole one")
	}
	if err := f.Abort(); err != nil {
		return err
	}
	left, err := os.ReadDir(w.dir)
	if err == nil && len(left) > 0 {
		return fmt.Errorf("it leaves %s", left[0].Name())
	}
	return err
}
