// Package clockstep steps the wall clock that a process sees, and no other one: that of the
// host stays. Linux has no namespace for it. But programs read clocks in the vDSO, code that
// the kernel puts into each process. The C library and the JVM do so, and Go programs, too.
//
// Set writes into the vDSO of one process: its three functions that tell the wall clock jump to
// a few instructions, which ask the kernel and add the step. The process is stopped meanwhile,
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
	cmd := exec.Command(self, "internal", "clock")
	in, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMissing, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMissing, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%w: %w", ErrMissing, err)
	}
	err = probe(cmd.Process.Pid, in, bufio.NewReader(out))
	_ = in.Close()
	_ = cmd.Wait()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMissing, err)
	}
	return nil
}

// probe steps the clock of a process and looks at it. The process answers each line of in with
// its clocks.
func probe(pid int, in io.Writer, out *bufio.Reader) error {
	// steps returns how far the wall clock of the process has moved since it answered first,
	// beside its monotonic one.
	var first time.Duration
	steps := func() (time.Duration, error) {
		if _, err := io.WriteString(in, "\n"); err != nil {
			return 0, err
		}
		var wall, monotonic int64
		if _, err := fmt.Fscanln(out, &wall, &monotonic); err != nil {
			return 0, fmt.Errorf("asking a process for its clocks: %w", err)
		}
		apart := time.Duration(wall - monotonic)
		if first == 0 {
			first = apart
		}
		return apart - first, nil
	}
	if _, err := steps(); err != nil {
		return err
	}
	for _, by := range []time.Duration{probed, -probed, 0} {
		if err := Set(pid, by); err != nil {
			return err
		}
		got, err := steps()
		if err != nil {
			return err
		}
		if (got - by).Abs() > near {
			return fmt.Errorf("a step by %v moved the clock of a process by %v", by, got)
		}
	}
	return nil
}

// Main is the process of a probe: `weir internal clock`. It answers each line of in with its
// wall clock and a monotonic one, ns, until in ends.
func Main(in io.Reader, out io.Writer) error {
	began := time.Now()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		now := time.Now()
		if _, err := fmt.Fprintln(out, now.UnixNano(), int64(now.Sub(began))); err != nil {
			return err
		}
	}
	return lines.Err()
}
