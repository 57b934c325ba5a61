// Package wire holds what travels from an agent of a fleet to its coordinator:
// the report that an agent makes once a second, as bytes, and the pieces of one
// that is larger than a message may be. It knows nothing of what carries them.
package wire

import (
	"errors"

	"github.com/weirmq/weir/measure"
)

// What is wrong with what was read or is to be written.
var (
	// ErrFormat: it is not what Append or Split writes, or was damaged.
	ErrFormat = errors.New("malformed")
	// ErrVersion: it is of another version of the form than this weir's.
	ErrVersion = errors.New("of another version of weir")
	// ErrTooLarge: it is more than MaxReport.
	ErrTooLarge = errors.New("too large")
	// ErrMissing: pieces of it did not come.
	ErrMissing = errors.New("pieces are missing")
)

// MaxReport bounds a report in bytes, not compressed: neither is a larger one
// written, nor is more memory taken for one that is read.
const MaxReport = 64 << 20

// What bounds the texts of a report, in bytes.
const (
	MaxName   = 256  // an agent's name, which is refused when longer, and an event's kind, which is cut
	MaxText   = 4096 // an event's text; a longer one is cut, and ends by saying so
	MaxEvents = 1000 // events in a report; of more the first are kept, and the last says how many are not
)

// A Report is what an agent tells at an instant, once a second: what it measured
// since its last report, and how things stand. It keeps memory to encode and
// decode with, so use one again and do not copy it; it is used by one goroutine
// at a time.
type Report struct {
	Agent    string           // which agent's, 1 to MaxName bytes
	Seq      uint64           // 1 for its first report, and one more for each: a gap is a lost report
	Last     bool             // no more will come
	At       int64            // when it was made: ns of the agent's run clock
	Interval measure.Interval // what was measured since the last report
	Extremes measure.Extremes // of all that was measured so far
	Ledger   []byte           // the state of its ledger so far, as the ledger encodes it; may be empty
	Status   []byte           // how the agent and its host stand, as JSON; may be empty
	Events   []Event          // what happened since the last report
	Final    []byte           // with Last: what the agent's part of the run came to, as JSON; may be empty

	coder coder
}

// An Event is something that happened at an agent: what engine.Event says.
type Event struct {
	At         int64 // ns of the agent's run clock
	Kind, Text string
}

// Append appends r's encoded form to b. It is the same for the same report, and
// deflated where that makes it smaller. Events beyond the bounds are cut in it
// and not in r. ErrTooLarge: r is more than MaxReport; any other error is a
// report that has no agent or number, or counts beyond 63 bits. With an error b
// is returned as it was.
func (r *Report) Append(b []byte) ([]byte, error) { return r.coder.append(b, r) }

// Decode sets into to the report that b is, all of it, reusing into's memory: the
// slices of into hold until it is decoded into again; b is not kept. Errors are
// ErrFormat, ErrVersion and ErrTooLarge; into then holds a part of the report.
// Whatever b says, it takes no more memory than MaxReport, a copy of that, and
// the 5.3 MiB that an interval can have.
func Decode(b []byte, into *Report) error { return into.coder.decode(b, into) }
