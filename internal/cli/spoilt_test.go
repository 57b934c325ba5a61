package cli

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/result"
)

// verdictOf reads the verdict of the run in dir's folder r.
func verdictOf(t *testing.T, dir string) (result.Verdict, *result.Result) {
	t.Helper()
	saved := must.Get(result.Read(filepath.Join(dir, "r")))(t)
	return saved.Result.Verdict, saved.Result
}

// doubted fails unless one of the checks found something, and the run is not VALID with all its figures.
func doubted(t *testing.T, v result.Verdict, checks ...string) {
	t.Helper()
	if v.Status == result.Valid && !slices.ContainsFunc(v.Figures, func(f result.Figure) bool { return !f.Quotable }) {
		t.Errorf("the run is VALID, and all figures can be quoted: %+v", v.Checks)
	}
	for _, c := range v.Checks {
		for _, name := range checks {
			if c.Name == name && (c.Status == result.Suspect || c.Status == result.Invalid || c.Status == result.Valid && c.Why != "") {
				if c.Why == "" || c.Value == "" {
					t.Errorf("%s does not say what was found and what to do: %+v", name, c)
				}
				return
			}
		}
	}
	t.Errorf("none of %s is in doubt: %+v", strings.Join(checks, ", "), v.Checks)
}

// Spoils real runs, each in a way that users may encounter.
func TestDisturbedRunIsNotValid(t *testing.T) {
	needs.Time(t)
	t.Run("by others on every core", func(t *testing.T) {
		for range 3 * runtime.NumCPU() {
			hog := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
			must.Do(t, hog.Start())
			t.Cleanup(func() { _ = hog.Process.Kill(); _ = hog.Wait() })
		}
		f := &flight{args: []string{"run", "--driver", "chan", "--warmup", "200ms", "--measure", "3s", "--out", "r"}}
		f.fly(t)
		v, _ := verdictOf(t, f.dir)
		doubted(t, v, judge.CheckCPU, judge.CheckLateness, judge.CheckHiccups)
	})
	t.Run("by being stopped", func(t *testing.T) {
		f := &flight{
			// On a busy host the signal comes seconds after the line that it waits for.
			args: []string{"run", "--driver", "chan", "--warmup", "200ms", "--measure", "9s", "--out", "r"},
			on:   "measuring",
			then: func(p *os.Process) {
				_ = p.Signal(syscall.SIGSTOP)
				time.Sleep(time.Second)
				_ = p.Signal(syscall.SIGCONT)
			},
		}
		f.fly(t)
		v, r := verdictOf(t, f.dir)
		doubted(t, v, judge.CheckLateness, judge.CheckHiccups, judge.CheckRate)
		if late := r.Latency.Send.Lateness.MaxNS; late == nil || *late < int64(800*time.Millisecond) {
			t.Errorf("it was stopped for 1 s, and nothing was later than %s", spelled(late))
		}
		// Stopped for one of 9 s: that is at least beyond p90, while the pacer had nothing to do but wait.
		doubted(t, v, judge.CheckLateness)
		var counted []string // of the two checks that show the stop
		for _, c := range v.Checks {
			if c.Name == judge.CheckLateness && !strings.Contains(c.Why, "The host woke the generator too late") {
				t.Errorf("its pacer was stopped while it waited, and lateness says %q", c.Why)
			}
			if (c.Name == judge.CheckLateness || c.Name == judge.CheckRate) && c.Status != result.Valid && c.With == "" {
				counted = append(counted, c.Name)
			}
		}
		if len(counted) > 1 {
			t.Errorf("one stop counts %d times against the run: %s", len(counted), strings.Join(counted, ", "))
		}
		if held := r.Latency.Send.HeldUp.MaxNS; held == nil || *held < int64(800*time.Millisecond) {
			t.Errorf("its pacer was stopped for 1 s, and was held up for %s", spelled(held))
		}
	})
	t.Run("by a collector that never rests", func(t *testing.T) {
		dir, rest := t.TempDir(), make(chan struct{})
		var storm sync.WaitGroup
		storm.Go(func() {
			for {
				select {
				case <-rest:
					return
				default:
					runtime.GC()
				}
			}
		})
		do(t, World{Dir: dir}, "run", "--driver", "chan", "--warmup", "200ms", "--measure", "3s", "--out", "r")
		close(rest)
		storm.Wait()
		v, r := verdictOf(t, dir)
		doubted(t, v, judge.CheckGC, judge.CheckLateness, judge.CheckHiccups)
		if n := r.Host.Usage.GC.Cycles; n < 20 { // of itself it runs once or twice; on a busy host no more than 56 were seen
			t.Errorf("the collector ran %d times in 3 s", n)
		}
	})
	t.Run("by a limit of memory", func(t *testing.T) {
		// Less than half of what the messages in flight take.
		f := &flight{
			env:  map[string]string{"GOMEMLIMIT": "16MiB", "GODEBUG": "gctrace=0"},
			args: []string{"run", "--driver", "chan", "--rate", "100000/s", "--size", "16KiB", "--in-flight", "3000", "--warmup", "200ms", "--measure", "3s", "--out", "r"},
		}
		f.fly(t)
		v, _ := verdictOf(t, f.dir)
		doubted(t, v, judge.CheckGC, judge.CheckLateness, judge.CheckCPU, judge.CheckHiccups, judge.CheckRate)
	})
	t.Run("by consumers that are too slow", func(t *testing.T) {
		t.Parallel() // with the last: both are long and hardly busy
		f := &flight{args: []string{
			"run", "--driver", "chan", "--option", "capacity=8192", "--rate", "1000/s", "--work", "2ms", "--warmup", "200ms", "--measure", "12s", "--drain", "1s", "--out", "r",
		}}
		f.fly(t)
		v, _ := verdictOf(t, f.dir)
		doubted(t, v, judge.CheckSteady)
		for _, c := range v.Checks {
			if c.Name == judge.CheckSteady && !strings.Contains(c.Value, "the backlog grew by") {
				t.Errorf("the backlog grew by some 500 messages each second, and the check says %q", c.Value)
			}
		}
	})
	t.Run("by a rate above what the generator can do", func(t *testing.T) {
		f := &flight{args: []string{"run", "--driver", "noop", "--rate", "50000000/s", "--warmup", "10ms", "--measure", "1s", "--drain", "1s", "--out", "r"}}
		f.fly(t)
		v, r := verdictOf(t, f.dir)
		doubted(t, v, judge.CheckHeadroom)
		late, held := r.Latency.Send.Lateness.Percentile(50), r.Latency.Send.HeldUp.Percentile(50)
		if late == nil || held == nil {
			t.Fatalf("the warm-up of half a million messages took the whole second: %d of the window were sent", r.Messages.Sent)
		}
		if held.NS > late.NS/2 {
			t.Errorf("a pacer that never had to wait was held up for %d of the %d ns that it was late", held.NS, late.NS)
		}
	})
	t.Run("by a warm-up that is too short", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		cold := driver.Definition{
			Name: "cold", Title: "cold", Summary: "s", New: func() driver.Config { return &coldConfig{} },
			Capabilities: driver.Capabilities{Guarantees: []driver.Guarantee{driver.Buffered}, Batch: false},
		}
		do(t, World{Dir: dir, Drivers: []driver.Definition{cold}}, "run", "--driver", "cold", "--rate", "500/s", "--warmup", "0s", "--measure", "14s", "--out", "r")
		v, _ := verdictOf(t, dir)
		doubted(t, v, judge.CheckSteady)
	})
}

// A coldConfig is a system that is slow for its first four seconds.
type coldConfig struct {
	driver.Conn
	warm time.Time
}

func (c *coldConfig) Validate() error { return nil }

func (c *coldConfig) Open(context.Context, driver.Run) (driver.Conn, error) {
	return &coldConfig{}, nil
}

func (c *coldConfig) Declare(context.Context, ...driver.Destination) error { return nil }
func (c *coldConfig) Delete(context.Context, ...driver.Destination) error  { return nil }
func (c *coldConfig) Close(context.Context) error                          { return nil }

func (c *coldConfig) Facts(context.Context) (driver.Facts, error) {
	return driver.Facts{Name: "cold", Version: "1", Confirms: driver.Confirms{Guarantee: driver.Buffered}}, nil
}

func (c *coldConfig) Producer(_ context.Context, _ driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	c.warm = time.Now().Add(4 * time.Second)
	return &coldProducer{c: c, done: done}, nil
}

type coldProducer struct {
	c    *coldConfig
	done driver.Completer
	out  sync.WaitGroup
}

func (p *coldProducer) Publish(_ context.Context, m *driver.Message) {
	delay := 5 * time.Millisecond
	if time.Now().Before(p.c.warm) {
		delay = 250 * time.Millisecond
	}
	p.out.Add(1)
	time.AfterFunc(delay, func() {
		p.done.Complete(m, nil)
		p.out.Done()
	})
}

func (p *coldProducer) Flush(context.Context) error { p.out.Wait(); return nil }
func (p *coldProducer) Close(context.Context) error { p.out.Wait(); return nil }

// spelled writes a figure of a result.
func spelled(ns *int64) string {
	if ns == nil {
		return "a time that is not known"
	}
	return time.Duration(*ns).String()
}
