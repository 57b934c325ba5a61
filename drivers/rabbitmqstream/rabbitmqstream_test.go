package rabbitmqstream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

func open(t testing.TB, run driver.Run, system map[string][]string, options ...string) *conn {
	t.Helper()
	return driver.Inside(trial.Opened(t, Definition(), run, system, options...)).(*conn)
}

// declared creates a stream until the end of the test.
func declared(t testing.TB, c *conn, replicas int) {
	t.Helper()
	trial.Declare(t, c, driver.Destination{Name: "d", Partitions: 1, Replicas: replicas})
}

func produce(t testing.TB, c *conn, done driver.Completer) *producer {
	t.Helper()
	return trial.Produce(t, c, done, "d").(*producer)
}

// has returns the payloads once there are n.
func has(t testing.TB, l *trial.Log, n int) []string {
	t.Helper()
	l.Until(t, fmt.Sprint(n, " deliveries"), func() bool { return len(l.Got) >= n })
	l.Lock()
	defer l.Unlock()
	return l.Got
}

// consume runs a consumer until the end of the test, and waits until it is ready.
func consume(t testing.TB, c *conn, spec driver.ConsumerSpec) *trial.Log {
	t.Helper()
	l := trial.NewLog()
	l.Consume(t, c, spec)
	return l
}

func TestPageGuaranteesMatchServers(t *testing.T) {
	s := shared.Up(t, 1)
	served.Guarantees(t, Definition(), shared, "")
	t.Run("replicas that there are no nodes for", func(t *testing.T) {
		c := open(t, driver.Run{}, s.Options)
		d := driver.Destination{Name: "d", Partitions: 1, Replicas: 3}
		if err := c.Declare(t.Context(), d); !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "the cluster made 1") {
			t.Errorf("%v", err)
		}
		if err := c.Delete(t.Context(), d); err != nil {
			t.Error(err)
		}
	})
}

// A halting sink blocks in one of its deliveries until released.
type halting struct {
	*trial.Log
	at int
	on chan struct{}
}

func (h halting) Deliver(ds []driver.Delivery) error {
	_ = h.Log.Deliver(ds)
	if h.at == len(h.Got) {
		<-h.on
	}
	return nil
}

// TestPrefetchBoundsUnstoredMessages blocks a consumer in the middle of a chunk: the offset of all
// but the last few messages is stored.
func TestPrefetchBoundsUnstoredMessages(t *testing.T) {
	c := open(t, driver.Run{}, shared.Up(t, 1).Options)
	declared(t, c, 1)
	f := make(trial.Fates, 50)
	p := produce(t, c, f)
	ms := make([]*driver.Message, cap(f))
	for i := range ms {
		ms[i] = &driver.Message{Destination: "d", Payload: []byte("x")}
	}
	p.PublishBatch(t.Context(), ms)
	for range ms {
		must.Do(t, f.Next(t))
	}
	h := halting{trial.NewLog(), 26, make(chan struct{})}
	let := sync.OnceFunc(func() { close(h.on) })
	trial.Run(t, c, driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}, Settle: driver.SettleBatch, Prefetch: 10}, h)
	t.Cleanup(let) // before the consumer ends
	stored := uint64(0)
	if !trial.Eventually(func() bool {
		next, _, err := c.resumed(t.Context(), "s", c.stream("d"))
		stored = next
		return err == nil && next >= 16
	}) {
		t.Errorf("with 25 messages settled and a prefetch of 10, %d are stored", stored)
	}
	let()
	has(t, h.Log, len(ms))
}

// aLeaderDies kills a stream's leader with messages in flight: with dedup, each arrives once, in
// order.
func aLeaderDies(t *testing.T, s *served.System) {
	var reconnects atomic.Int64
	c := open(t, driver.Run{Event: func(kind, text string) {
		if kind == "reconnect" && strings.HasPrefix(text, "producer 0: ") {
			reconnects.Add(1)
		}
	}}, s.Options, "dedup", "yes")
	declared(t, c, 3)
	to := must.Get(c.where(t.Context(), c.stream("d")))(t)
	f := make(trial.Fates, 3000)
	p := produce(t, c, f)
	got := consume(t, c, driver.ConsumerSpec{})
	var want []string
	ms := make([]driver.Message, cap(f))
	for i := range ms {
		want = append(want, fmt.Sprintf("message %d", i))
		ms[i] = driver.Message{Destination: "d", Payload: []byte(want[i])}
		p.Publish(t.Context(), &ms[i])
		if i != 1000 {
			continue
		}
		n := slices.Index(s.Address, to.leader)
		if n < 0 {
			t.Fatalf("the leader %s is not one of %v", to.leader, s.Address)
		}
		for _, pid := range s.Pids {
			env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
			if strings.Contains(string(env), fmt.Sprintf("RABBITMQ_NODENAME=weir%d@", n+1)) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	for range ms {
		must.Do(t, f.Next(t))
	}
	if diff := cmp.Diff(want, has(t, got, len(want))); diff != "" {
		t.Errorf("(-sent +received):\n%s", diff)
	}
	if reconnects.Load() == 0 {
		t.Error("the producer has not connected again: the leader did not die in time")
	}
}

// TestAnEntryOfManyMessages checks that sub-entry packs messages: the chunk contains far more
// messages than the client's count of its entries.
func TestAnEntryOfManyMessages(t *testing.T) {
	for _, compression := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		// Close the consumer before the stream is deleted: otherwise the client waits for an answer
		// that it no longer reads.
		t.Run(compression, func(t *testing.T) {
			c := open(t, driver.Run{}, shared.Up(t, 1).Options, "sub-entry", "100", "compression", compression)
			declared(t, c, 1)
			f := make(trial.Fates, 200)
			p := produce(t, c, f)
			ms := make([]*driver.Message, 200)
			var want []string
			for i := range ms {
				want = append(want, fmt.Sprintf("%s %d", compression, i))
				ms[i] = &driver.Message{Destination: "d", Payload: []byte(want[i])}
			}
			p.PublishBatch(t.Context(), ms)
			for range ms {
				must.Do(t, f.Next(t))
			}
			got := has(t, consume(t, c, driver.ConsumerSpec{}), len(want))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-sent +received):\n%s", diff)
			}
		})
	}
}

// says is a server that answers the first request, which is for its properties, with a version.
func says(t *testing.T, version string) string {
	t.Helper()
	return trial.Serve(t, func(c net.Conn) {
		k := control{socket: c, in: bufio.NewReader(c)}
		if key, r, err := k.read(); err == nil {
			_, _ = c.Write(newFrame(key | answerBit).u32(r.u32()).u16(codeOK).u32(1).text("version").text(version).done())
			_, _, _ = k.read()
		}
	})
}

func TestOldServersAreRefused(t *testing.T) {
	for version, tt := range map[string]struct {
		is   error
		says string
	}{
		"3.10.8":  {driver.ErrUnsupported, "RabbitMQ 3.10 is too old (3.13 or later)"},
		"3.12.14": {driver.ErrUnsupported, "RabbitMQ 3.12 is too old (3.13 or later)"},
		"":        {driver.ErrUnreachable, "what answers is not RabbitMQ"},
		// Accepted: the next request has no answer.
		"3.13.0": {driver.ErrUnreachable, "EOF"},
		"4.0.5":  {driver.ErrUnreachable, "EOF"},
	} {
		trial.Refuses(t, Definition(), nil, trial.Mistake{Name: "version " + version, Set: []string{"address", says(t, version)}, Is: tt.is, Says: tt.says})
	}
}

func TestInvalidOptionsAreRejected(t *testing.T) {
	s := shared.Up(t, 1)
	trial.Refuses(t, Definition(), s.Options,
		trial.Mistake{Name: "dedup of entries", Set: []string{"dedup", "yes", "sub-entry", "2"}, Option: "dedup"},
		trial.Mistake{Name: "compression of single messages", Set: []string{"compression", "gzip"}, Option: "compression"},
		trial.Mistake{Name: "no user", Set: []string{"user", ""}, Option: "user"},
		trial.Mistake{Name: "no vhost", Set: []string{"vhost", ""}, Option: "vhost"},
		trial.Mistake{Name: "a memory", Set: []string{"server.memory", "plenty"}, Option: "server.memory"},
		trial.Mistake{Name: "a wrong password", Set: []string{"password", "p@ss:/wr0ng"}, Is: driver.ErrAuth},
		trial.Mistake{Name: "a vhost that is not there", Set: []string{"vhost", "none/such"}, Is: driver.ErrAuth},
	)
}

// TestAnExistingStreamKeepsNoTrace checks that only a durable subscription stores an offset.
func TestAnExistingStreamKeepsNoTrace(t *testing.T) {
	s := shared.Up(t, 1)
	declared(t, open(t, driver.Run{ID: "theirs"}, s.Options), 1)
	theirs := open(t, driver.Run{ID: "theirs"}, s.Options).stream("d")
	for _, durable := range []bool{false, true} {
		c := open(t, driver.Run{Existing: true}, s.Options)
		x := must.Get(c.Consumer(t.Context(), driver.ConsumerSpec{Subscription: "mine", Destinations: []string{theirs}, Durable: durable}))(t)
		f := make(trial.Fates, 1)
		p := trial.Produce(t, c, f, theirs)
		p.Publish(t.Context(), &driver.Message{Destination: theirs, Payload: []byte("hello")})
		if err := f.Next(t); err != nil {
			t.Error(err)
		}
		got := trial.NewLog()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- x.Run(ctx, got) }()
		has(t, got, 1)
		cancel()
		if err := errors.Join(<-ended, p.Close(context.Background())); err != nil {
			t.Error(err)
		}
		if _, found, err := c.resumed(t.Context(), "mine", theirs); found != durable || err != nil {
			t.Errorf("durable %v: stored %v, %v", durable, found, err)
		}
	}
}

// TestPublishKeepsToItsBudget counts allocations of Publish and the completion, with an unconnected
// outlet: the client's part comes later.
func TestPublishKeepsToItsBudget(t *testing.T) {
	done := make(trial.Fates, 1)
	p := &producer{Outgoing: blocking.NewOutgoing(done), conn: &conn{}}
	o := newOutlet(p, "s", defaultFrame)
	p.targets = must.Get(driver.NewTargets([]string{"d"}, func(string) (*outlet, error) { return o, nil }))(t)
	m := &driver.Message{Destination: "d", Payload: make([]byte, 64)}
	n := testing.AllocsPerRun(1000, func() {
		p.Publish(t.Context(), m)
		o.mu.Lock()
		s := o.queue[0]
		o.queue = o.queue[:0]
		o.mu.Unlock()
		p.Complete(s.m, nil)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if n > 0 {
		t.Errorf("%v allocations a message", n)
	}
}

// FuzzFrames checks that no server input makes the reader panic or take long.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0, 1, 0, 1, 'h', 0, 0, 0, 9, 0, 0, 0, 1, 0, 1, 's', 0, 1, 0, 1, 0, 0, 0, 1, 0, 1})
	f.Add([]byte{255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = (&reader{b: b}).topology()
		_ = (&reader{b: b}).chunk()
		if r := (&reader{b: b}); len(r.pairs()) > len(b)/4+1 {
			t.Error("more pairs than bytes")
		}
	})
}
