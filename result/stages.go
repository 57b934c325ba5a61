package result

// A Stage is a part of a scenario's profile: a step, a ramp or bursts. Its messages are those due
// in [FromNS, ToNS), whenever they were sent, confirmed or delivered.
type Stage struct {
	Plan       string  `json:"plan"`         // "10000/s", "1000/s..20000/s", "500 every 100ms"
	FromNS     int64   `json:"from_ns"`      // since the epoch
	ToNS       int64   `json:"to_ns"`        // actual end, if the run was cut short
	BeginsPerS float64 `json:"begins_per_s"` // the planned rate at FromNS; for bursts their mean
	EndsPerS   float64 `json:"ends_per_s"`   // and at ToNS

	Offered       uint64   `json:"offered"`       // messages due in it
	OfferedPerS   float64  `json:"offered_per_s"` // of these
	SentPerS      float64  `json:"sent_per_s"`    // this and the following are events with their own instant in it, due in any stage
	ConfirmedPerS float64  `json:"confirmed_per_s"`
	ReceivedPerS  *float64 `json:"received_per_s,omitempty"` // absent if nothing receives, or not before everything is sent

	// Responses and those on time, without intervals; absent if there are none.
	Send *Pair `json:"send,omitempty"`
	RTT  *Pair `json:"rtt,omitempty"`
	E2E  *Pair `json:"e2e,omitempty"`
}

// Lasts returns the length of the stage in seconds.
func (g *Stage) Lasts() float64 { return float64(g.ToNS-g.FromNS) / 1e9 }
