#include "textflag.h"

DATA absMask<>+0(SB)/8, $0x7fffffff7fffffff
DATA absMask<>+8(SB)/8, $0x7fffffff7fffffff
DATA absMask<>+16(SB)/8, $0x7fffffff7fffffff
DATA absMask<>+24(SB)/8, $0x7fffffff7fffffff
GLOBL absMask<>(SB), RODATA|NOPTR, $32

// No fused multiply-add anywhere: it would give other bits than numpy.
//
// Y0 |d|, Y1 d*d, Y2 |r|, Y3 |c| in float32; Y4 Y5 d*d, Y6 Y7 r*r in float64
// (lanes 0-3, 4-7); Y8 largest |d|, Y9 largest |c| and |r|, as integers;
// Y10 c*c, Y11 c*r in float64, four lanes.

// func sumLanesAVX2(cand, ref *float32, n int, s *pairSums)
TEXT ·sumLanesAVX2(SB), NOSPLIT, $0-32
	MOVQ cand+0(FP), SI
	MOVQ ref+8(FP), DI
	MOVQ n+16(FP), CX
	MOVQ s+24(FP), DX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VXORPD Y4, Y4, Y4
	VXORPD Y5, Y5, Y5
	VXORPD Y6, Y6, Y6
	VXORPD Y7, Y7, Y7
	VXORPS Y8, Y8, Y8
	VXORPS Y9, Y9, Y9
	VXORPD Y10, Y10, Y10
	VXORPD Y11, Y11, Y11

loop:
	VMOVUPS (SI), Y12
	VMOVUPS (DI), Y13

	VANDPS  absMask<>(SB), Y12, Y14
	VADDPS  Y14, Y3, Y3
	VPMAXUD Y14, Y9, Y9
	VANDPS  absMask<>(SB), Y13, Y14
	VADDPS  Y14, Y2, Y2
	VPMAXUD Y14, Y9, Y9

	VCVTPS2PD X12, Y14
	VMULPD    Y14, Y14, Y15
	VADDPD    Y15, Y10, Y10
	VCVTPS2PD X13, Y15
	VMULPD    Y15, Y14, Y14
	VADDPD    Y14, Y11, Y11
	VMULPD    Y15, Y15, Y15
	VADDPD    Y15, Y6, Y6

	VEXTRACTF128 $1, Y12, X14
	VCVTPS2PD    X14, Y14
	VMULPD       Y14, Y14, Y15
	VADDPD       Y15, Y10, Y10
	VEXTRACTF128 $1, Y13, X15
	VCVTPS2PD    X15, Y15
	VMULPD       Y15, Y14, Y14
	VADDPD       Y14, Y11, Y11
	VMULPD       Y15, Y15, Y15
	VADDPD       Y15, Y7, Y7

	VSUBPS  Y12, Y13, Y12 // r - c
	VANDPS  absMask<>(SB), Y12, Y14
	VADDPS  Y14, Y0, Y0
	VPMAXUD Y14, Y8, Y8
	VMULPS  Y12, Y12, Y14
	VADDPS  Y14, Y1, Y1

	VCVTPS2PD    X12, Y14
	VMULPD       Y14, Y14, Y14
	VADDPD       Y14, Y4, Y4
	VEXTRACTF128 $1, Y12, X14
	VCVTPS2PD    X14, Y14
	VMULPD       Y14, Y14, Y14
	VADDPD       Y14, Y5, Y5

	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JG   loop

	// ((r0+r1)+(r2+r3)) + ((r4+r5)+(r6+r7)) of the four float32 sums.
	VHADDPS      Y1, Y0, Y12
	VHADDPS      Y3, Y2, Y13
	VHADDPS      Y13, Y12, Y12
	VEXTRACTF128 $1, Y12, X13
	VADDPS       X13, X12, X12
	VMOVUPS      X12, 0(DX)

	// The same of the two float64 sums with 8 lanes.
	VHADDPD      Y6, Y4, Y12
	VEXTRACTF128 $1, Y12, X13
	VADDPD       X13, X12, X12
	VHADDPD      Y7, Y5, Y13
	VEXTRACTF128 $1, Y13, X14
	VADDPD       X14, X13, X13
	VADDPD       X13, X12, X12
	VMOVUPD      X12, 16(DX)

	// (r0+r1)+(r2+r3) of those with 4.
	VHADDPD      Y11, Y10, Y12
	VEXTRACTF128 $1, Y12, X13
	VADDPD       X13, X12, X12
	VMOVUPD      X12, 32(DX)

	VEXTRACTI128 $1, Y8, X12
	VPMAXUD      X12, X8, X8
	VPSHUFD      $0x4E, X8, X12
	VPMAXUD      X12, X8, X8
	VPSHUFD      $0xB1, X8, X12
	VPMAXUD      X12, X8, X8
	VMOVD        X8, AX
	MOVL         AX, 48(DX)

	VEXTRACTI128 $1, Y9, X12
	VPMAXUD      X12, X9, X9
	VPSHUFD      $0x4E, X9, X12
	VPMAXUD      X12, X9, X9
	VPSHUFD      $0xB1, X9, X12
	VPMAXUD      X12, X9, X9
	VMOVD        X9, AX
	MOVL         AX, 52(DX)
	VZEROUPPER
	RET
