// Package clockstep steps the wall clock that one process sees; the host's clock and other processes
// are not affected. Linux has no namespace for the wall clock, but programs read clocks through the
// vDSO, code that the kernel maps into each process. The C library, the JVM and Go programs all do.
//
// A Stepper modifies the vDSO of a process: the three functions that return the wall clock jump to a
// few instructions that ask the kernel and add the step. The process is stopped for about a
// millisecond while the code is written. Undoing the step restores the original code. The memory is
// private to the process, so that no change outlives it.
//
// Monotonic clocks (CLOCK_MONOTONIC) do not step. Neither does what the kernel itself does by the wall
// clock: file times, and timers for an instant.
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

// ErrMissing is returned when this host does not let weir step the clock of a process.
var ErrMissing = errors.New("this host does not let weir step the clock of a process")

// Means names, for results, the mechanism that steps a clock.
const Means = "vDSO"

// Most is the largest step in either direction.
const Most = 366 * 24 * time.Hour

// probed is the step of a probe: a value that no clock reaches by itself.
const probed = -1234567 * time.Millisecond

// near is how far a probe's clock may be from its step.
const near = 10 * time.Second

// Check returns ErrMissing, with what is missing, if clocks cannot be stepped on this host. It starts
// a process, self with the arguments of Main, steps its clock, checks both clocks of the process, and
// undoes the step.
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

// probe steps the clock of a process and checks it.
func probe(c *clock, steps *Stepper) error {
	// moved returns how far the process's wall clock has moved since its first answer, relative to its
	// monotonic clock.
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

// A Stepper steps clocks of processes. It uses a separate process because it traces the targets: a
// process that traces its own child would take each stop for its end. It is not safe for concurrent
// use.
type Stepper struct {
	self  string
	clock *clock // nil: not started
}

// NewStepper returns a Stepper that starts its process, self with the arguments of Main, when it first
// steps a clock.
func NewStepper(self string) *Stepper { return &Stepper{self: self} }

// Set makes the wall clock of a process differ from the host's by a step; 0 removes the difference.
// Children forked later inherit the step, but programs that they execute do not. A process that is
// gone is not an error, and a stopped one stays stopped. A failure before anything was written is
// ErrMissing.
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
		s.Close() // the next call starts another
		return fmt.Errorf("stepping the clock of process %d: %w", pid, err)
	}
	if said != done {
		return fmt.Errorf("%w: %s", ErrMissing, said)
	}
	return nil
}

// Pid returns the pid of the Stepper's process; 0 if it is not running.
func (s *Stepper) Pid() int {
	if s.clock == nil {
		return 0
	}
	return s.clock.cmd.Process.Pid
}

// Close ends the Stepper's process. Clocks keep their steps.
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

// ask writes a line and returns the reply.
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

// done is the reply to a successful request.
const done = "done"

// Main is the process of a Stepper and of a probe: `weir internal clock`. It answers an empty line of
// in with its wall clock and a monotonic clock, in ns. A line with a pid and ns makes it step that
// process's clock; it answers with done or an error. It returns at the end of in.
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

// obey carries out a line.
func obey(line string) error {
	var pid int
	var by time.Duration
	if _, err := fmt.Sscanf(line, "%d %d", &pid, &by); err != nil {
		return fmt.Errorf("reading %q: %w", line, err)
	}
	return set(pid, by)
}
