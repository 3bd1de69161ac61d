package gguf

// q8_0 is 32 signed bytes behind a half d. The value is d*q.
func q8_0(dst []float32, src []byte) {
	for ; len(src) >= 34; src, dst = src[34:], dst[32:] {
		d, qs, out := halfAt(src), (*[32]byte)(src[2:34]), (*[32]float32)(dst)
		for i, q := range qs {
			out[i] = d * float32(int32(int8(q)))
		}
	}
}
