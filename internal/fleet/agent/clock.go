package agent

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/weirmq/weir/internal/clockstep"
)

// stepNear is how far from its step a clock may be that has just stepped.
const stepNear = 100 * time.Millisecond

// A stepping steps the wall clock that this process and its clients see. A process of its own
// does so, since a process does not hold itself. It is for one goroutine.
type stepping struct {
	agent *Agent
	steps *clockstep.Stepper
	by    time.Duration // that the clock has
}

// newStepping returns one for an agent.
func newStepping(a *Agent) *stepping {
	return &stepping{agent: a, steps: clockstep.NewStepper(a.Self)}
}

// step has the wall clock be apart from that of the host, by 0: not at all. It looks at the clock
// before and after.
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
	moved := time.Duration(after.UnixNano()-before.UnixNano()) - after.Sub(before) // Sub goes by the monotonic clock
	if (moved - (by - was)).Abs() > stepNear {
		return fmt.Errorf("the clock of process %d moved by %v, not by %v", os.Getpid(), moved, by-was)
	}
	return nil
}

// end takes a step back that is left, and ends what steps. s may be nil.
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
