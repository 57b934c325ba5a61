// Package clockstep steps the wall clock that a process sees, and no other one: that of the
// host stays. Linux has no namespace for it. But programs read clocks in the vDSO, code that
// the kernel puts into each process. The C library and the JVM do so, and Go programs, too.
//
// A Stepper writes into the vDSO of a process: its three functions that tell the wall clock jump
// to a few instructions, which ask the kernel and add the step. The process is held meanwhile,
// for about a millisecond. Until then it is untouched, and afterwards it has its code back. The
// memory is its own, so nothing of it outlives the process.
//
// Clocks that count from a start (CLOCK_MONOTONIC) do not step. What the kernel itself does by
// the wall clock does not step either: times of files, timers for an instant of it.
package clockstep

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// ErrMissing: this host does not let weir step the clock of a process.
var ErrMissing = errors.New("this host does not let weir step the clock of a process")

// Means is what steps a clock, for results.
const Means = "vDSO"

// Most is the largest step, in each direction.
const Most = 366 * 24 * time.Hour

// probed is the step of a probe. It is one that no clock makes of itself.
const probed = -1234567 * time.Millisecond

// near is how far from its step the clock of a probe may be.
const near = 10 * time.Second

// Check refuses, with ErrMissing and what is needed, a host on which no clock can be stepped. It
// starts a process, self with the arguments of Main, steps its clock, looks at both clocks of
// the process, and takes the step back.
func Check(self string) error {
	steps := NewStepper(self)
	defer steps.Close()
	c, err := start(self)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMissing, err)
	}
	defer c.end()
	return probe(c, steps)
}

// probe steps the clock of a process and looks at it.
func probe(c *clock, steps *Stepper) error {
	// moved returns how far the wall clock of the process has moved since it answered first,
	// beside its monotonic one.
	var first time.Duration
	moved := func() (time.Duration, error) {
		said, err := c.ask("")
		if err != nil {
			return 0, fmt.Errorf("%w: asking a process for its clocks: %w", ErrMissing, err)
		}
		var wall, monotonic int64
		if _, err := fmt.Sscan(said, &wall, &monotonic); err != nil {
			return 0, fmt.Errorf("%w: asking a process for its clocks: %w", ErrMissing, err)
		}
		apart := time.Duration(wall - monotonic)
		if first == 0 {
			first = apart
		}
		return apart - first, nil
	}
	if _, err := moved(); err != nil {
		return err
	}
	for _, by := range []time.Duration{probed, -probed, 0} {
		if err := steps.Set(c.cmd.Process.Pid, by); err != nil {
			return err
		}
		got, err := moved()
		if err != nil {
			return err
		}
		if (got - by).Abs() > near {
			return fmt.Errorf("%w: a step by %v moved the clock of a process by %v", ErrMissing, by, got)
		}
	}
	return nil
}

// A Stepper steps clocks of processes. A process of weir's own does it, since it traces them: a
// process that traces its own child takes each stop for an end. It is for one goroutine.
type Stepper struct {
	self  string
	clock *clock // nil: not started
}

// NewStepper returns one that starts its process, self with the arguments of Main, when the first
// clock is to step.
func NewStepper(self string) *Stepper { return &Stepper{self: self} }

// Set has the wall clock of a process be apart from that of the host by a step; 0: not at all.
// Children that it makes later by fork have the step, too, and programs that they become have
// not. A process that is gone is not an error, and one that is stopped stays so. What went wrong
// before anything was written is ErrMissing.
func (s *Stepper) Set(pid int, by time.Duration) error {
	if by.Abs() > Most {
		return fmt.Errorf("stepping a clock by %v: at most %v", by, Most)
	}
	if s.clock == nil {
		c, err := start(s.self)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrMissing, err)
		}
		s.clock = c
	}
	said, err := s.clock.ask(fmt.Sprintf("%d %d", pid, int64(by)))
	if err != nil {
		s.Close() // and the next one starts another
		return fmt.Errorf("stepping the clock of process %d: %w", pid, err)
	}
	if said != done {
		return fmt.Errorf("%w: %s", ErrMissing, said)
	}
	return nil
}

// Pid is the number of its process; 0: it has none at this time.
func (s *Stepper) Pid() int {
	if s.clock == nil {
		return 0
	}
	return s.clock.cmd.Process.Pid
}

// Close ends the process. Clocks keep their steps.
func (s *Stepper) Close() {
	if s.clock != nil {
		s.clock.end()
		s.clock = nil
	}
}

// A clock is a process in which Main runs.
type clock struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(self string) (*clock, error) {
	c := &clock{cmd: exec.Command(self, "internal", "clock")}
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	return c, c.cmd.Start()
}

// ask writes a line and returns the one that answers it.
func (c *clock) ask(line string) (string, error) {
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		return "", err
	}
	said, err := c.out.ReadString('\n')
	return strings.TrimSuffix(said, "\n"), err
}

func (c *clock) end() {
	_ = c.in.Close()
	_ = c.cmd.Wait()
}

// done is the answer to what was done.
const done = "done"

// Main is the process of a Stepper and of a probe: `weir internal clock`. To an empty line of in
// it answers its wall clock and a monotonic one, ns. A line with the number of a process and ns
// has it step the clock of that one, and it answers that it is done, or why it is not. It returns
// when in ends.
func Main(in io.Reader, out io.Writer) error {
	began := time.Now()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		said := done
		if lines.Text() == "" {
			now := time.Now()
			said = fmt.Sprintf("%d %d", now.UnixNano(), int64(now.Sub(began)))
		} else if err := obey(lines.Text()); err != nil {
			said = strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		if _, err := fmt.Fprintln(out, said); err != nil {
			return err
		}
	}
	return lines.Err()
}

// obey does what a line says.
func obey(line string) error {
	var pid int
	var by time.Duration
	if _, err := fmt.Sscanf(line, "%d %d", &pid, &by); err != nil {
		return fmt.Errorf("reading %q: %w", line, err)
	}
	return set(pid, by)
}
