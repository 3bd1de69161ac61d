package gguf

// q6_K is 256 values of 6 bits around 32, in 8 runs of 32 and 16 groups of 16:
// 128 bytes of low halves, the low halves of 64 bytes before their high halves;
// 64 bytes with the high 2 bits, the fields of 32 bytes for 4 runs; 16 signed
// bytes, the groups' scales; a half d. The value is d*scale*(q-32).
func q6_K(dst []float32, src []byte) {
	for ; len(src) >= 210; src, dst = src[210:], dst[256:] {
		d := halfAt(src[208:])
		for g := range 16 {
			run, part := g/2, g%2*16
			scale := d * float32(int8(src[192+g]))
			low := (*[16]byte)(src[run/4*64+run%2*32+part:])
			high := (*[16]byte)(src[128+run/4*32+part:])
			out := (*[16]float32)(dst[g*16:])
			for i := range out {
				q := low[i]>>(run/2%2*4)&15 | high[i]>>(run%4*2)&3<<4
				out[i] = scale * float32(int32(q)-32)
			}
		}
	}
}
