package agent

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/weirmq/weir/internal/clockstep"
)

// stepNear is the largest error of a clock that has just been stepped.
const stepNear = 100 * time.Millisecond

// A stepping steps the wall clock that this process and its clients see. A child process does it, since a
// process cannot stop itself. It is not safe for concurrent use.
type stepping struct {
	agent *Agent
	steps *clockstep.Stepper
	by    time.Duration // current step
}

// newStepping returns a stepping for an agent.
func newStepping(a *Agent) *stepping {
	return &stepping{agent: a, steps: clockstep.NewStepper(a.Self)}
}

// step sets the wall clock's distance from the host's, 0 to restore it, and verifies it.
func (s *stepping) step(by time.Duration) error {
	if s == nil || s.agent.Self == "" {
		return errors.New("this agent cannot step its clock")
	}
	before := time.Now()
	pids := slices.DeleteFunc(s.agent.clients(), func(pid int) bool { return pid == s.steps.Pid() })
	was := s.by
	s.by = by
	for _, pid := range pids {
		if err := s.steps.Set(pid, by); err != nil {
			return err
		}
	}
	after := time.Now()
	moved := time.Duration(after.UnixNano()-before.UnixNano()) - after.Sub(before) // Sub uses the monotonic clock
	if (moved - (by - was)).Abs() > stepNear {
		return fmt.Errorf("the clock of process %d moved by %v, not by %v", os.Getpid(), moved, by-was)
	}
	return nil
}

// end undoes a remaining step, and stops the child. s may be nil.
func (s *stepping) end() (err error) {
	if s == nil {
		return nil
	}
	if s.by != 0 {
		err = s.step(0)
	}
	s.steps.Close()
	return err
}
