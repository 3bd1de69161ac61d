package teacher

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"math"
)

// The first bytes of what is hashed.
const (
	tokensFrame     = "hf2q-token-ids-v1"
	prefixFrame     = "hf2q-teacher-prefix-token-ids-v1"
	trajectoryFrame = "hf2q-exact-teacher-greedy-tokens-v1"
)

// Sum is a SHA-256.
type Sum [sha256.Size]byte

func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// IDError says that a token id doesn't fit its 32 bits.
type IDError struct {
	Index, ID int
}

func (e *IDError) Error() string {
	return fmt.Sprintf("teacher: token %d: got id %d, want 0 to %d", e.Index, e.ID, uint32(math.MaxUint32))
}

// TokensSHA256 is an example's token hash: SHA-256 of "hf2q-token-ids-v1", the u32
// length of the id in UTF-8, the id, the u64 count and the ids as u32.
func TokensSHA256(stableID string, ids []int) (Sum, error) {
	return newHasher().tokens(stableID, ids)
}

// PrefixSHA256 is the hash of a prefix: SHA-256 of
// "hf2q-teacher-prefix-token-ids-v1", the u64 count and the ids as u32.
func PrefixSHA256(ids []int) (Sum, error) { return newHasher().sum([]byte(prefixFrame), ids) }

// TrajectorySHA256 is the hash of a greedy trajectory: SHA-256 of
// "hf2q-exact-teacher-greedy-tokens-v1", the u64 count and the ids as u32.
func TrajectorySHA256(ids []int) (Sum, error) { return newHasher().sum([]byte(trajectoryFrame), ids) }

// hasher hashes many frames with one buffer.
type hasher struct {
	h   hash.Hash
	buf []byte
}

func newHasher() *hasher { return &hasher{h: sha256.New()} }

func (w *hasher) tokens(stableID string, ids []int) (Sum, error) {
	head := binary.LittleEndian.AppendUint32([]byte(tokensFrame), uint32(len(stableID)))
	return w.sum(append(head, stableID...), ids)
}

// sum is the SHA-256 of head, the count and the ids.
func (w *hasher) sum(head []byte, ids []int) (s Sum, err error) {
	const chunk = 4096
	w.h.Reset()
	_, _ = w.h.Write(head)
	w.buf = binary.LittleEndian.AppendUint64(w.buf[:0], uint64(len(ids)))
	_, _ = w.h.Write(w.buf)
	for at := 0; at < len(ids); at += chunk {
		w.buf = w.buf[:0]
		for i, id := range ids[at:min(at+chunk, len(ids))] {
			if id < 0 || uint64(id) > math.MaxUint32 {
				return s, &IDError{at + i, id}
			}
			w.buf = binary.LittleEndian.AppendUint32(w.buf, uint32(id))
		}
		_, _ = w.h.Write(w.buf)
	}
	w.h.Sum(s[:0])
	return s, nil
}
