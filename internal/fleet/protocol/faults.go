package protocol

import (
	"fmt"
	"net/netip"
	"unicode/utf8"

	"github.com/weirmq/weir/internal/offset"
	"github.com/weirmq/weir/result"
)

// A Server is a process of a system that weir started, as clients reach it.
type Server struct {
	Name    string   `json:"name"`
	Node    int      `json:"node"`
	Address string   `json:"address,omitempty"` // host:port of its node, in the system's words
	Host    string   `json:"host"`              // the IP address it listens on
	Ports   []uint16 `json:"ports,omitempty"`
}

// At returns where clients reach the server.
func (s *Server) At() (all []netip.AddrPort) {
	ip, err := netip.ParseAddr(s.Host)
	if err != nil {
		return nil
	}
	for _, p := range s.Ports {
		all = append(all, netip.AddrPortFrom(ip, p))
	}
	return all
}

// checkServers returns ErrMalformed for an invalid list of servers.
func checkServers(all []Server) error {
	if len(all) > mostServers {
		return fmt.Errorf("%w: %d servers of a system", ErrMalformed, len(all))
	}
	for _, s := range all {
		if !IsWord(s.Name) || !IsWord(s.Address) || s.Node < 1 || len(s.Ports) > mostPorts {
			return fmt.Errorf("%w: a server with too long a description", ErrMalformed)
		}
		if _, err := netip.ParseAddr(s.Host); err != nil {
			return fmt.Errorf("%w: a server at no address", ErrMalformed)
		}
	}
	return nil
}

// A Trouble asks the agent that started the system of a run to execute the scenario's faults on its
// servers, and to report progress. It is sent repeatedly.
type Trouble struct {
	Session string `json:"session"`
	Run     string `json:"run"`
	EpochNS int64  `json:"epoch_ns,omitempty"` // of the run, on the agent's monotonic clock; 0: not fixed yet
	Seen    int    `json:"seen,omitempty"`     // notes already received
	End     bool   `json:"end,omitempty"`      // start no further fault
}

// Check returns ErrMalformed for one that cannot be.
func (t *Trouble) Check() error {
	if t.Session == "" || t.Run == "" || t.EpochNS < 0 || t.Seen < 0 {
		return fmt.Errorf("%w: an order about faults without a session or a run", ErrMalformed)
	}
	return nil
}

// A Troubled reports the progress of faults.
type Troubled struct {
	Error     string            `json:"error,omitempty"`
	Kind      string            `json:"kind,omitempty"`
	Exchanges []offset.Exchange `json:"exchanges,omitempty"`
	Notes     []Note            `json:"notes,omitempty"` // those not yet received
	Over      bool              `json:"over,omitempty"`  // these are the last notes
}

// A Note is a step of a fault.
type Note struct {
	AtNS  int64        `json:"at_ns"` // since the run's epoch, by the agent's clock, like all instants of the Fault
	Text  string       `json:"text"`
	N     int          `json:"n"`     // index of the fault, from 0
	Fault result.Fault `json:"fault"` // its state at that time
}

// Limits of fault reports.
const (
	MostNotes  = 16   // per answer
	MostFaults = 1000 // per run
	MostText   = 256  // bytes per text
	mostPorts  = 64   // per server
)

// Check returns ErrMalformed for an invalid report. A valid one is safe to show on a terminal.
func (t *Troubled) Check() error {
	if len(t.Notes) > MostNotes {
		return fmt.Errorf("%w: %d notes of faults", ErrMalformed, len(t.Notes))
	}
	for _, n := range t.Notes {
		if n.N < 0 || n.N >= MostFaults || !IsWord(n.Text) {
			return fmt.Errorf("%w: a note of a fault that cannot be", ErrMalformed)
		}
		if err := CheckFault(&n.Fault); err != nil {
			return err
		}
	}
	return nil
}

// CheckFault returns ErrMalformed for an invalid fault of an agent. A valid one is safe to show on a
// terminal.
func CheckFault(f *result.Fault) error {
	words := append([]string{f.Do, f.To, f.From, f.Means, f.Error}, f.Processes...)
	for _, w := range words {
		if !IsWord(w) {
			return fmt.Errorf("%w: the description of a fault is too long, or not text", ErrMalformed)
		}
	}
	if len(f.Processes) > mostServers || len(f.Agents) > 0 || f.BoundNS != nil || f.Effect != nil || f.Connections < 0 {
		return fmt.Errorf("%w: a fault of too many processes, or with what an agent does not know", ErrMalformed)
	}
	return nil
}

// Brief shortens a fault's texts for CheckFault.
func Brief(f result.Fault) result.Fault {
	f.Error = BriefText(f.Error)
	return f
}

// BriefText makes a text printable and shortens it.
func BriefText(text string) string {
	if text = Shown(text); len(text) <= MostText {
		return text
	}
	return start(text, MostText-len("…")) + "…"
}

// start returns at most the first most bytes of a text, without splitting a rune.
func start(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
