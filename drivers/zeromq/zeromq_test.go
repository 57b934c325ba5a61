package zeromq

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/weirmq/weir/driver"
)

// patience bounds every wait, which ends as soon as it is over.
const patience = time.Minute

func eventually(ok func() bool) bool {
	for range patience / (5 * time.Millisecond) {
		if ok() {
			return true
		}
		time.Sleep(5 * time.Millisecond)
	}
	return false
}

// configure sets options, name and value in turns.
func configure(t testing.TB, options ...string) driver.Config {
	t.Helper()
	cfg := Definition().New()
	for i := 0; i < len(options); i += 2 {
		if err := driver.SetOption(cfg, options[i], options[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	return cfg
}

// openWith connects with options as in configure, and declares destination d.
func openWith(t testing.TB, options ...string) driver.Conn {
	t.Helper()
	c, err := driver.Open(t.Context(), Definition(), configure(t, options...), driver.Run{ID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	if err := c.Declare(t.Context(), driver.Destination{Name: "d"}); err != nil {
		t.Fatal(err)
	}
	return c
}

// fates take what became of messages.
type fates chan error

func (f fates) Complete(_ *driver.Message, err error) { f <- err }

func produce(t testing.TB, c driver.Conn) (driver.Producer, fates) {
	t.Helper()
	f := make(fates, 100_000)
	p, err := c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"d"}, InFlight: 1000}, f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p, f
}

// A sink counts what a consumer yields. It waits in Deliver until its gate is open.
type sink struct {
	driver.Sink
	gate  chan struct{}
	mu    sync.Mutex
	count int
}

func (s *sink) Ready() {}

func (s *sink) Deliver([]driver.Delivery) error {
	<-s.gate
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	return nil
}

func (s *sink) has() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

func spec(subscription string, index int) driver.ConsumerSpec {
	return driver.ConsumerSpec{Subscription: subscription, Index: index, Destinations: []string{"d"}, Settle: driver.SettleNone}
}

// consume runs a consumer until end or the test's end. It holds its first message until
// release.
func consume(t testing.TB, c driver.Conn, subscription string) (s *sink, release, end func()) {
	t.Helper()
	x, err := c.Consumer(t.Context(), spec(subscription, 0))
	if err != nil {
		t.Fatal(err)
	}
	s = &sink{gate: make(chan struct{})}
	release = sync.OnceFunc(func() { close(s.gate) })
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- x.Run(ctx, s) }()
	end = sync.OnceFunc(func() {
		release()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = x.Close(context.Background())
	})
	t.Cleanup(end)
	return s, release, end
}

func publish(t testing.TB, p driver.Producer, n, size int) {
	for range n {
		p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: make([]byte, size)})
	}
}

func backlog(t testing.TB, c driver.Conn, subscription string) uint64 {
	t.Helper()
	n, err := c.(driver.Backlogger).Backlog(t.Context(), subscription, []string{"d"})
	if err != nil {
		t.Error(err)
	}
	return n
}

// TestASlowConsumerOfAPipelineHoldsItUp: the buffers of the operating system are all that
// is between a producer and a consumer, and nothing is lost.
func TestASlowConsumerOfAPipelineHoldsItUp(t *testing.T) {
	c := openWith(t)
	s, release, _ := consume(t, c, "s")
	p, f := produce(t, c)
	const n = 500
	publish(t, p, n, 64<<10)
	last := -1
	eventually(func() bool {
		now := len(f)
		same := now == last && now > 0
		last = now
		time.Sleep(50 * time.Millisecond)
		return same
	})
	if len(f) == n {
		t.Errorf("all of 32 MB are confirmed, and the consumer has taken nothing")
	}
	release()
	if !eventually(func() bool { return s.has() == n && len(f) == n && backlog(t, c, "s") == 0 }) {
		t.Errorf("of %d messages %d are confirmed and %d delivered, the backlog is %d", n, len(f), s.has(), backlog(t, c, "s"))
	}
}

// TestAPipelineGoesOnWithTheNextConsumer: a PUSH socket of the library would go on
// sending to a consumer that has left.
func TestAPipelineGoesOnWithTheNextConsumer(t *testing.T) {
	c := openWith(t)
	p, f := produce(t, c)
	publish(t, p, 3, 10) // which wait for a consumer
	for range 3 {
		s, release, end := consume(t, c, "s")
		release()
		publish(t, p, 100, 10)
		if !eventually(func() bool { return s.has() >= 100 && backlog(t, c, "s") == 0 }) {
			t.Errorf("%d of 100 messages were delivered", s.has())
		}
		end()
	}
	for range 303 {
		if err := <-f; err != nil {
			t.Error(err)
		}
	}
}

func TestAPipelineWithoutAConsumerClosesAtOnce(t *testing.T) {
	p, f := produce(t, openWith(t))
	publish(t, p, 10, 10)
	if err := p.Close(context.Background()); err != nil {
		t.Error(err)
	}
	for range 10 {
		if err := <-f; !errors.Is(err, driver.ErrClosed) {
			t.Error(err)
		}
	}
}

// TestAFullQueueDropsForAll: a subscriber that stands still takes messages from the other
// one. The library has one queue for both, and one goroutine that writes to both.
func TestAFullQueueDropsForAll(t *testing.T) {
	c := openWith(t, "pattern", "pubsub", "hwm", "4")
	slow, release, _ := consume(t, c, "slow")
	quick, go1, _ := consume(t, c, "quick")
	go1()
	p, f := produce(t, c)
	const n = 500
	publish(t, p, n, 256<<10)
	for range n {
		if err := <-f; err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(200 * time.Millisecond)
	if quick.has() == n {
		t.Error("the library does not hold up one subscriber for another any more: say so on the page")
	}
	if left := backlog(t, c, "quick"); left == 0 {
		t.Error("the backlog is 0, and messages were lost")
	}
	t.Logf("of %d messages a subscriber has %d while another stands still, which has %d", n, quick.has(), slow.has())
	release()
	if !eventually(func() bool { return backlog(t, c, "slow") == 0 && backlog(t, c, "quick") == 0 }) {
		t.Errorf("the backlogs are %d and %d in the end", backlog(t, c, "slow"), backlog(t, c, "quick"))
	}
	if got := slow.has(); got == 0 || got == n {
		t.Errorf("the slow subscriber has %d of %d messages", got, n)
	}
}

func TestWhatTheLibraryCannotDoIsRefused(t *testing.T) {
	for _, options := range [][]string{
		{"transport", "inproc"}, {"bind", "producers"}, {"hwm", "0"},
	} {
		var e *driver.OptionError
		if err := driver.Check(configure(t, options...)); !errors.As(err, &e) || e.Name != options[0] {
			t.Errorf("%v: %v", options, err)
		}
	}
	if err := driver.Check(configure(t, "bind", "producers", "pattern", "pubsub")); err != nil {
		t.Error(err)
	}
	c := openWith(t)
	consume(t, c, "s")
	for _, s := range []driver.ConsumerSpec{spec("s", 1), spec("other", 0)} {
		if _, err := c.Consumer(t.Context(), s); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("consumer %d of %s: %v", s.Index, s.Subscription, err)
		}
	}
	_, err := driver.Open(t.Context(), Definition(), Definition().New(), driver.Run{ID: "r", Existing: true})
	if !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("existing destinations: %v", err)
	}
}

func TestTheGuaranteeFollowsThePattern(t *testing.T) {
	for pattern, want := range map[string]driver.Guarantee{"pipeline": driver.Written, "pubsub": driver.Buffered} {
		f, err := openWith(t, "pattern", pattern).Facts(t.Context())
		if err != nil || f.Confirms.Guarantee != want || f.Settings["pattern"] != pattern || f.Nodes != 0 {
			t.Errorf("%s: %+v, %v", pattern, f, err)
		}
	}
}

// TestTheVersionIsTheModules: the library does not tell its own.
func TestTheVersionIsTheModules(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}}", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(out)); got != version {
		t.Errorf("go.mod has %s, the driver says %s", got, version)
	}
}

// TestAMessageCostsWhatTheClientDoes: the driver allocates nothing of its own for a
// message that is sent and received.
func TestAMessageCostsWhatTheClientDoes(t *testing.T) {
	const rounds = 500
	body := make([]byte, 64)
	push, pull, _ := pair(t, "tcp://127.0.0.1:0")
	plain := allocs(rounds, func() {
		_ = push.Send(zmq4.NewMsg(body))
		_, _ = pull.Recv()
	})

	c := openWith(t)
	s, release, _ := consume(t, c, "s")
	release()
	p, f := produce(t, c)
	m, ctx := &driver.Message{Destination: "d", Payload: body}, t.Context()
	own := allocs(rounds, func() {
		want := s.has() + 1
		p.Publish(ctx, m)
		<-f
		for s.has() < want {
			time.Sleep(time.Microsecond)
		}
	})
	if own > plain {
		t.Errorf("%v allocations a message, %v of the client's own", own, plain)
	}
}

// allocs is the least of a few counts: what else the process does adds to one.
func allocs(rounds int, f func()) float64 {
	least := testing.AllocsPerRun(rounds, f)
	for range 3 {
		least = min(least, testing.AllocsPerRun(rounds, f))
	}
	return least
}
