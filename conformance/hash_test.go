package conformance_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// hashByHand is the SHA-256 of a header, a NUL byte and the rows' little-endian bytes.
func hashByHand(header string, rows [][]float32) string {
	var b bytes.Buffer
	b.WriteString(header + "\x00")
	for _, row := range rows {
		_ = binary.Write(&b, binary.LittleEndian, row)
	}
	sum := sha256.Sum256(b.Bytes())
	return hex.EncodeToString(sum[:])
}
