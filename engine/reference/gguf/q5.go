package gguf

import "encoding/binary"

// q5_0 is 32 values of 5 bits around 16: a half d, 32 high bits, one for each
// value from the lowest bit on, then the low bits as in q4_0. The value is
// d*(q-16).
func q5_0(dst []float32, src []byte) {
	for ; len(src) >= 22; src, dst = src[22:], dst[32:] {
		d, high, qs, out := halfAt(src), binary.LittleEndian.Uint32(src[2:]), (*[16]byte)(src[6:22]), (*[32]float32)(dst)
		for i, q := range qs {
			out[i] = d * float32(int32(uint32(q&15)|high>>i&1<<4)-16)
			out[i+16] = d * float32(int32(uint32(q>>4)|high>>(i+16)&1<<4)-16)
		}
	}
}

// q5_1 is 32 values of 5 bits above a minimum: halves d and m, then high and low
// bits as in q5_0. The value is d*q + m.
func q5_1(dst []float32, src []byte) {
	for ; len(src) >= 24; src, dst = src[24:], dst[32:] {
		d, m := halfAt(src), halfAt(src[2:])
		high, qs, out := binary.LittleEndian.Uint32(src[4:]), (*[16]byte)(src[8:24]), (*[32]float32)(dst)
		for i, q := range qs {
			out[i] = d*float32(int32(uint32(q&15)|high>>i&1<<4)) + m
			out[i+16] = d*float32(int32(uint32(q>>4)|high>>(i+16)&1<<4)) + m
		}
	}
}
