package gguf

// q3_K is 256 values of 3 bits in 16 groups of 16: 32 bytes with a bit for each
// value, set where 4 is not to be taken off; 64 bytes with the low 2 bits as in
// q2_K; 12 bytes with the groups' scales, 6 bits each, around 32; a half d. The
// value is d*(scale-32)*q.
func q3_K(dst []float32, src []byte) {
	for ; len(src) >= 110; src, dst = src[110:], dst[256:] {
		scales, d := src[96:108], halfAt(src[108:])
		for g := range 16 {
			// Scale g: 4 low bits in half g/8 of byte g%8, 2 high bits in field
			// g/4 of byte 8+g%4.
			s := scales[g%8]>>(g/8*4)&15 | scales[8+g%4]>>(g/4*2)&3<<4
			scale := d * float32(int32(s)-32)
			qs, out := (*[16]byte)(src[32+g/8*32+g%2*16:]), (*[16]float32)(dst[g*16:])
			// The bits lie as runs of 32 values, run g/2 in bit g/2 of the bytes.
			high := (*[16]byte)(src[g%2*16:])
			for i, q := range qs {
				out[i] = scale * float32(int32(q>>(g/2%4*2)&3)-4+int32(high[i]>>(g/2)&1<<2))
			}
		}
	}
}
