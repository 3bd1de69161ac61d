package dumpfmt

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"strconv"
)

// A target file is the magic, then per prediction point a frame and the row.
const (
	targetMagic      = "hf2q-exact-teacher-targets-v1\x00"
	targetRowMagic   = "ROW1"
	targetFrameBytes = 60
)

// TargetSpec is what a target file has to hold.
type TargetSpec struct {
	// Vocab is the width of a row.
	Vocab int
	// Prefixes is the prefix hash of each point, in order.
	Prefixes [][32]byte
}

// Size is the file's length in bytes: 30, and 60 + 4*Vocab per point.
func (s TargetSpec) Size() int64 {
	return int64(len(targetMagic)) + int64(len(s.Prefixes))*s.rowBytes()
}

func (s TargetSpec) rowBytes() int64 { return targetFrameBytes + 4*int64(s.Vocab) }

// check refuses what can't be a file.
func (s TargetSpec) check(op string) error {
	const most = 1 << 40
	if s.Vocab < 1 || int64(s.Vocab) > most {
		return &UsageError{Op: op, What: "vocabulary", Got: strconv.Itoa(s.Vocab), Want: fmt.Sprintf("1 to %d", int64(most))}
	}
	if n := int64(len(s.Prefixes)); n > (math.MaxInt64-int64(len(targetMagic)))/s.rowBytes() {
		return &UsageError{Op: op, What: "rows", Got: itoa(n), Want: "a file below 2^63 bytes"}
	}
	return nil
}

// appendFrame appends what comes before row i.
func (s TargetSpec) appendFrame(b []byte, i int) []byte {
	return appendTargetFrame(b, i, s.Vocab, s.Prefixes[i][:])
}

func appendTargetFrame(b []byte, i, vocab int, prefix []byte) []byte {
	b = append(b, targetRowMagic...)
	b = binary.LittleEndian.AppendUint64(b, uint64(i))
	b = binary.LittleEndian.AppendUint64(b, uint64(vocab))
	b = append(b, prefix...)
	return binary.LittleEndian.AppendUint64(b, 4*uint64(vocab))
}

// targetFields are a frame's, each from byte at on.
var targetFields = []struct {
	at, end int
	name    string
	show    func(field []byte) string
}{
	{0, 4, "row magic", func(b []byte) string { return strconv.Quote(string(b)) }},
	{4, 12, "point ordinal", showUint64},
	{12, 20, "vocabulary", showUint64},
	{20, 52, "prefix hash", hex.EncodeToString},
	{52, 60, "payload length", showUint64},
}

func showUint64(b []byte) string { return strconv.FormatUint(binary.LittleEndian.Uint64(b), 10) }

// frameError says which byte of row i's frame, which starts at off, is the first bad
// one. got may be its start only; they differ.
func (s *source) frameError(i int, off int64, got, want []byte) error {
	at := 0
	for got[at] == want[at] {
		at++
	}
	f := targetFields[0]
	for _, x := range targetFields {
		if at >= x.at && at < x.end {
			f = x
		}
	}
	e := &FormatError{File: s.file, Format: s.format, Offset: off + int64(at),
		What: fmt.Sprintf("row %d: %s", i, f.name), Got: fmt.Sprintf("0x%02X", got[at]), Want: fmt.Sprintf("0x%02X", want[at]),
		Note: "want " + f.show(want[f.at:f.end])}
	if len(got) >= f.end {
		e.Note = fmt.Sprintf("got %s, want %s", f.show(got[f.at:f.end]), f.show(want[f.at:f.end]))
	}
	return e
}

// magicError says the same of the file's first bytes.
func (s *source) magicError(got []byte) error {
	at := 0
	for at < len(got) && got[at] == targetMagic[at] {
		at++
	}
	return &FormatError{File: s.file, Format: s.format, Offset: int64(at), What: "magic",
		Got: fmt.Sprintf("0x%02X", got[at]), Want: fmt.Sprintf("0x%02X", targetMagic[at]), Note: fmt.Sprintf("want %q", targetMagic)}
}

// Target reads a target file by row: the exact rows of logits of a teacher at its
// plan's prediction points.
type Target struct {
	src         source
	rows, vocab int
}

// OpenTarget opens the target file at path. The caller closes it. Its rows agree with
// each other in form; [VerifyTarget] holds a file to its plan.
func OpenTarget(path string) (*Target, error) {
	s, err := openSource(path, formatTarget)
	if err != nil {
		return nil, err
	}
	d, err := newTarget(s)
	if err != nil {
		_ = s.close() // the first error is the one to tell
	}
	return d, err
}

// NewTarget reads a target file of size bytes from r; name stands in for the file in
// errors. Close leaves r open.
func NewTarget(r io.ReaderAt, size int64, name string) (*Target, error) {
	return newTarget(source{r: r, size: size, file: name, format: formatTarget})
}

func newTarget(s source) (*Target, error) {
	magic, err := s.header(len(targetMagic))
	if err != nil {
		return nil, err
	}
	if string(magic) != targetMagic {
		return nil, s.magicError(magic)
	}
	d := &Target{src: s}
	var want []byte
	frame := make([]byte, targetFrameBytes)
	for off := int64(len(targetMagic)); off < s.size; d.rows++ {
		if left := s.size - off; left < targetFrameBytes {
			return nil, s.short(off, left, strconv.Itoa(targetFrameBytes), fmt.Sprintf("frame of row %d", d.rows))
		}
		if err := s.read(frame, off); err != nil {
			return nil, err
		}
		left := s.size - off - targetFrameBytes
		if d.rows == 0 { // the first row says how wide all are
			vocab := binary.LittleEndian.Uint64(frame[12:])
			if vocab == 0 {
				return nil, s.broken(off+12, "row 0: vocabulary", "0", "1 or more")
			}
			if vocab > uint64(left)/4 {
				return nil, s.short(off+targetFrameBytes, left, fmt.Sprintf("4*%d", vocab), "row 0")
			}
			if vocab > math.MaxInt {
				return nil, &UnsupportedError{File: s.file, Format: s.format, Offset: off + 12, What: "row 0: vocabulary",
					Got: strconv.FormatUint(vocab, 10), Supported: "one below 2^31 on this machine"}
			}
			d.vocab = int(vocab)
		}
		if want = appendTargetFrame(want[:0], d.rows, d.vocab, frame[20:52]); !bytes.Equal(frame, want) {
			return nil, s.frameError(d.rows, off, frame, want)
		}
		if left < 4*int64(d.vocab) {
			return nil, s.short(off+targetFrameBytes, left, itoa(4*int64(d.vocab)), fmt.Sprintf("row %d", d.rows))
		}
		off += targetFrameBytes + 4*int64(d.vocab)
	}
	return d, nil
}

// at is the first byte of row i's frame.
func (d *Target) at(i int) int64 {
	return int64(len(targetMagic)) + int64(i)*(targetFrameBytes+4*int64(d.vocab))
}

// Rows returns the number of rows, one per prediction point.
func (d *Target) Rows() int { return d.rows }

// Vocab returns the width of a row, 0 for a file without rows.
func (d *Target) Vocab() int { return d.vocab }

// Prefix reads the hash of the prefix that row i continues.
func (d *Target) Prefix(i int) (sum [32]byte, err error) {
	if err := checkIndex("Target.Prefix", i, d.rows); err != nil {
		return sum, err
	}
	err = d.src.read(sum[:], d.at(i)+20)
	return sum, err
}

// File returns the file's name, as its errors give it.
func (d *Target) File() string { return d.src.file }

// Row reads row i into dst, of length Vocab, bit for bit.
func (d *Target) Row(i int, dst []float32) error {
	if err := checkIndex("Target.Row", i, d.rows); err != nil {
		return err
	}
	if err := checkLen("Target.Row", len(dst), d.vocab); err != nil {
		return err
	}
	p := bytesOf(dst)
	if err := d.src.read(p, d.at(i)+targetFrameBytes); err != nil {
		return err
	}
	if !littleEndian {
		swap4(p)
	}
	return nil
}

// Close closes the file that OpenTarget opened.
func (d *Target) Close() error { return d.src.close() }
