#include "textflag.h"

// func ticksOrdered() uint64
TEXT ·ticksOrdered(SB), NOSPLIT, $0-8
	RDTSCP
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, ret+0(FP)
	RET

// func ticksUnordered() uint64
TEXT ·ticksUnordered(SB), NOSPLIT, $0-8
	RDTSC
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, ret+0(FP)
	RET
