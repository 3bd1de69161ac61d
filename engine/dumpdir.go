package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// DumpDir is the candidate that a dump folder holds: its answers were recorded
// beforehand. It is safe for concurrent use.
type DumpDir struct {
	folder string
	once   sync.Once
	info   Info
	open   *dumpfmt.Folder // nil without a case
	err    error
}

var (
	_ Candidate  = (*DumpDir)(nil)
	_ CaseLister = (*DumpDir)(nil)
)

// Dir returns the candidate in a dump folder (see dumpfmt.Folder). Nothing is
// read before the first call of a method, and engine.json and the case files
// once only. Each of the methods returns a *SetupError when the folder can't
// be read, and a *MalformedError when its engine.json is missing or broken.
func Dir(folder string) *DumpDir { return &DumpDir{folder: folder} }

func (d *DumpDir) load(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d.once.Do(func() {
		d.open, d.err = dumpfmt.OpenFolder(d.folder)
		var none *dumpfmt.NoCasesError
		var e dumpfmt.EngineFile
		switch {
		case d.err == nil:
			e = d.open.Engine()
		case errors.As(d.err, &none):
			e, d.err = dumpfmt.ReadEngineFile(d.folder)
		}
		if d.err != nil {
			d.err = fromDump(d.err)
			var bad *MalformedError
			if !errors.As(d.err, &bad) {
				d.err = &SetupError{Path: d.folder, Err: fromWorkingDir(d.folder, d.err)}
			}
		}
		d.info = infoOf(e)
	})
	return d.err
}

// fromWorkingDir says where a relative folder was looked for: a test runs in its
// package's folder, which is seldom where the path was written down.
func fromWorkingDir(folder string, err error) error {
	abs, absErr := filepath.Abs(folder)
	if filepath.IsAbs(folder) || absErr != nil {
		return err
	}
	return fmt.Errorf("%w (the path is relative to the working directory, where it means %s; "+
		"go test runs a test in its package's folder, so give an absolute path)", err, dumpfmt.Printable(abs))
}

// Info returns what engine.json declares.
func (d *DumpDir) Info(ctx context.Context) (Info, error) {
	if err := d.load(ctx); err != nil {
		return Info{}, err
	}
	return d.info, nil
}

// Cases lists the folder's cases in name order, none for a folder without one.
// A broken case may have no text and no ids; Run says what is wrong with it.
func (d *DumpDir) Cases(ctx context.Context) ([]Case, error) {
	if err := d.load(ctx); err != nil {
		return nil, err
	}
	if d.open == nil {
		return []Case{}, nil
	}
	recorded := d.open.Cases()
	cases := make([]Case, len(recorded))
	for i, c := range recorded {
		cases[i] = Case{Name: c.Name, Text: c.File.Text, TokenIDs: c.File.TokenIDs, Stop: c.File.Stop}
	}
	return cases, nil
}

// Run opens the dumps of the case; the caller closes the response. All files
// of the case are checked for form, the int8 scales and the probes included,
// so that a broken one is an error here and never half an answer. The values of
// a probe are read when Response.Probes is asked for it: float32, [positions,
// width], each probe over 1 to as many positions as the case has token_ids and
// output_ids; conformance wants all of a case's probes to have as many.
//
// It is a *MalformedError when a file is broken, with Provenance when the
// recorded text or fingerprint are not those of the request, and a
// *NoAnswerError when the folder has no such case. Recorded ids that are not
// those of the request are no error: the same text became other tokens, which
// Response.PromptIDs shows.
func (d *DumpDir) Run(ctx context.Context, req Request) (*Response, error) {
	if err := d.load(ctx); err != nil {
		return nil, err
	}
	if d.open == nil {
		return nil, &NoAnswerError{Case: req.Case.Name, Why: d.folder + " has no case at all"}
	}
	c, err := d.open.Case(req.Case.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &NoAnswerError{Case: req.Case.Name, Why: d.folder + " has no such case"}
	}
	if err != nil {
		return nil, err
	}
	if c.Err != nil {
		return nil, fromDump(c.Err)
	}
	if c.File.Text != req.Case.Text {
		return nil, &MalformedError{File: c.JSONPath, Provenance: true, Err: fmt.Errorf("engine: case file %s: text: got one of fingerprint 0x%016X, want 0x%016X",
			dumpfmt.Printable(c.JSONPath), dumpfmt.Fingerprint(c.File.Text), dumpfmt.Fingerprint(req.Case.Text))}
	}
	r := &Response{OutputIDs: c.File.OutputIDs, PromptIDs: c.File.TokenIDs}
	if err := r.openDumps(ctx, c, d.info); err != nil {
		// The answer is already an error; closing files that were only read
		// can add nothing to it.
		_ = r.Close()
		return nil, fromDump(err)
	}
	return r, nil
}
