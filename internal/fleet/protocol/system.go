package protocol

import (
	"fmt"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/result"
)

// A Wish asks an agent for the system of a run on its host. It is asked again and
// again: each answer says how far that is.
type Wish struct {
	Session  string `json:"session"`
	Run      string `json:"run"`
	Scenario []byte `json:"scenario,omitempty"` // to be started; absent: how far is it?
	Files    Files  `json:"files,omitempty"`
	End      bool   `json:"end,omitempty"`
	Seen     int    `json:"seen,omitempty"`    // happenings that were told of already
	Sampled  int64  `json:"sampled,omitempty"` // samples of the host until then were told of already, as its agent counts time
	KeepNS   int64  `json:"keep_ns,omitempty"` // for how long the run may still go on without its coordinator
}

// Check returns ErrMalformed for a wish that cannot be.
func (w *Wish) Check() error {
	if w.Session == "" || w.Run == "" || w.End && len(w.Scenario) > 0 {
		return fmt.Errorf("%w: a wish without a session or a run, or to start and to end", ErrMalformed)
	}
	return nil
}

// A Hosted says how far the system of a run is on an agent's host.
type Hosted struct {
	Error   string              `json:"error,omitempty"` // there is none, because
	Kind    string              `json:"kind,omitempty"`  // of the error; see errorKinds
	Busy    bool                `json:"busy,omitempty"`  // with the end of another run's: ask again
	Doing   string              `json:"doing,omitempty"` // to start it
	Up      bool                `json:"up,omitempty"`
	Gone    bool                `json:"gone,omitempty"` // nothing of it is left, or never was
	Address []string            `json:"address,omitempty"`
	Options map[string][]string `json:"options,omitempty"`
	Started *result.Started     `json:"started,omitempty"`
	Servers []Server            `json:"servers,omitempty"`  // where clients reach them, where faults break connections
	Host    *host.Facts         `json:"host,omitempty"`     // of the agent's host, when it is up
	Since   []Event             `json:"happened,omitempty"` // after those that were told of

	NowNS   int64         `json:"now_ns,omitempty"`  // now, as the instants of Samples count
	Samples []host.Sample `json:"samples,omitempty"` // of the host, that were not told of yet
}

// A Event is a Happening as it is told.
type Event struct {
	AgoNS int64  `json:"ago_ns"`
	Text  string `json:"text"`
}

// Bounds of what is told of a system.
const (
	MostHappenings = 256
	MostSamples    = 8  // in one answer
	MostProcesses  = 64 // in all of these together, unless a single one has more
	mostServers    = 128
	mostAddresses  = 64
)

// Check returns ErrMalformed for what no system can be. What passes may be shown on a
// terminal.
func (h *Hosted) Check() error {
	words := append([]string{}, h.Address...)
	for name, values := range h.Options {
		words = append(append(words, name), values...)
	}
	if s := h.Started; s != nil {
		words = append(words, s.By, s.Recipe, s.Source, s.Version, s.Agent)
		for _, p := range s.Processes {
			words = append(words, p.Name)
		}
	}
	if err := checkServers(h.Servers); err != nil {
		return err
	}
	named := len(words)
	for _, x := range h.Since {
		if !IsWord(x.Text) || x.AgoNS < 0 || len(h.Since) > MostHappenings {
			return fmt.Errorf("%w: the state of a server is too long, or not text", ErrMalformed)
		}
	}
	if len(h.Samples) > MostSamples {
		return fmt.Errorf("%w: %d samples of a host", ErrMalformed, len(h.Samples))
	}
	for _, x := range h.Samples {
		if x.ToNS <= x.FromNS || x.ToNS > h.NowNS || x.FromNS < 0 || len(x.Processes) > mostServers || !x.Finite() {
			return fmt.Errorf("%w: a sample of a host that cannot be", ErrMalformed)
		}
		for _, p := range x.Processes {
			words = append(words, p.Name)
		}
		for _, a := range x.Absent {
			words = append(append(words, a.Of, a.Why), a.Figures...)
		}
	}
	for _, w := range words {
		if !IsWord(w) {
			return fmt.Errorf("%w: the description of a system is too long, or not text", ErrMalformed)
		}
	}
	if named > 8*mostAddresses || h.Up && (len(h.Address) == 0 || h.Started == nil) {
		return fmt.Errorf("%w: a system that is up at no address, or at too many", ErrMalformed)
	}
	return nil
}
