package trace

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
)

// TensorHash is the SHA-256 of {"shape":[…],"dtype":"…"}, a NUL byte and the
// values' little-endian bytes, as lower-case hexadecimal. Rows have one length.
func TensorHash(t DType, rows [][]float32) string {
	width := 0
	if len(rows) > 0 {
		width = len(rows[0])
	}
	h := sha256.New()
	_, _ = fmt.Fprintf(h, `{"shape":[%d,%d],"dtype":"%s"}`, len(rows), width, t)
	_, _ = h.Write([]byte{0})
	var buf []byte
	for _, row := range rows {
		buf = t.append(buf[:0], row)
		_, _ = h.Write(buf)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// IDsHash is the canonical hash of a list of ids: the SHA-256 of [1,2,3] with
// nothing between.
func IDsHash(ids []int) string {
	h := sha256.New()
	_, _ = h.Write(appendInts(nil, ids))
	return hex.EncodeToString(h.Sum(nil))
}

// RoutesHash is the canonical hash of a list of lists of ids, in the order in which
// they are. A router that leaves its top-k unsorted gives another hash for the same
// sets.
func RoutesHash(ids [][]int) string {
	h := sha256.New()
	var buf []byte
	_, _ = io.WriteString(h, "[")
	for t, token := range ids {
		buf = buf[:0]
		if t > 0 {
			buf = append(buf, ',')
		}
		buf = appendInts(buf, token)
		_, _ = h.Write(buf)
	}
	_, _ = io.WriteString(h, "]")
	return hex.EncodeToString(h.Sum(nil))
}

func appendInts(dst []byte, ids []int) []byte {
	dst = append(dst, '[')
	for i, id := range ids {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, int64(id), 10)
	}
	return append(dst, ']')
}
