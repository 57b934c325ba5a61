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
	Address string   `json:"address,omitempty"` // host:port of its node, as the system names it
	Host    string   `json:"host"`              // the IP address that it listens at
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

// checkServers returns ErrMalformed for what the servers of no system are.
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

// A Trouble asks the agent that started the system of a run to do to its servers what the
// scenario's faults say, and how far that is. It is asked again and again.
type Trouble struct {
	Session string `json:"session"`
	Run     string `json:"run"`
	EpochNS int64  `json:"epoch_ns,omitempty"` // of the run, on the agent's monotonic clock; 0: it is not fixed yet
	Seen    int    `json:"seen,omitempty"`     // notes that were told of already
	End     bool   `json:"end,omitempty"`      // no further fault happens
}

// Check returns ErrMalformed for one that cannot be.
func (t *Trouble) Check() error {
	if t.Session == "" || t.Run == "" || t.EpochNS < 0 || t.Seen < 0 {
		return fmt.Errorf("%w: an order about faults without a session or a run", ErrMalformed)
	}
	return nil
}

// A Troubled says how far faults are.
type Troubled struct {
	Error     string            `json:"error,omitempty"`
	Kind      string            `json:"kind,omitempty"`
	Exchanges []offset.Exchange `json:"exchanges,omitempty"`
	Notes     []Note            `json:"notes,omitempty"` // that were not told of yet
	Over      bool              `json:"over,omitempty"`  // there will be no further note, and these are the last
}

// A Note is a step of a fault.
type Note struct {
	AtNS  int64        `json:"at_ns"` // since the epoch of the run, by the agent's clock, as all instants of the Fault
	Text  string       `json:"text"`
	N     int          `json:"n"`     // of the fault, from 0
	Fault result.Fault `json:"fault"` // as it is then
}

// Bounds of what is told of faults.
const (
	MostNotes  = 16   // in one answer
	MostFaults = 1000 // of a run
	MostText   = 256  // bytes of a text
	mostPorts  = 64   // of a server
)

// Check returns ErrMalformed for what no fault is. What passes may be shown on a terminal.
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

// CheckFault returns ErrMalformed for what an agent tells of no fault. What passes may be shown
// on a terminal.
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

// Brief makes what an agent tells of a fault short enough for CheckFault.
func Brief(f result.Fault) result.Fault {
	f.Error = BriefText(f.Error)
	return f
}

// BriefText is a text that can be seen, or the beginning of it where it is long.
func BriefText(text string) string {
	if text = Shown(text); len(text) <= MostText {
		return text
	}
	return start(text, MostText-len("…")) + "…"
}

// start returns the first bytes of a text, at most so many, and no part of a letter.
func start(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
