package dumpfmt

// FNV-1a 64, http://www.isthe.com/chongo/tech/comp/fnv/: hash = (hash ^ octet)
// * prime over all octets.
const (
	fnvBasis = 0xCBF29CE484222325
	fnvPrime = 0x100000001B3
)

// Fingerprint returns the FNV-1a 64 of the UTF-8 bytes of the whole
// chat-templated prompt: what ties a layer dump to its prompt.
func Fingerprint(text string) uint64 {
	h := uint64(fnvBasis)
	for i := 0; i < len(text); i++ {
		h = (h ^ uint64(text[i])) * fnvPrime
	}
	return h
}
