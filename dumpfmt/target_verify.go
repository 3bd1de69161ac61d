package dumpfmt

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"sync"
)

// targetChunk is how much is read at once. All chunks but the first, which is longer
// by the magic, start 2 bytes after a multiple of 4, as all values do: no value lies
// in two of them.
const targetChunk = 1 << 20

// VerifyTarget reads the target file at path from its first byte to its last, in
// constant memory, and holds it to spec. The first byte that is wrong is a
// [*FormatError]: one of the framing, of a value that isn't finite, missing at the
// end, or beyond it. argmax, which may be nil, is called with each row's lowest index
// of the largest value, in order. What a wrong value looks like nobody knows but its
// hash: compare the sum with the evidence.
func VerifyTarget(ctx context.Context, path string, spec TargetSpec, argmax func(row, id int)) (TargetSum, error) {
	if err := spec.check("VerifyTarget"); err != nil {
		return TargetSum{}, err
	}
	s, err := openSource(path, formatTarget)
	if err != nil {
		return TargetSum{}, err
	}
	defer func() { _ = s.close() }() // only read
	return verifyTarget(ctx, s, spec, argmax)
}

// VerifyTargetReader is [VerifyTarget] of size bytes of r; name stands in for the
// file in errors.
func VerifyTargetReader(ctx context.Context, r io.ReaderAt, size int64, name string, spec TargetSpec, argmax func(row, id int)) (TargetSum, error) {
	if err := spec.check("VerifyTargetReader"); err != nil {
		return TargetSum{}, err
	}
	return verifyTarget(ctx, source{r: r, size: size, file: name, format: formatTarget}, spec, argmax)
}

func verifyTarget(ctx context.Context, s source, spec TargetSpec, argmax func(row, id int)) (TargetSum, error) {
	if argmax == nil {
		argmax = func(int, int) {}
	}
	c := targetChecker{src: &s, spec: spec, argmax: argmax, row: -1, want: []byte(targetMagic)}
	h := sha256.New()
	var hashing sync.WaitGroup
	defer hashing.Wait()
	var bufs [2][]byte
	for i := range bufs {
		bufs[i] = make([]byte, min(s.size, int64(len(targetMagic))+targetChunk))
	}
	for turn, off := 0, int64(0); off < s.size; turn++ {
		if err := ctx.Err(); err != nil {
			return TargetSum{}, err
		}
		most := int64(targetChunk)
		if off == 0 {
			most += int64(len(targetMagic))
		}
		p := bufs[turn%2][:min(most, s.size-off)]
		if err := s.read(p, off); err != nil {
			return TargetSum{}, err
		}
		hashing.Wait()
		hashing.Go(func() { _, _ = h.Write(p) })
		if err := c.check(p); err != nil {
			return TargetSum{}, err
		}
		off += int64(len(p))
	}
	hashing.Wait()
	if err := c.end(); err != nil {
		return TargetSum{}, err
	}
	return TargetSum{s.size, [sha256.Size]byte(h.Sum(nil))}, nil
}

// targetChecker takes a file piece by piece.
type targetChecker struct {
	src    *source
	spec   TargetSpec
	argmax func(row, id int)

	off int64 // of the next byte
	row int   // being read; -1 before the magic was, the number of rows after the last
	// want is the magic, or the row's frame, and got what came of it; the values
	// follow, from index on.
	want, got []byte
	index     int
	best      int
	bestValue float32
}

func (c *targetChecker) check(p []byte) error {
	for len(p) > 0 && c.row < len(c.spec.Prefixes) {
		var n int
		var err error
		if len(c.got) < len(c.want) {
			n = min(len(c.want)-len(c.got), len(p))
			c.got = append(c.got, p[:n]...)
			c.off += int64(n)
			err = c.framing()
		} else {
			n, err = c.values(p)
			c.off += int64(n)
		}
		if err != nil {
			return err
		}
		p = p[n:]
		if len(c.got) == len(c.want) && (c.row < 0 || c.index == c.spec.Vocab) {
			c.next()
		}
	}
	return nil
}

// next expects the next row.
func (c *targetChecker) next() {
	if c.row >= 0 {
		c.argmax(c.row, c.best)
	}
	c.row++
	c.got, c.want, c.index = c.got[:0], c.want[:0], 0
	if c.row < len(c.spec.Prefixes) {
		c.want = c.spec.appendFrame(c.want, c.row)
	}
}

// framing compares the magic, or a frame, as soon as it is whole.
func (c *targetChecker) framing() error {
	if len(c.got) < len(c.want) || bytes.Equal(c.got, c.want) {
		return nil
	}
	return c.framingError()
}

func (c *targetChecker) framingError() error {
	if c.row < 0 {
		return c.src.magicError(c.got)
	}
	return c.src.frameError(c.row, c.off-int64(len(c.got)), c.got, c.want)
}

// values takes what p has of a row's values.
func (c *targetChecker) values(p []byte) (int, error) {
	n := min(len(p)/4, c.spec.Vocab-c.index)
	if n == 0 {
		return len(p), nil // the file ends in a value, and end says so
	}
	q := p[:4*n]
	best, most := c.best, c.bestValue
	if c.index == 0 {
		best, most = 0, float32(math.Inf(-1))
	}
	for i := range n {
		bits := binary.LittleEndian.Uint32(q[4*i:])
		if !isFinite(bits) {
			return 0, &FormatError{File: c.src.file, Format: c.src.format, Offset: c.off + 4*int64(i), What: fmt.Sprintf("row %d: value %d", c.row, c.index+i),
				Got: fmt.Sprint(math.Float32frombits(bits)), Want: "a finite value", Value: true}
		}
		if x := math.Float32frombits(bits); x > most {
			best, most = c.index+i, x
		}
	}
	c.best, c.bestValue = best, most
	c.index += n
	return 4 * n, nil
}

// end demands that the file ends where it should.
func (c *targetChecker) end() error {
	size, want := c.src.size, c.spec.Size()
	switch {
	case size > want:
		return c.src.broken(want, "end of file", itoa(size-want)+" trailing bytes", fmt.Sprintf("none after %d bytes", want))
	case size == want:
		return nil
	case len(c.got) < len(c.want) && !bytes.HasPrefix(c.want, c.got):
		return c.framingError()
	}
	where := "in the magic"
	if c.row >= 0 {
		where = fmt.Sprintf("in row %d of %d", c.row, len(c.spec.Prefixes))
	}
	more := "1 byte more"
	if want-size > 1 {
		more = itoa(want-size) + " bytes more"
	}
	return c.src.broken(size, "end of file", "the end "+where, more)
}
