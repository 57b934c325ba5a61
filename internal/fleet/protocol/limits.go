package protocol

import "time"

// Bounds of answers to whoever asks.
const (
	LookLimit  = 6 * time.Second // for an agent to look at its host
	LookMost   = 256 << 10       // bytes of a look
	RosterSize = 1 << 20         // bytes of a coordinator's answer
	ClockSize  = 24              // bytes of an answer about the clock
)

// How long one side waits for the other.
const (
	AskLimit   = 3 * time.Second  // for an answer
	TryLimit   = 25 * time.Second // for an agent to try whether its host lets it do faults
	PassLimit  = AskLimit * 3 / 4 // for one that the asked side gets from a third
	ThirdLimit = AskLimit / 2     // for the third to look, so that what it says reaches the first in time
	ClockLimit = time.Second      // for an answer about the clock
	LostLimit  = 30 * time.Second // without a word, after which the other side is given up
	BringLimit = 10 * time.Minute // for an agent to install and start a system
	DownLimit  = 45 * time.Second // for it to end one
)

// Bounds of messages, in bytes.
const (
	StandingSize = 1 << 20
	OrdersSize   = 1 << 20
	JobSize      = 8 << 20
	SmallSize    = 64 << 10
)
