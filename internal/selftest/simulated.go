package selftest

import (
	"path/filepath"
	"slices"
	"time"
)

// A simulated system runs in a process of its own (SystemMain), so that a disturbance of the generator
// leaves it alone. It answers and delivers each message its service time after it arrived; with one
// server, after the message before it. All messages are due at a constant rate from the start.
type simulated struct {
	name      string
	rate      int // messages per second
	service   func(i uint64) int64
	oneServer bool
}

// Warm-up and measured window of a run against a simulated system.
const (
	quotedWarmUp  = 200 * time.Millisecond
	quotedMeasure = 2 * time.Second
	quotedSize    = 64 // bytes per message
)

const simulatedSeed = 0x71756f74

// simulateds are the systems. At 2,500 messages a second a run supports p99.9, at 250 p99. The times are
// long beside the way there and back, some 0.1 ms, which is no part of the truth.
func simulateds() []simulated {
	return []simulated{
		{name: "constant", rate: 2500, service: func(uint64) int64 { return int64(10 * time.Millisecond) }},
		{name: "exponential", rate: 2500, service: func(i uint64) int64 {
			return int64(2*time.Millisecond) + exponential(simulatedSeed, i, 8*time.Millisecond)
		}},
		{name: "bimodal", rate: 2500, service: func(i uint64) int64 {
			if exponential(simulatedSeed, i, time.Second) > int64(3*time.Second) { // e^-3: one in 20
				return int64(50 * time.Millisecond)
			}
			return int64(5 * time.Millisecond)
		}},
		// 75 % busy: what arrives in a burst waits.
		{name: "queue", rate: 250, oneServer: true, service: func(i uint64) int64 {
			return int64(2*time.Millisecond) + exponential(simulatedSeed, i, time.Millisecond)
		}},
	}
}

func simulatedBy(name string) (simulated, bool) {
	all := simulateds()
	i := slices.IndexFunc(all, func(s simulated) bool { return s.name == name })
	if i < 0 {
		return simulated{}, false
	}
	return all[i], true
}

// messages is how many messages a run schedules, with warm-up.
func (s *simulated) messages() int {
	return int(int64(s.rate) * int64(quotedWarmUp+quotedMeasure) / int64(time.Second))
}

// first is the first message of the measured window.
func (s *simulated) first() int { return int(int64(s.rate) * int64(quotedWarmUp) / int64(time.Second)) }

// A Visit is the system's own record of one message. Due is on the run's clock, the others on the
// system's.
type Visit struct {
	Seq     uint64 `json:"seq"`
	Due     int64  `json:"due"`
	Arrival int64  `json:"arrival"` // read from the connection
	Planned int64  `json:"planned"` // when it was to answer
	Replied int64  `json:"replied"` // when it did
}

// truth returns the true response times of the measured window, sorted: of a generator that sends each
// message at its due instant over a connection that takes no time. It adds by how much the system itself
// answered later than planned, which is known message by message.
func (s *simulated) truth(visits []Visit) []int64 {
	tardy := make([]int64, s.messages())
	for _, v := range visits {
		if v.Seq < uint64(len(tardy)) && v.Replied > 0 {
			tardy[v.Seq] = v.Replied - v.Planned
		}
	}
	var departure int64
	responses := make([]int64, len(tardy))
	for i := range responses {
		due := int64(i) * int64(time.Second) / int64(s.rate)
		begin := due
		if s.oneServer {
			begin = max(begin, departure)
		}
		departure = begin + s.service(uint64(i))
		responses[i] = departure - due + tardy[i]
	}
	window := responses[s.first():]
	slices.Sort(window)
	return window
}

func beganFile(dir string) string  { return filepath.Join(dir, "began") }
func recordFile(dir string) string { return filepath.Join(dir, "visits.json") }
