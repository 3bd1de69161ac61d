package dumpfmt

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"math"
	"os"
	"strconv"
	"sync"
)

// TargetSum is a whole target file.
type TargetSum struct {
	Bytes  int64
	SHA256 [sha256.Size]byte
}

// TargetWriter writes a target file row by row, and hashes it on the way.
type TargetWriter struct {
	spec    TargetSpec
	f       *File
	hash    hash.Hash
	written int
	frame   []byte
	err     error // the first one, which stays
}

// CreateTarget starts the target file at path, with mode 0600 whatever the umask, in
// a folder that is made where it is missing. It is never written over an existing
// file; see [Create]. Commit makes it visible, and Abort, which does nothing after
// Commit, removes what was begun.
func CreateTarget(path string, spec TargetSpec) (*TargetWriter, error) {
	return createTarget(path, spec, WriteOptions{})
}

func createTarget(path string, spec TargetSpec, o WriteOptions) (*TargetWriter, error) {
	if err := spec.check("CreateTarget"); err != nil {
		return nil, err
	}
	o.Perm, o.IgnoreUmask, o.Overwrite = 0o600, true, false
	f, err := Create(path, o)
	if err != nil {
		return nil, err
	}
	w := &TargetWriter{spec: spec, f: f, hash: sha256.New()}
	return w, w.write([]byte(targetMagic))
}

// WriteRow appends the row of the point with the given ordinal, which has to be the
// next one. A value that isn't finite is a [*FormatError]: the file's own reader
// would refuse it. After an error nothing is left to commit.
func (w *TargetWriter) WriteRow(ordinal int, row []float32) error {
	if w.err == nil {
		w.err = w.writeRow(ordinal, row)
	}
	if w.err != nil {
		_ = w.f.Abort()
	}
	return w.err
}

func (w *TargetWriter) writeRow(ordinal int, row []float32) error {
	const op = "TargetWriter.WriteRow"
	switch {
	case w.written == len(w.spec.Prefixes):
		return usageInt(op, "row count", w.written+1, len(w.spec.Prefixes))
	case ordinal != w.written:
		return usageInt(op, "point ordinal", ordinal, w.written)
	case len(row) != w.spec.Vocab:
		return usageInt(op, fmt.Sprintf("length of row %d", ordinal), len(row), w.spec.Vocab)
	}
	w.frame = w.spec.appendFrame(w.frame[:0], w.written)
	if err := w.write(w.frame); err != nil {
		return err
	}
	p := bytesOf(row)
	if !littleEndian {
		p = append([]byte(nil), p...)
		swap4(p)
	}
	// Hashing takes as long as all the rest. What it hashed of a bad row is of no file.
	var hashed sync.WaitGroup
	hashed.Go(func() { _, _ = w.hash.Write(p) })
	defer hashed.Wait()
	if err := w.finite(row); err != nil {
		return err
	}
	if _, err := w.f.Write(p); err != nil {
		return err
	}
	w.written++
	w.f.step("row " + strconv.Itoa(ordinal))
	return nil
}

func (w *TargetWriter) finite(row []float32) error {
	for i, x := range row {
		if !isFinite(math.Float32bits(x)) {
			off := w.spec.rowBytes()*int64(w.written) + int64(len(targetMagic)) + targetFrameBytes + 4*int64(i)
			return &FormatError{File: w.f.path, Format: formatTarget, Offset: off,
				What: fmt.Sprintf("row %d: value %d", w.written, i), Got: fmt.Sprint(x), Want: "a finite value", Note: "nothing is written", Value: true}
		}
	}
	return nil
}

// isFinite reports whether a float32 is neither NaN nor infinite.
func isFinite(bits uint32) bool { return bits&0x7f800000 != 0x7f800000 }

// write hashes and writes what isn't a row.
func (w *TargetWriter) write(p []byte) error {
	_, _ = w.hash.Write(p)
	_, err := w.f.Write(p)
	return err
}

// Commit makes the file visible under its final name, and says what was written. Too
// few rows are a *UsageError and leave nothing.
func (w *TargetWriter) Commit() (TargetSum, error) {
	sum, err := w.finish()
	if err != nil {
		return TargetSum{}, err
	}
	if err := w.f.publish(); err != nil {
		return TargetSum{}, err
	}
	return sum, nil
}

// CommitWith is Commit together with a file that vouches for this one: text makes its
// content of what was written. Both are whole and synced before either has its name,
// and get them back to back, the target first: a process that is killed in between,
// and nothing else, leaves the target alone. An error leaves neither.
func (w *TargetWriter) CommitWith(beside *File, text func(TargetSum) ([]byte, error)) error {
	err := w.commitWith(beside, text)
	if err != nil {
		_, _ = w.f.Abort(), beside.Abort()
		for _, f := range []*File{w.f, beside} {
			if f.done { // the other isn't, or may not last
				err = errors.Join(err, os.Remove(f.path))
			}
		}
	}
	return err
}

func (w *TargetWriter) commitWith(beside *File, text func(TargetSum) ([]byte, error)) error {
	sum, err := w.finish()
	if err != nil {
		return err
	}
	p, err := text(sum)
	if err != nil {
		return err
	}
	if _, err := beside.Write(p); err != nil {
		return err
	}
	for _, do := range []func() error{beside.finish, w.f.link, beside.link, w.f.syncFolder, beside.syncFolder} {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// finish is all of Commit but the name.
func (w *TargetWriter) finish() (TargetSum, error) {
	if w.err == nil && w.written != len(w.spec.Prefixes) {
		w.err = usageInt("TargetWriter.Commit", "row count", w.written, len(w.spec.Prefixes))
	}
	if w.err != nil {
		_ = w.f.Abort()
		return TargetSum{}, w.err
	}
	if err := w.f.finish(); err != nil {
		return TargetSum{}, err
	}
	return TargetSum{w.spec.Size(), [sha256.Size]byte(w.hash.Sum(nil))}, nil
}

// Abort removes what was written; after Commit it does nothing.
func (w *TargetWriter) Abort() error { return w.f.Abort() }
