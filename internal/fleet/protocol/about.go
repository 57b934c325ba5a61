package protocol

import (
	"fmt"
	"strings"

	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/placement"
)

// mostWords bounds the lists in what an agent says of itself.
const mostWords = 16

// Check returns ErrMalformed for what no agent says of itself. What passes may be
// shown on a terminal.
func (x *About) Check() error {
	if err := placement.CheckName(x.Name); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	words := append([]string{x.Instance, x.Key, x.Version, x.Host, x.Clock, x.Boot, x.OS, x.Busy, x.Session}, x.Allow...)
	for k, v := range x.Labels {
		words = append(words, k, v)
	}
	for _, w := range words {
		if !IsWord(w) {
			return fmt.Errorf("%w: agent %s describes itself with something too long, or not text", ErrMalformed, x.Name)
		}
	}
	switch {
	case x.Instance == "" || strings.ContainsAny(x.Instance, ".*> "):
		return fmt.Errorf("%w: an agent without an instance", ErrMalformed)
	case len(x.Labels) > admission.Labels, len(x.Allow) > mostWords, x.Cores < 0 || x.Cores > 1<<20:
		return fmt.Errorf("%w: agent %s sends too long a description of itself", ErrMalformed, x.Name)
	}
	return nil
}

// About is what an agent says of itself and its host.
type About struct {
	Name     string            `json:"name"`
	Instance string            `json:"instance"` // of this process: admission.Self.ID, which its subjects have
	Key      string            `json:"key"`      // by which jobs are sealed for it: admission.Self.Key
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
