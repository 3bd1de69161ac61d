package gguf

// q4_0 is 32 values of 4 bits around 8: a half d, then 16 bytes, value i in the
// low half of byte i and value i+16 in its high half. The value is d*(q-8).
func q4_0(dst []float32, src []byte) {
	for ; len(src) >= 18; src, dst = src[18:], dst[32:] {
		d, qs, out := halfAt(src), (*[16]byte)(src[2:18]), (*[32]float32)(dst)
		for i, q := range qs {
			out[i] = d * float32(int32(q&15)-8)
			out[i+16] = d * float32(int32(q>>4)-8)
		}
	}
}

// q4_1 is 32 values of 4 bits above a minimum: halves d and m, then the values as
// in q4_0. The value is d*q + m.
func q4_1(dst []float32, src []byte) {
	for ; len(src) >= 20; src, dst = src[20:], dst[32:] {
		d, m, qs, out := halfAt(src), halfAt(src[2:]), (*[16]byte)(src[4:20]), (*[32]float32)(dst)
		for i, q := range qs {
			out[i] = d*float32(int32(q&15)) + m
			out[i+16] = d*float32(int32(q>>4)) + m
		}
	}
}
