package protocol

import "time"

// Limits of answers to anyone.
const (
	LookLimit  = 6 * time.Second // for an agent to examine its host
	LookMost   = 256 << 10       // bytes of a look
	RosterSize = 1 << 20         // bytes of a coordinator's answer
	ClockSize  = 24              // bytes of a clock answer
)

// Time limits of one side waiting for the other.
const (
	AskLimit   = 3 * time.Second  // for an answer
	TryLimit   = 25 * time.Second // for an agent to try out faults on its host
	PassLimit  = AskLimit * 3 / 4 // for an answer that needs a third process
	ThirdLimit = AskLimit / 2     // for the third process, so that its answer arrives in time
	ClockLimit = time.Second      // for a clock answer
	LostLimit  = 30 * time.Second // of silence, until the other side is given up
	BringLimit = 10 * time.Minute // for an agent to install and start a system
	DownLimit  = 45 * time.Second // for it to stop one
)

// Size limits of messages, in bytes.
const (
	StandingSize = 1 << 20
	OrdersSize   = 1 << 20
	JobSize      = 8 << 20
	SmallSize    = 64 << 10
)
