// Package wire finds out where the time of messages went: in this host before the message left, in
// the network and the system, or in this host after the answer came in. It works with any client
// library over TCP, without a change in it.
//
// Two small eBPF programs at this process's control group record the TCP segments of this process's
// own sockets, each with its instant on CLOCK_MONOTONIC, which is the clock of package pace: a sent
// segment when TCP hands it to the device's queue, a received one when it reaches TCP. The programs
// pass every packet, and end with this process, however it ends.
//
// A message is recognized in a segment by its header (package stamp), so that its instants are known
// however many messages are in flight. A confirmation has no header. It is known if one segment alone
// came in on the message's connection between the instants when the message left and when it was
// confirmed, or if all that came lie so close together that it does not matter which one it was.
// Nothing is guessed: a message that cannot be told is left out, and counted. TLS hides headers. Then
// elimination alone finds a message's segments, which it does where few are in flight.
//
// A message may wait in the client, or in TCP, for answers of the system: a client allows a limited number of
// requests in flight, the peer's window is full. Whose time that is cannot be seen. So the time before
// the last answer that came in on the connection while the message waited is a part of its own.
//
// Recording costs processor time, so it continues in windows, which take a bounded share of the
// processor time of this process. All messages handed over in a window are sampled, and recording
// continues until they are complete.
package wire

import (
	"errors"

	"github.com/weirmq/weir/measure"
)

// ErrMissing is returned when this host does not let weir see its segments.
var ErrMissing = errors.New("this host does not let weir read kernel instants")

// Check returns ErrMissing, with what is missing, if Start would fail on this host. It attaches the
// programs and removes them.
func Check() error {
	t, err := openTap()
	if err != nil {
		return err
	}
	return t.close()
}

// Sockets are sockets of this process.
type Sockets []uint64

// A Message is a sampled message that is confirmed or delivered. Instants are since the run's epoch.
type Message struct {
	Stream uint32
	Seq    uint64
	Bytes  int   // size of the payload
	Due    int64 // when it should have been sent; in a closed loop Start
	Late   int64 // ns: how much of Start - Due was the generator's lateness
	Start  int64 // when it was handed to the client
	End    int64 // when it was confirmed, or delivered
}

func (m *Message) key() uint64 { return key(m.Stream, m.Seq) }

// key combines a stream, of 24 bits, with a sequence number, of 40.
func key(stream uint32, seq uint64) uint64 { return uint64(stream)<<40 | seq }

// Parts say where the time of sampled messages went, for one of send and e2e. Their sums over several
// processes are those of the whole.
type Parts struct {
	// Every sampled message that completed is in exactly one of these.
	Exact     uint64 // its segments are known
	Bounded   uint64 // the segment that confirmed it is one of several, which differ by less than Tolerance
	Ambiguous uint64 // the segment is one of several that differ by more: not in the distributions, and in Levels only if they differ by less than Tolerance of the latency since it was due
	Unseen    uint64 // left out: it was in no segment that was recorded
	Late      uint64 // left out: recording had ended when it completed

	Held    measure.Counts // from the hand-over until the last answer to the client that came in before the message left: the client, or TCP, may have waited for it
	HostOut measure.Counts // from there, or from the hand-over if no answer came, until its last byte left
	System  measure.Counts // from there until the last byte of the answer, or of the delivery, came in
	HostIn  measure.Counts // from there until the program had it

	// Of the same messages, since they were due: the whole latency, and what may not be this host's of it,
	// which is Blocked and System.
	Latency, Rest measure.Counts

	Levels []Level // by latency, ascending

	StepNS int64   // length of a Group's step of time
	Groups []Group // by step and delay
}

// A Group holds what the network and the system took for some messages: those of windows that began in
// one step of time, beside which this host delayed weir about as much (see delays).
type Group struct {
	Step   int64 // since the epoch, in units of StepNS
	Delay  int64 // ns, rounded up
	System measure.Counts
}

// Tolerance is how far apart the segments may lie that may have brought a confirmation, as a share of
// the message's latency from its hand-over. The middle is used, so the error is at most half of that.
const Tolerance = 0.1

// A Level sums up the messages whose latency, since they were due, is in one bucket.
type Level struct {
	Bucket  int    // see Bucket
	Known   uint64 // messages that the sums are of
	LeftOut uint64
	// Sums, ns.
	Lateness, Blocked, Held, HostOut, System, HostIn int64
}

// A Report is what one process recorded. Its JSON form is exact.
type Report struct {
	Missing  string `json:",omitempty"` // why nothing was recorded; then all else is 0
	Hidden   bool   // messages are encrypted: their segments were found by elimination
	Windows  int    // in which messages were sampled
	Segments uint64
	Lost     uint64 // segments that found no room, each of which ended a window
	Conns    int    // TCP connections of the run in this process
	Beside   int    // of these to the same address: the system is on this host
	CostNS   int64  // estimate of the processor time that recording took
	UsedNS   int64  // processor time of this process in the same time
	Send     Parts
	E2E      Parts
}

// Merge adds the report of another process.
func (r *Report) Merge(o *Report) {
	if r.Missing == "" {
		r.Missing = o.Missing
	}
	r.Hidden = r.Hidden || o.Hidden
	r.Windows += o.Windows
	r.Segments += o.Segments
	r.Lost += o.Lost
	r.Conns += o.Conns
	r.Beside += o.Beside
	r.CostNS += o.CostNS
	r.UsedNS += o.UsedNS
	r.Send.merge(&o.Send)
	r.E2E.merge(&o.E2E)
}

// Known returns of how many messages the parts are known.
func (p *Parts) Known() uint64 { return p.Exact + p.Bounded }

// Sampled returns how many messages were sampled and completed.
func (p *Parts) Sampled() uint64 { return p.Known() + p.Ambiguous + p.Unseen + p.Late }
