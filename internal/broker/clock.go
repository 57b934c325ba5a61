//go:build unix

package broker

import (
	"errors"
	"os"
	"slices"
	"time"

	"github.com/weirmq/weir/internal/clockstep"
)

// clockPause is how often to look for new processes of a server whose clock is stepped, whether it
// forked or was restarted.
const clockPause = 50 * time.Millisecond

// clocks tracks the servers whose clocks are stepped.
type clocks struct {
	by   map[string]time.Duration // step by process name
	done map[int]time.Duration    // step applied to each process
	tick *time.Ticker             // nil while no clock is stepped

	steps *clockstep.Stepper
}

// close ends the process that steps clocks.
func (c *clocks) close() {
	if c.steps != nil {
		c.steps.Close()
	}
}

// due returns the channel that signals the next look; nil if there is nothing to look for.
func (c *clocks) due() <-chan time.Time {
	if c.tick == nil {
		return nil
	}
	return c.tick.C
}

// step steps the clocks of running servers; a step of 0 restores them.
func (s *supervisor) step(names []string, by time.Duration) error {
	if by != 0 {
		if _, err := s.those(names); err != nil {
			return err
		}
	}
	c := &s.clocks
	if c.by == nil {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		c.steps = clockstep.NewStepper(self)
		c.by, c.done = map[string]time.Duration{}, map[int]time.Duration{}
	}
	for _, name := range names {
		if c.by[name] = by; by == 0 {
			delete(c.by, name)
		}
	}
	var errs []error
	for _, v := range s.servers { // a process that is gone has no step to undo
		if slices.Contains(names, v.unit.name) && !v.gone() {
			errs = append(errs, s.keepStep(v, by))
		}
	}
	if len(c.by) > 0 && c.tick == nil {
		c.tick = time.NewTicker(clockPause)
	}
	if len(c.by) == 0 && c.tick != nil {
		c.tick.Stop()
		c.tick = nil
		c.steps.Close()
		clear(c.done)
	}
	return errors.Join(errs...)
}

// keepSteps steps the clocks of new processes.
func (s *supervisor) keepSteps() {
	for _, v := range s.servers {
		if by := s.clocks.by[v.unit.name]; by != 0 && !v.gone() {
			_ = s.keepStep(v, by) // retried on the next tick
		}
	}
}

// keepStep applies a step to all processes of a server.
func (s *supervisor) keepStep(v *server, by time.Duration) error {
	const most = 20 // looks for processes that started while others were stepped
	for range most {
		pids := slices.DeleteFunc(descendants(v.cmd.Process.Pid), func(pid int) bool {
			is, known := s.clocks.done[pid]
			return known && is == by
		})
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			if err := s.clocks.steps.Set(pid, by); err != nil {
				return err
			}
			s.clocks.done[pid] = by
		}
	}
	return errors.New("it starts processes faster than their clocks are stepped")
}
