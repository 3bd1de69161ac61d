package dumpfmt

import (
	"encoding/binary"
	"fmt"
)

const logitHeaderBytes = 16

// LogitHeader is the head of a logit dump. Row i is the full row from which
// output token i was chosen. No rows means no vocabulary either.
type LogitHeader struct {
	Rows, Vocab int
}

func readLogitHeader(s *source) (LogitHeader, error) {
	p, err := s.header(logitHeaderBytes)
	if err != nil {
		return LogitHeader{}, err
	}
	rows, vocab := binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[8:])
	switch {
	case rows == 0 && vocab != 0:
		return LogitHeader{}, s.broken(8, "vocabulary of an empty dump", fmt.Sprint(vocab), "0")
	case rows != 0 && vocab == 0:
		return LogitHeader{}, s.broken(8, "vocabulary", "0", fmt.Sprintf("at least 1 with %d rows", rows))
	}
	trailing := s.size - logitHeaderBytes
	if rows != 0 {
		if trailing, err = s.body(logitHeaderBytes, rows, vocab, 4, 0); err != nil {
			return LogitHeader{}, err
		}
	}
	return LogitHeader{Rows: int(rows), Vocab: int(vocab)}, s.noTrailing(trailing)
}

func (h LogitHeader) encode(op string) ([]byte, error) {
	if h.Rows < 0 || h.Vocab < 0 || (h.Rows == 0) != (h.Vocab == 0) {
		return nil, &UsageError{Op: op, What: "rows and vocabulary",
			Got: fmt.Sprintf("%d and %d", h.Rows, h.Vocab), Want: "both positive or both 0"}
	}
	p := binary.LittleEndian.AppendUint64(make([]byte, 0, logitHeaderBytes), uint64(h.Rows))
	return binary.LittleEndian.AppendUint64(p, uint64(h.Vocab)), nil
}
