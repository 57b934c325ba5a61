package exec

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// opened starts a fake child with faults, in its own folder for sockets.
func opened(t *testing.T, faults string, options ...string) (c driver.Conn, tmp string, err error) {
	t.Helper()
	self := must.Get(os.Executable())(t)
	if tmp, err = os.MkdirTemp("", ""); err != nil { //nolint:usetesting // the path of a socket is short
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(tmp) })
	t.Setenv(role+"_PIDS", t.TempDir())
	t.Setenv("TMPDIR", tmp)
	t.Setenv(role, "plays "+faults)
	c, err = trial.Open(t, Definition(), driver.Run{ID: "run"}, map[string][]string{"command": {self}, "timeout": {"2s"}, "start-limit": {"20s"}}, options...)
	if err == nil {
		t.Cleanup(func() { _ = c.Close(context.Background()) })
	}
	return c, tmp, err
}

// gone fails the test unless all processes and files of a child are gone.
func gone(t *testing.T, tmp string) {
	t.Helper()
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("in the folder for sockets is left: %v, %v", left, err)
	}
	for _, name := range []string{"child", "sleeper"} {
		if alive(t, os.Getenv(role+"_PIDS"), name) {
			t.Errorf("the process %s is left", name)
		}
	}
}

// TestUnusableChildIsRejected: the error explains the fault, with the child's own output if any,
// and nothing is left behind.
func TestUnusableChildIsRejected(t *testing.T) {
	for _, tt := range []struct {
		faults  string
		options []string
		want    string
		is      error
	}{
		{"exits", nil, "the child has ended: exit code 3; its last output: the broker's address is missing", driver.ErrUnreachable},
		{"mute", []string{"start-limit", "200ms"}, "the child has not connected to WEIR_SOCKET within 200ms (option start-limit)", driver.ErrUnreachable},
		{"future", nil, `the child speaks protocol "2", weir speaks 1`, driver.ErrUnsupported},
		{"hangs at open", []string{"timeout", "200ms"}, "open: the child does not answer", driver.ErrUnreachable},
		{"shouts at open", nil, "control connection: malformed frame: kind 47 is not known", errMalformed},
		{"", []string{"order", "destination"}, `option order: destination, but the child states "key"`, driver.ErrUnsupported},
		{"", []string{"retains", "yes"}, "the child does not state retains (it states consumers, keys, settle-confirmed, settle-each)", driver.ErrUnsupported},
	} {
		t.Run(tt.faults+strings.Join(tt.options, " "), func(t *testing.T) {
			_, tmp, err := opened(t, tt.faults, tt.options...)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !errors.Is(err, tt.is) {
				t.Errorf("got %v; want %s", err, tt.want)
			}
			gone(t, tmp)
		})
	}
}

func TestInvalidCommandIsRejected(t *testing.T) {
	for want, command := range map[string][]string{"is empty": nil, "no-such-program": {"no-such-program"}} {
		system := map[string][]string{}
		if command != nil {
			system["command"] = command
		}
		var oe *driver.OptionError
		if _, err := trial.Open(t, Definition(), driver.Run{ID: "run"}, system); !errors.As(err, &oe) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", command, err)
		}
	}
}

func TestUndeclaredCapabilitiesAreRejected(t *testing.T) {
	c, _ := must.Two(opened(t, ""))(t)
	ctx := t.Context()
	consume := func(spec driver.ConsumerSpec) error {
		spec.Destinations = []string{"d"}
		_, err := c.Consumer(ctx, spec)
		return err
	}
	must.Do(t, consume(driver.ConsumerSpec{Subscription: "s"}))
	for want, err := range map[string]error{
		"partitions":    c.Declare(ctx, driver.Destination{Name: "d", Partitions: 2, Replicas: 1}),
		"replicas":      c.Declare(ctx, driver.Destination{Name: "d", Partitions: 1, Replicas: 2}),
		"subscriptions": consume(driver.ConsumerSpec{Subscription: "t"}),
		"competing":     consume(driver.ConsumerSpec{Subscription: "s", Index: 1}),
		"settle-auto":   consume(driver.ConsumerSpec{Subscription: "s", Settle: driver.SettleAuto}),
	} {
		if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "does not state "+want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestAFaultyProducerFailsItsMessages: each message fails exactly once, with an error that names
// the fault.
func TestAFaultyProducerFailsItsMessages(t *testing.T) {
	for _, tt := range []struct{ faults, want string }{
		{"confirms another", "malformed frame: message 1"},
		{"confirms twice", "malformed frame: message "},
		{"dies", "the child has ended: exit code 7"},
		{"confirms nothing", "closed"},
	} {
		t.Run(tt.faults, func(t *testing.T) {
			c, tmp := must.Two(opened(t, tt.faults))(t)
			var mu sync.Mutex
			times, last := map[*driver.Message]int{}, error(nil)
			p := must.Get(c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"d"}, InFlight: 10}, completer(func(m *driver.Message, err error) {
				mu.Lock()
				defer mu.Unlock()
				if times[m]++; err != nil {
					last = err
				}
			})))(t)
			ms := make([]*driver.Message, 10)
			for i := range ms {
				ms[i] = &driver.Message{Destination: "d", Payload: []byte("payload")}
				p.Publish(t.Context(), ms[i])
			}
			if tt.faults != "confirms nothing" {
				_ = p.Flush(t.Context())
			}
			if tt.faults == "confirms twice" { // the second frame may arrive after all have completed
				trial.Eventually(func() bool {
					m := &driver.Message{Destination: "d", Payload: []byte("more")}
					p.Publish(t.Context(), m)
					_ = p.Flush(t.Context())
					mu.Lock()
					defer mu.Unlock()
					return last != nil
				})
			}
			_ = p.Close(t.Context())
			mu.Lock()
			for _, m := range ms {
				if times[m] != 1 {
					t.Errorf("a message completed %d times", times[m])
				}
			}
			if last == nil || !strings.Contains(last.Error(), tt.want) {
				t.Errorf("messages fail with %v; want %s", last, tt.want)
			}
			mu.Unlock()
			_ = c.Close(t.Context())
			gone(t, tmp)
		})
	}
}

// TestAFaultyConsumerEndsWithAnError checks that the error names the fault.
func TestAFaultyConsumerEndsWithAnError(t *testing.T) {
	for faults, want := range map[string]string{
		"is from elsewhere":             "malformed frame: kind 8 is cut off",
		"settles what it was not given": "malformed frame: deliver frame 9 does not wait",
		"loses":                         "not supported: the group is gone",
	} {
		t.Run(faults, func(t *testing.T) {
			c, tmp := must.Two(opened(t, faults))(t)
			x := must.Get(c.Consumer(t.Context(), driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}}))(t)
			if err := x.Run(t.Context(), trial.NewLog()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Run: %v; want %s", err, want)
			}
			_ = x.Close(t.Context())
			_ = c.Close(t.Context())
			gone(t, tmp)
		})
	}
}

// TestStalledChildBlocksNothing: requests, Flush and Close end within their limits, and Close kills
// the child.
func TestStalledChildBlocksNothing(t *testing.T) {
	c, tmp := must.Two(opened(t, "", "timeout", "300ms"))(t)
	p, f := trial.Producer(t, c, "d")
	pid := driver.Inside(c).(*conn).child.process.Pid()
	must.Do(t, syscall.Kill(-pid, syscall.SIGSTOP))
	trial.Eventually(func() bool {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return strings.Contains(string(stat), ") T")
	})
	for range 100 {
		p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: make([]byte, 64<<10)})
	}
	if _, err := c.Facts(t.Context()); !errors.Is(err, driver.ErrUnreachable) {
		t.Errorf("Facts of a child that stands still: %v", err)
	}
	_ = p.Close(t.Context())
	for range 100 {
		if err := f.Next(t); !errors.Is(err, driver.ErrClosed) {
			t.Fatalf("a message completed with %v", err)
		}
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	gone(t, tmp)
}

// TestCompletionCarriesChildTimestamp also covers keys, and the error of a refusal.
func TestCompletionCarriesChildTimestamp(t *testing.T) {
	c, _ := must.Two(opened(t, ""))(t)
	took := make(chan time.Duration, 1)
	p := must.Get(c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"d"}, InFlight: 1}, completer(func(m *driver.Message, err error) {
		if err != nil {
			t.Error(err)
		}
		took <- m.Took
	})))(t)
	p.Publish(t.Context(), &driver.Message{Destination: "d", Key: []byte("k"), Payload: []byte("p")})
	if d := <-took; d != time.Millisecond {
		t.Errorf("the child said 1ms, the message has %v", d)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	c, _ = must.Two(opened(t, "refuses"))(t)
	trial.NoProducer(t, c, driver.ProducerSpec{Destinations: []string{"d"}}, "a producer that the child refuses", driver.ErrAuth, "the password is wrong")
}

// alone returns a producer whose peer confirms at once, and messages of 1 KiB for the in-flight
// limit.
func alone(tb testing.TB, inFlight int) (*producer, []*driver.Message) {
	tb.Helper()
	l := must.Get(net.Listen("unix", filepath.Join(tb.TempDir(), "s")))(tb)
	tb.Cleanup(func() { _ = l.Close() })
	go answerAll(l)
	near := must.Get(net.Dial("unix", l.Addr().String()))(tb)
	c := &child{limit: time.Second, open: map[*peer]bool{}, gone: make(chan struct{})}
	targets := must.Get(driver.NewTargets([]string{"d"}, func(string) (uint16, error) { return 0, nil }))(tb)
	ms := make([]*driver.Message, inFlight)
	for i := range ms {
		ms[i] = &driver.Message{Destination: "d", Payload: make([]byte, 1024)}
	}
	p := newProducer(c, &peer{near, newFrames(near)}, targets, inFlight, completer(func(*driver.Message, error) {}))
	tb.Cleanup(func() { _ = p.Close(context.Background()) })
	return p, ms
}

func TestPublishAllocatesNothing(t *testing.T) {
	p, ms := alone(t, 100)
	ctx := t.Context()
	per := testing.AllocsPerRun(50, func() {
		for _, m := range ms {
			p.Publish(ctx, m)
		}
		if err := p.Flush(ctx); err != nil {
			t.Error(err)
		}
	})
	if per > 2 { // per 100 messages
		t.Errorf("%v allocations for %d messages", per, len(ms))
	}
}

// BenchmarkHop measures the round trip to a Go child that confirms at once, for messages of 1 KiB:
// one at a time, and 100 at a time.
func BenchmarkHop(b *testing.B) {
	for _, inFlight := range []int{1, 100} {
		b.Run(strconv.Itoa(inFlight), func(b *testing.B) {
			p, ms := alone(b, inFlight)
			ctx := b.Context()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if p.Publish(ctx, ms[i%inFlight]); (i+1)%inFlight == 0 {
					_ = p.Flush(ctx)
				}
			}
		})
	}
}

// answerAll confirms all messages on one connection.
func answerAll(l net.Listener) {
	far, err := l.Accept()
	if err != nil {
		return
	}
	in := newFrames(far)
	var out []byte
	for {
		k, body, err := in.next()
		if err != nil || k == end {
			_ = far.Close()
			return
		}
		c := cursor{b: body}
		out = begin(out[:0], complete)
		for range c.number(4) {
			out = binary.BigEndian.AppendUint32(out, uint32(c.number(4)))
			out = append(out, 0, 0, 0, 0, 0, 0, 0, 1, 0)
			c.take(3)
			c.take(int(c.number(4)))
		}
		finish(out, 0)
		_, _ = far.Write(out)
	}
}

// completer is a function that implements driver.Completer.
type completer func(m *driver.Message, err error)

func (f completer) Complete(m *driver.Message, err error) { f(m, err) }

// TestErrorCodesMatchContract: each contract error that a child may encounter has a name.
func TestErrorCodesMatchContract(t *testing.T) {
	for _, err := range []error{
		driver.ErrUnreachable, driver.ErrAuth, driver.ErrUnsupported, driver.ErrTooLarge, driver.ErrTimeout,
		driver.ErrDisconnected, driver.ErrOverloaded, driver.ErrClosed, driver.ErrBlocked,
	} {
		if !slices.ContainsFunc(causes, func(c named) bool { return errors.Is(c.err, err) }) {
			t.Errorf("%v has no word", err)
		}
	}
}
