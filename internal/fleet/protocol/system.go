package protocol

import (
	"fmt"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/result"
)

// A Wish asks an agent to provide the system of a run on its host. It is sent repeatedly, and each answer
// reports the progress.
type Wish struct {
	Session  string `json:"session"`
	Run      string `json:"run"`
	Scenario []byte `json:"scenario,omitempty"` // to start; absent: only report progress
	Files    Files  `json:"files,omitempty"`
	End      bool   `json:"end,omitempty"`
	Seen     int    `json:"seen,omitempty"`    // events already received
	Sampled  int64  `json:"sampled,omitempty"` // samples received up to here, by the agent's time
	KeepNS   int64  `json:"keep_ns,omitempty"` // how long the run may continue without its coordinator
}

// Check returns ErrMalformed for a wish that cannot be.
func (w *Wish) Check() error {
	if w.Session == "" || w.Run == "" || w.End && len(w.Scenario) > 0 {
		return fmt.Errorf("%w: a wish without a session or a run, or to start and to end", ErrMalformed)
	}
	return nil
}

// A Hosted is the state of a run's system on an agent's host.
type Hosted struct {
	Error   string              `json:"error,omitempty"` // why there is no system
	Kind    string              `json:"kind,omitempty"`  // of the error; see errorKinds
	Busy    bool                `json:"busy,omitempty"`  // still stopping another run's: retry
	Doing   string              `json:"doing,omitempty"` // current step of the start
	Up      bool                `json:"up,omitempty"`
	Gone    bool                `json:"gone,omitempty"` // nothing of it is left, or there never was
	Address []string            `json:"address,omitempty"`
	Options map[string][]string `json:"options,omitempty"`
	Started *result.Started     `json:"started,omitempty"`
	Servers []Server            `json:"servers,omitempty"`  // where clients reach them, if faults break connections
	Host    *host.Facts         `json:"host,omitempty"`     // of the agent, once the system is up
	Since   []Event             `json:"happened,omitempty"` // those not yet received

	NowNS   int64         `json:"now_ns,omitempty"`  // the present, in the time of Samples
	Samples []host.Sample `json:"samples,omitempty"` // of the host, those not yet received
}

// An Event is a Happening in a message.
type Event struct {
	AgoNS int64  `json:"ago_ns"`
	Text  string `json:"text"`
}

// Limits of a system's state.
const (
	MostHappenings = 256
	MostSamples    = 8  // in one answer
	MostProcesses  = 64 // in all samples of an answer, unless a single one has more
	mostServers    = 128
	mostAddresses  = 64
)

// Check returns ErrMalformed for an invalid state. A valid one is safe to show on a terminal.
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
