package schedule

import "time"

// An ArrivalKind says how the gaps between messages are distributed.
type ArrivalKind uint8

// The kinds of arrival.
const (
	// Constant: message i is due at the instant at which the rate, integrated
	// from the run's start, reaches i; the zero value.
	Constant ArrivalKind = iota
	// Poisson: exponentially distributed gaps, independent of one another.
	Poisson
	// Gamma: gamma-distributed gaps with a chosen coefficient of variation: below
	// 1 steadier than Poisson, above 1 burstier.
	Gamma
	// Trace: the instants are given.
	Trace
)

// String returns the kind's name in scenarios.
func (k ArrivalKind) String() string {
	switch k {
	case Constant:
		return "constant"
	case Poisson:
		return "poisson"
	case Gamma:
		return "gamma"
	case Trace:
		return "trace"
	}
	return "unknown"
}

// An Arrival is an arrival process.
type Arrival struct {
	Kind  ArrivalKind
	CV    float64 // Gamma: coefficient of variation of the gaps, 0.1 to 10; else 0
	Trace []int64 // Trace: ns since the run's start, not decreasing; kept, not copied: must not change
}

// A Phase is a stretch of the run with one law for its rate: a step (From equals
// To), a ramp from one rate to the other, linear in time, or bursts. Nothing is due in a
// step at rate 0; a ramp may begin or end with 0.
type Phase struct {
	From, To Rate
	// Burst > 0: that many messages at once at the start of each Every; From, To are 0. Bursts are
	// deterministic for any arrival kind, and leave the fraction of a message that had accumulated
	// before them untouched.
	Burst uint64
	Every time.Duration
	For   time.Duration // duration of the phase
}

// A WeightedSize is a message size in bytes, drawn Weight times as often as a
// size of weight 1.
type WeightedSize struct{ Bytes, Weight int }

// A KeyKind says how keys are drawn.
type KeyKind uint8

// The kinds of keys. Keys are numbers from 0 to N-1.
const (
	NoKeys         KeyKind = iota
	UniformKeys            // each as likely
	ZipfKeys               // key k has probability proportional to (k+1)^-S
	RoundRobinKeys         // message i has key i modulo N
)

// Keys says which keys messages carry.
type Keys struct {
	Kind KeyKind
	N    uint64  // number of keys; Zipf: at most 10,000,000 (a table of 8 bytes each)
	S    float64 // Zipf: the exponent, above 0 and at most 10; else 0
}

// A Spec describes a Schedule. Equal Specs yield equal Schedules, on every machine.
type Spec struct {
	Seed    uint64
	Arrival Arrival
	// WarmUp comes before the phases, at the first rate of Phases (the same bursts, if they are
	// first) and with the same arrival process. A trace begins at 0, and WarmUp only marks where
	// the measured window begins.
	WarmUp time.Duration
	// Phases follow one another. None: a closed loop (nothing is due; the functions of an index
	// work), or a trace.
	Phases []Phase
	// Messages > 0: the run ends after that many messages beyond the warm-up, at
	// the rate of the only phase, a step; its For is not read.
	Messages uint64

	Producers, Destinations int // 1 to 16,777,216
	BatchMin, BatchMax      int // messages, 1 to 1,048,576; both 1: no batches
	Sizes                   []WeightedSize
	Keys                    Keys
}

// A Part is a share of the schedule: the messages of the producers p with p % Count == Index, 0 <=
// Index < Count. Part{0, 1} is the whole schedule.
type Part struct{ Index, Count int }
