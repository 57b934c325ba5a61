package clockstep

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

// busyWord makes the test binary a process that reads its clocks all the time.
const busyWord = "busy"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "internal" {
		var err error
		switch os.Args[2] {
		case "clock":
			err = Main(os.Stdin, os.Stdout)
		case busyWord:
			err = busy()
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// busyStep is the only step applied to busy.
const busyStep = -time.Hour

// busy reads its clocks in several threads until its input ends. The wall clock must be the host's or
// one step away, and the monotonic clock must never go back.
func busy() error {
	began, end := time.Now(), make(chan struct{})
	var all sync.WaitGroup
	wrong := make(chan error, 8)
	for range cap(wrong) {
		all.Go(func() {
			last, looks := time.Duration(0), 0
			for {
				select {
				case <-end:
					if looks == 0 {
						wrong <- errors.New("it never looked")
					}
					return
				default:
				}
				now := time.Now()
				up := now.Sub(began)
				apart := time.Duration(now.UnixNano()-began.UnixNano()) - up
				if up < last || apart.Abs() > time.Minute && (apart-busyStep).Abs() > time.Minute {
					wrong <- fmt.Errorf("after %v, %v before: the wall clock is %v apart", up, last, apart)
					return
				}
				last = up
				looks++
			}
		})
	}
	fmt.Println("began")
	_, _ = io.Copy(io.Discard, os.Stdin)
	close(end)
	all.Wait()
	select {
	case err := <-wrong:
		return err
	default:
		fmt.Println("fine")
		return nil
	}
}

// allowed skips the test if this host does not let weir step clocks.
func allowed(t *testing.T) (self string) {
	t.Helper()
	self = must.Get(os.Executable())(t)
	if err := Check(self); err != nil {
		needs.Host(t, "ptrace", err)
	}
	return self
}

// A child answers each line of its input with a line.
type child struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader

	steps *Stepper
}

func begin(t *testing.T, args ...string) *child {
	t.Helper()
	self := must.Get(os.Executable())(t)
	c := &child{t: t, cmd: exec.Command(args[0], args[1:]...), steps: NewStepper(self)}
	t.Cleanup(c.steps.Close)
	c.in = must.Get(c.cmd.StdinPipe())(t)
	out := must.Get(c.cmd.StdoutPipe())(t)
	c.out = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		needs.Host(t, args[0], err)
	}
	t.Cleanup(func() {
		_ = c.in.Close()
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	})
	return c
}

func (c *child) ask() string {
	c.t.Helper()
	if _, err := io.WriteString(c.in, "\n"); err != nil {
		c.t.Fatal(err)
	}
	line, err := c.out.ReadString('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func (c *child) step(by time.Duration) {
	c.t.Helper()
	if err := c.steps.Set(c.cmd.Process.Pid, by); err != nil {
		c.t.Fatal(err)
	}
}

// TestEveryClockFunctionSteps covers clock_gettime, gettimeofday and time, which bash uses.
func TestEveryClockFunctionSteps(t *testing.T) {
	allowed(t)
	script := `while read -r _; do printf '%s %s %s\n' "$(date +%s)" "${EPOCHREALTIME%[.,]*}" "$EPOCHSECONDS"; done`
	c := begin(t, "bash", "-c", script)
	for _, by := range []time.Duration{0, -time.Hour, 36 * time.Hour, 1500 * time.Millisecond, -Most, 0} {
		c.step(by)
		words := strings.Fields(c.ask())
		if len(words) != 3 {
			t.Fatalf("%q", words)
		}
		now := time.Now()
		for i, what := range []string{"date, which is another program", "gettimeofday", "time"} {
			want := now.Add(by)
			if i == 0 {
				want = now // an executed program gets a new vDSO
			}
			got, err := strconv.ParseInt(words[i], 10, 64)
			if err != nil || (time.Unix(got, 0).Sub(want)).Abs() > 20*time.Second {
				t.Errorf("a step by %v: %s says %s; want about %d", by, what, words[i], want.Unix())
			}
		}
	}
}

func TestTheFractionOfAStepCounts(t *testing.T) {
	self := allowed(t)
	c := begin(t, self, "internal", "clock")
	apart := func() time.Duration {
		var wall, monotonic int64
		must.Get(fmt.Sscan(c.ask(), &wall, &monotonic))(t)
		return time.Duration(wall - monotonic)
	}
	first := apart()
	// The host's own clock may be slewed slightly in the meantime.
	for _, by := range []time.Duration{1700 * time.Millisecond, -1700 * time.Millisecond, 300 * time.Millisecond, -300 * time.Millisecond} {
		c.step(by)
		if got := apart() - first; (got - by).Abs() > 100*time.Millisecond {
			t.Errorf("a step by %v moved the clock by %v", by, got)
		}
	}
}

// TestForkedChildInheritsStep reads the clock in a bash subshell.
func TestForkedChildInheritsStep(t *testing.T) {
	allowed(t)
	c := begin(t, "bash", "-c", `while read -r _; do ( echo "$EPOCHSECONDS" ); done`)
	c.ask()
	c.step(-time.Hour)
	got, err := strconv.ParseInt(c.ask(), 10, 64)
	if err != nil || (time.Since(time.Unix(got, 0))-time.Hour).Abs() > 20*time.Second {
		t.Errorf("a subshell says %d, %v", got, err)
	}
}

// TestBusyReaderStepsRepeatedly modifies code while it runs.
func TestBusyReaderStepsRepeatedly(t *testing.T) {
	self := allowed(t)
	c := begin(t, self, "internal", busyWord)
	if said, err := c.out.ReadString('\n'); err != nil || said != "began\n" {
		t.Fatalf("it said %q, %v", said, err)
	}
	for range 100 {
		c.step(busyStep)
		c.step(0)
	}
	must.Do(t, c.in.Close())
	if said, err := c.out.ReadString('\n'); err != nil || said != "fine\n" {
		t.Errorf("it said %q, %v", said, err)
	}
}

func TestUndoRestoresOriginalVDSO(t *testing.T) {
	self := allowed(t)
	c := begin(t, self, "internal", "clock")
	v := must.Get(find())(t)
	functions := func() []byte {
		mem, from, _, err := mapped(c.cmd.Process.Pid, os.O_RDONLY)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = mem.Close() }()
		b := make([]byte, v.room)
		must.Get(mem.ReadAt(b, int64(from)))(t)
		return b
	}
	c.step(time.Hour)
	if string(functions()) == string(v.image[:v.room]) {
		t.Error("a step changes nothing")
	}
	c.step(0)
	if string(functions()) != string(v.image[:v.room]) {
		t.Error("without the step, its functions are others than those of the kernel")
	}
}

func TestAStoppedProcessStays(t *testing.T) {
	self := allowed(t)
	c := begin(t, self, "internal", "clock")
	c.ask()
	pid := c.cmd.Process.Pid
	must.Do(t, unix.Kill(pid, unix.SIGSTOP))
	must.Until(t, "it stands", func() bool { return states(t, pid) == "T" })
	c.step(time.Hour)
	must.Until(t, "it stands again", func() bool { return states(t, pid) == "T" })
	must.Do(t, unix.Kill(pid, unix.SIGCONT))
	c.ask()
}

// TestStopDuringStepIsKept stops a process at about the instant of a step.
func TestStopDuringStepIsKept(t *testing.T) {
	self := allowed(t)
	c := begin(t, self, "internal", busyWord)
	if said, err := c.out.ReadString('\n'); err != nil || said != "began\n" {
		t.Fatalf("it said %q, %v", said, err)
	}
	pid := c.cmd.Process.Pid
	for i := range 100 {
		stopped := make(chan error, 1)
		go func() {
			time.Sleep(time.Duration(i%20) * 50 * time.Microsecond)
			stopped <- unix.Kill(pid, unix.SIGSTOP)
		}()
		// A busy program may be stopped while it reads its clock, which is reported.
		if err := c.steps.Set(pid, []time.Duration{busyStep, 0}[i%2]); err != nil && !strings.Contains(err.Error(), errStays.Error()) {
			t.Fatal(err)
		}
		if err := <-stopped; err != nil {
			t.Fatal(err)
		}
		must.Until(t, "it stands", func() bool { return states(t, pid) == "T" })
		time.Sleep(2 * time.Millisecond)
		if got := states(t, pid); got != "T" {
			t.Fatalf("stop %d: its threads are in states %s", i, got)
		}
		must.Do(t, unix.Kill(pid, unix.SIGCONT))
		must.Until(t, "it continues", func() bool { return !strings.Contains(states(t, pid), "T") })
	}
	must.Do(t, c.in.Close())
	if said, err := c.out.ReadString('\n'); err != nil || said != "fine\n" {
		t.Errorf("it said %q, %v", said, err)
	}
}

// states returns the distinct states of a process's threads.
func states(t *testing.T, pid int) string {
	t.Helper()
	dir := filepath.Join("/proc", strconv.Itoa(pid), "task")
	threads := must.Get(os.ReadDir(dir))(t)
	var all []string
	for _, e := range threads {
		b, err := os.ReadFile(filepath.Join(dir, e.Name(), "stat"))
		if err != nil {
			continue // it ended
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		all = append(all, rest[:1])
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), "")
}

// TestExitDuringStepIsDetected lets a process die at about the instant of a step. Its parent sees
// that.
func TestExitDuringStepIsDetected(t *testing.T) {
	self := allowed(t)
	for i := range 20 {
		c := begin(t, self, "internal", busyWord)
		if said, err := c.out.ReadString('\n'); err != nil || said != "began\n" {
			t.Fatalf("it said %q, %v", said, err)
		}
		go func() {
			time.Sleep(time.Duration(i) * 50 * time.Microsecond)
			_ = c.cmd.Process.Kill()
		}()
		err := c.steps.Set(c.cmd.Process.Pid, busyStep)
		ended := make(chan error, 1)
		go func() { ended <- c.cmd.Wait() }()
		select {
		case why := <-ended:
			if why == nil || why.Error() != "signal: killed" {
				t.Errorf("kill %d: it ended by %v", i, why)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("kill %d: its parent does not see the end", i)
		}
		if err != nil {
			t.Errorf("kill %d: %v", i, err)
		}
	}
}

func TestUnsupportedProcessCannotBeStepped(t *testing.T) {
	self := allowed(t)
	c := begin(t, self, "internal", "clock")
	if err := c.steps.Set(c.cmd.Process.Pid, Most+1); err == nil {
		t.Error("a step that is too large")
	}
	_ = c.in.Close()
	_ = c.cmd.Wait()
	if err := c.steps.Set(c.cmd.Process.Pid, time.Hour); err != nil {
		t.Errorf("of a process that is gone: %v", err)
	}
	if err := c.steps.Set(2, time.Hour); err == nil { // a kernel thread
		t.Error("a process without a vDSO")
	}
}
