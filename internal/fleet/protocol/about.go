package protocol

import (
	"fmt"
	"strings"

	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/placement"
)

// mostWords limits the lists in an agent's self-description.
const mostWords = 16

// Check returns ErrMalformed for an invalid About. A valid one is safe to show on a terminal.
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

// About is an agent's description of itself and its host.
type About struct {
	Name     string            `json:"name"`
	Instance string            `json:"instance"` // admission.Self.ID of this process, part of its subjects
	Key      string            `json:"key"`      // admission.Self.Key, to seal jobs for it
	Version  string            `json:"version"`
	Labels   map[string]string `json:"labels,omitempty"`
	Host     string            `json:"host"`           // the machine's name
	Clock    string            `json:"clock"`          // equal for agents that read one monotonic clock
	Boot     string            `json:"boot,omitempty"` // of the kernel: agents with the same share a machine
	OS       string            `json:"os"`
	Cores    int               `json:"cores"`
	Allow    []string          `json:"allow,omitempty"`
	MemoryB  uint64            `json:"memory_free_b,omitempty"` // available; 0: unknown
	Busy     string            `json:"busy,omitempty"`          // current run
	Session  string            `json:"session,omitempty"`       // of its coordinator
}
