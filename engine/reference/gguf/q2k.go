package gguf

// q2_K is 256 values of 2 bits in 16 groups of 16: 16 bytes, each with a group's
// scale in its low half and the minimum in its high half; 64 bytes of values;
// halves d and m. The 2-bit fields of 32 bytes, lowest first, are 4 runs of 32
// values. The value is d*scale*q - m*minimum.
func q2_K(dst []float32, src []byte) {
	for ; len(src) >= 84; src, dst = src[84:], dst[256:] {
		scales, d, m := src[:16], halfAt(src[80:]), halfAt(src[82:])
		for g, s := range scales {
			scale, minimum := d*float32(s&15), m*float32(s>>4)
			// Group g: half g/8 of the bytes, field g/2%4, part g%2 of the run.
			qs, out := (*[16]byte)(src[16+g/8*32+g%2*16:]), (*[16]float32)(dst[g*16:])
			for i, q := range qs {
				out[i] = scale*float32(q>>(g/2%4*2)&3) - minimum
			}
		}
	}
}
