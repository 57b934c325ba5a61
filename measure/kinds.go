package measure

// A Kind is one distribution of latencies.
type Kind uint8

// The kinds. In a closed loop there is no due instant: the response and on-time kinds, lateness and
// blocked stay empty. If replies confirm (Config.Replied) a sender knows only the round trip:
// send's response, on time and service stay empty.
const (
	SendResponse Kind = iota // done - due, confirmed messages
	SendOnTime               // done - due less lateness: the response without the generator's fault
	SendService              // done - start, confirmed messages
	SendLateness             // ready - due of the batch's last message: the generator's own fault
	SendHeldUp               // the part of lateness that the generator cannot have caused: see Sender.Handed
	SendBlocked              // start - ready: the system's or its client's
	SendHop                  // the part of done - start spent on the way to the driver's child process and back
	SendFailed               // done - due (closed loop: done - start), failed messages
	E2EResponse              // at - due, first deliveries
	E2EOnTime                // at - due less lateness, to 0.2 % of start - due
	E2EService               // at - start, first deliveries
	RTTResponse              // reply - due, first replies
	RTTOnTime                // reply - due less lateness; of a reply that was echoed to 0.2 % of start - due
	RTTService               // reply - start, first replies
	Settle                   // settled - at
	Hiccups                  // once a millisecond of the run: how late a thread woke that only sleeps
	NumKinds                 // number of kinds
)

var kindNames = [NumKinds]string{
	"send.response", "send.on_time", "send.service", "send.lateness", "send.held_up", "send.blocked", "send.hop", "send.failed",
	"e2e.response", "e2e.on_time", "e2e.service", "rtt.response", "rtt.on_time", "rtt.service", "settle", "hiccups",
}

// String returns the kind's name in results.
func (k Kind) String() string {
	if k >= NumKinds {
		return "invalid"
	}
	return kindNames[k]
}

// OnTime returns the kind that holds the same messages as the response k, each less its lateness;
// false if k is not a response.
func (k Kind) OnTime() (Kind, bool) {
	switch k {
	case SendResponse:
		return SendOnTime, true
	case E2EResponse:
		return E2EOnTime, true
	case RTTResponse:
		return RTTOnTime, true
	}
	return k, false
}

// A Phase is the part of a run that a message belongs to, by its due instant
// (closed loop: by its start).
type Phase uint8

// The phases.
const (
	WarmUp Phase = iota
	Measure
	NumPhases // number of phases
)

// String returns the phase's name in results.
func (p Phase) String() string {
	switch p {
	case WarmUp:
		return "warmup"
	case Measure:
		return "measure"
	}
	return "invalid"
}
