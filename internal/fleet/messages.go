package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/fleet/hub"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/offset"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// Subjects. A session is one coordinator's life; agents may publish below
// weir.fleet only (package hub), so that nobody but a coordinator gives orders.
const (
	beaconSubject = hub.Orders + "beacon"
	ordersPrefix  = hub.Orders + "all."   // and a session
	agentPrefix   = hub.Orders + "agent." // and an agent's instance, and job, may, holds or system
	fleetPrefix   = hub.Subjects
	serviceName   = "weir-agent" // of NATS's micro-services
	streamPrefix  = "WEIR-"      // and the session: the stream of its runs' reports
)

func doorSubject(session, instance, what string) string {
	return fleetPrefix + session + ".door." + instance + "." + what
}
func orderSubject(instance, what string) string { return agentPrefix + instance + "." + what }
func clockSubject(session string) string        { return fleetPrefix + session + ".clock" }
func booksSubject(session, run string) string   { return ordersPrefix + session + ".books." + run }
func standingSubject(session, instance string) string {
	return fleetPrefix + session + ".standing." + instance
}

func reportSubject(session, run, instance string) string {
	return hub.Reports + session + "." + run + "." + instance
}

// How often, and for how long.
const (
	beaconEvery   = time.Second
	beaconLimit   = 5 * time.Second // without one, after which an agent looks for another coordinator
	standingEvery = 100 * time.Millisecond
	ordersEvery   = 100 * time.Millisecond
	linesEvery    = 2 // orders
	clockEvery    = 100 * time.Millisecond
	clockLimit    = time.Second // for the answer to one question
	askLimit      = 3 * time.Second
	jobLimit      = 20 * time.Second // for an agent to take a job
	tryEvery      = time.Second      // joining
)

// ErrMalformed: a message is not what it should be.
var ErrMalformed = errors.New("malformed message")

// Bounds of messages, in bytes.
const (
	standingSize = 1 << 20
	ordersSize   = 1 << 20
	jobSize      = 8 << 20
	smallSize    = 64 << 10
)

// A beacon says who coordinates.
type beacon struct {
	Session string `json:"session"`
	Version string `json:"version"`
	Host    string `json:"host"`
}

// A challenge asks for a nonce; its answer has one, or an error.
type challenge struct {
	Agent string `json:"agent"`
}

// An answer is that of a coordinator or an agent to a request.
type answer struct {
	Error string `json:"error,omitempty"`
	Kind  string `json:"kind,omitempty"` // of the error; see errorKinds
	Nonce string `json:"nonce,omitempty"`
	Busy  bool   `json:"busy,omitempty"` // with the error: another job is under way here, ask again
	// Of a question about a subscription.
	Nothing  bool `json:"nothing,omitempty"`
	Answered bool `json:"answered,omitempty"`
}

// About is what an agent says of itself and its host.
type About struct {
	Name     string            `json:"name"`
	Instance string            `json:"instance"` // of this process: join.Self.ID, which its subjects have
	Key      string            `json:"key"`      // by which jobs are sealed for it: join.Self.Key
	Version  string            `json:"version"`
	Labels   map[string]string `json:"labels,omitempty"`
	Host     string            `json:"host"`           // the machine's name
	Clock    string            `json:"clock"`          // the same for agents that read one monotonic clock
	Boot     string            `json:"boot,omitempty"` // of the kernel: agents of one share a machine
	OS       string            `json:"os"`
	Cores    int               `json:"cores"`
	Allow    []string          `json:"allow,omitempty"`
	MemoryB  uint64            `json:"memory_free_b,omitempty"` // available now; 0: not known
	Busy     string            `json:"busy,omitempty"`          // the run under way
	Session  string            `json:"session,omitempty"`       // of the coordinator that it belongs to
}

// A job is what an agent shall do of a run. It travels sealed for that agent, and holds
// what a scenario refers to by its reference, never by its value.
type job struct {
	Session  string              `json:"session"`
	Run      string              `json:"run"`
	Number   uint32              `json:"number"` // of the run, in stamps
	Scenario []byte              `json:"scenario"`
	Files    Files               `json:"files,omitempty"` // payloads and traces of the scenario, by path
	Address  []string            `json:"address,omitempty"`
	Options  map[string][]string `json:"options,omitempty"` // of the system that the coordinator started
	Index    int                 `json:"index"`
	Agents   []string            `json:"agents"`
	Shares   []engine.Share      `json:"shares"`
}

func (j *job) check() error {
	switch {
	case j.Session == "", j.Run == "", len(j.Scenario) == 0:
		return fmt.Errorf("%w: a job without a session, a run or a scenario", ErrMalformed)
	case len(j.Agents) == 0, len(j.Agents) != len(j.Shares), j.Index < 0, j.Index >= len(j.Agents):
		return fmt.Errorf("%w: a job of agent %d of %d, with %d shares", ErrMalformed, j.Index, len(j.Agents), len(j.Shares))
	}
	for _, s := range j.Shares {
		if s.Producers.Count < 1 || s.Producers.Index < 0 || s.Producers.Index >= s.Producers.Count ||
			s.Consumers.Count < 1 || s.Consumers.Index < 0 || s.Consumers.Index >= s.Consumers.Count {
			return fmt.Errorf("%w: a share of no part of a run", ErrMalformed)
		}
	}
	return nil
}

// A standing is how an agent stands in a run.
type standing struct {
	Run       string            `json:"run"`
	Come      int               `json:"come"` // stages reached
	Facts     *driver.Facts     `json:"facts,omitempty"`
	Status    *engine.Status    `json:"status,omitempty"`
	Error     string            `json:"error,omitempty"` // it ended without figures
	Kind      string            `json:"kind,omitempty"`  // of the error; see errorKinds
	Exchanges []offset.Exchange `json:"exchanges,omitempty"`
}

// orders are what was decided.
type orders struct {
	Run      string           `json:"run,omitempty"` // "": no run is under way
	Released int              `json:"released"`      // stages that all may pass
	Epoch    map[string]int64 `json:"epoch,omitempty"`
	Lay      uint64           `json:"lay,omitempty"`
	Stop     bool             `json:"stop,omitempty"`
	Why      string           `json:"why,omitempty"`
	Over     bool             `json:"over,omitempty"`
	Leave    bool             `json:"leave,omitempty"`   // nobody listens on after the drain
	Cut      bool             `json:"cut,omitempty"`     // end at once
	Abort    string           `json:"abort,omitempty"`   // the run does not take place, because
	Remover  string           `json:"remover,omitempty"` // the agent that removes the destinations, where the one that made them is gone
	Lines    []line           `json:"lines,omitempty"`   // of the agents' clocks, in the job's order
}

// A line is what is to be added to an agent's instants, which count from the epoch
// as it was translated, to make them the coordinator's: Add at the instant At, and
// PPB more for each that passes.
type line struct {
	At  int64   `json:"at"`
	Add int64   `json:"add"`
	PPB float64 `json:"ppb"`
}

// at is what is to be added to an instant.
func (l *line) at(t int64) int64 { return l.Add + int64(l.PPB*float64(t-l.At)/1e9) }

// A final is what an agent's part came to, beside its histograms and its ledger.
type final struct {
	Part    *engine.Part   `json:"part"`
	Gone    string         `json:"gone,omitempty"`
	Error   string         `json:"error,omitempty"` // with figures
	Kind    string         `json:"kind,omitempty"`
	Hiccups []byte         `json:"hiccups,omitempty"`
	Late    []byte         `json:"late,omitempty"` // the ledger of what came after the drain
	Cost    result.Cost    `json:"cost"`
	Host    host.Facts     `json:"host"`
	Procs   int            `json:"procs"`
	Window  measure.Window `json:"window"` // what happened in the measured window as it was
	Daemons []Daemon       `json:"daemons,omitempty"`
}

func (f *final) check() error {
	if f.Part == nil {
		return fmt.Errorf("%w: a last report without a part", ErrMalformed)
	}
	for _, g := range f.Part.NotSent {
		if g.Phase >= measure.NumPhases {
			return fmt.Errorf("%w: messages of phase %d", ErrMalformed, g.Phase)
		}
	}
	return nil
}

// An errorKind is an error by which a caller decides how a run ended, and its name
// in messages.
type errorKind struct {
	name string
	err  error
}

// errorKinds are all, the first being the name of what is several.
func errorKinds() []errorKind {
	return []errorKind{
		{"guarantee", engine.ErrGuarantee},
		{"contract", engine.ErrContract},
		{"auth", driver.ErrAuth},
		{"unsupported", driver.ErrUnsupported},
		{"too-large", driver.ErrTooLarge},
		{"unreachable", driver.ErrUnreachable},
		{"not-ready", engine.ErrNotReady},
		{"timeout", driver.ErrTimeout},
		{"disconnected", driver.ErrDisconnected},
		{"overloaded", driver.ErrOverloaded},
		{"not-allowed", ErrNotAllowed},
	}
}

// kindOf names the error that err wraps; "" for another.
func kindOf(err error) string {
	for _, k := range errorKinds() {
		if errors.Is(err, k.err) {
			return k.name
		}
	}
	return ""
}

// A told is an error that an agent told of.
type told struct {
	text string
	kind error
}

func (t *told) Error() string { return t.text }
func (t *told) Unwrap() error { return t.kind }

// errorOf makes an error of what an agent told; nil of nothing.
func errorOf(text, kind string) error {
	if text == "" {
		return nil
	}
	t := &told{text: text}
	for _, k := range errorKinds() {
		if k.name == kind {
			t.kind = k.err
		}
	}
	return t
}

// answerable reports whether an answer may go to a subject: a request may name any.
func answerable(subject string) bool { return strings.HasPrefix(subject, "_INBOX.") }

// encode is the JSON of what this package made itself.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("fleet: %T cannot be written: %v", v, err)) // every type here can
	}
	return b
}

// decode reads what came from elsewhere: of at most that many bytes, one value, no
// unknown field. Its errors are ErrMalformed.
func decode(b []byte, most int, into any) error {
	if len(b) > most {
		return fmt.Errorf("%w: %d bytes (at most %d)", ErrMalformed, len(b), most)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: more than one value", ErrMalformed)
	}
	return nil
}
