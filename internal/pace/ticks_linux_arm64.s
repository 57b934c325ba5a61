#include "textflag.h"

// func ticksOrdered() uint64
TEXT ·ticksOrdered(SB), NOSPLIT, $0-8
	ISB  $15
	MRS  CNTVCT_EL0, R0
	MOVD R0, ret+0(FP)
	RET

// func ticksUnordered() uint64
TEXT ·ticksUnordered(SB), NOSPLIT, $0-8
	MRS  CNTVCT_EL0, R0
	MOVD R0, ret+0(FP)
	RET
