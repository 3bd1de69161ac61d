package gguf

// subScales unpacks the scale and the minimum of sub-block k, 6 bits each, from
// the 12 bytes that q4_K and q5_K have: of the first four sub-blocks in the low
// bits of bytes k and 4+k; of the others with 4 low bits in the halves of byte
// 4+k, and with 2 high bits on top of bytes k-4 and k.
func subScales(p []byte, k int) (scale, minimum float32) {
	if k < 4 {
		return float32(p[k] & 63), float32(p[4+k] & 63)
	}
	return float32(p[4+k]&15 | p[k-4]>>6<<4), float32(p[4+k]>>4 | p[k]>>6<<4)
}

// q4_K is 256 values of 4 bits in 8 sub-blocks of 32: halves d and m; 12 bytes of
// scales and minima; 128 bytes, each 32 of which have one sub-block in their low
// halves and the next in their high halves. The value is d*scale*q - m*minimum.
func q4_K(dst []float32, src []byte) {
	for ; len(src) >= 144; src, dst = src[144:], dst[256:] {
		d, m, scales := halfAt(src), halfAt(src[2:]), src[4:16]
		for k := range 8 {
			scale, minimum := subScales(scales, k)
			scale, minimum = d*scale, m*minimum
			qs, out := (*[32]byte)(src[16+k/2*32:]), (*[32]float32)(dst[k*32:])
			for i, q := range qs {
				out[i] = scale*float32(q>>(k%2*4)&15) - minimum
			}
		}
	}
}

// q5_K is q4_K with a fifth bit: 32 bytes behind the scales have that of value i
// of sub-block k in bit k of byte i.
func q5_K(dst []float32, src []byte) {
	for ; len(src) >= 176; src, dst = src[176:], dst[256:] {
		d, m, scales, high := halfAt(src), halfAt(src[2:]), src[4:16], (*[32]byte)(src[16:])
		for k := range 8 {
			scale, minimum := subScales(scales, k)
			scale, minimum = d*scale, m*minimum
			qs, out := (*[32]byte)(src[48+k/2*32:]), (*[32]float32)(dst[k*32:])
			for i, q := range qs {
				out[i] = scale*float32(q>>(k%2*4)&15|high[i]>>k&1<<4) - minimum
			}
		}
	}
}
