package nanomsg

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"go.nanomsg.org/mangos/v3"
	"go.nanomsg.org/mangos/v3/protocol/pull"
	"go.nanomsg.org/mangos/v3/protocol/push"

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

// openWith connects with options, name and value in turns, and declares destination d.
func openWith(t testing.TB, options ...string) driver.Conn {
	t.Helper()
	cfg := Definition().New()
	for i := 0; i < len(options); i += 2 {
		if err := driver.SetOption(cfg, options[i], options[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	c, err := driver.Open(t.Context(), Definition(), cfg, driver.Run{ID: "r"})
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

// consume runs a consumer until the test ends. It holds its first message until release.
func consume(t testing.TB, c driver.Conn, subscription string, index int) (s *sink, release func()) {
	t.Helper()
	x, err := c.Consumer(t.Context(), driver.ConsumerSpec{
		Subscription: subscription, Index: index, Destinations: []string{"d"}, Settle: driver.SettleNone,
	})
	if err != nil {
		t.Fatal(err)
	}
	s = &sink{gate: make(chan struct{})}
	release = sync.OnceFunc(func() { close(s.gate) })
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- x.Run(ctx, s) }()
	t.Cleanup(func() {
		release()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = x.Close(context.Background())
	})
	return s, release
}

func publish(t testing.TB, p driver.Producer, n int) {
	for range n {
		p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: []byte("message")})
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

// TestAFullPipelineWaits: what does not fit is not confirmed, and nothing is lost.
func TestAFullPipelineWaits(t *testing.T) {
	for _, transport := range []string{"inproc", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			c := openWith(t, "transport", transport, "hwm", "4")
			p, f := produce(t, c)
			publish(t, p, 500)
			eventually(func() bool { return len(f) == 4 })
			time.Sleep(50 * time.Millisecond)
			if len(f) > 4 || backlog(t, c, "s") != uint64(len(f)) {
				t.Errorf("without a consumer, %d of 500 messages are confirmed with room for 4, and the backlog is %d", len(f), backlog(t, c, "s"))
			}
			s, release := consume(t, c, "s", 0)
			release()
			if !eventually(func() bool { return s.has() == 500 }) {
				t.Errorf("%d of 500 messages were delivered", s.has())
			}
			if !eventually(func() bool { return len(f) == 500 && backlog(t, c, "s") == 0 }) {
				t.Errorf("%d of 500 confirmed, the backlog is %d", len(f), backlog(t, c, "s"))
			}
		})
	}
}

func TestAPipelineWithoutConsumersClosesAtOnce(t *testing.T) {
	p, f := produce(t, openWith(t, "hwm", "4"))
	publish(t, p, 500)
	if err := p.Close(context.Background()); err != nil {
		t.Error(err)
	}
	confirmed := 0
	for range 500 {
		if err := <-f; err == nil {
			confirmed++
		} else if !errors.Is(err, driver.ErrClosed) {
			t.Fatal(err)
		}
	}
	if confirmed > 4 {
		t.Errorf("%d confirmed, with room for 4", confirmed)
	}
}

// TestAFullSubscriberLoses: all is confirmed. What was dropped is in the backlog only
// while the subscriber stands still.
func TestAFullSubscriberLoses(t *testing.T) {
	for _, transport := range []string{"inproc", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			c := openWith(t, "pattern", "pubsub", "transport", transport, "hwm", "4")
			slow, release := consume(t, c, "slow", 0)
			quick, release2 := consume(t, c, "quick", 0)
			release2()
			p, f := produce(t, c)
			const n = 2000
			for range n {
				p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: make([]byte, 8<<10)})
				if err := <-f; err != nil {
					t.Fatal(err)
				}
			}
			if backlog(t, c, "slow") == 0 {
				t.Error("the backlog of a subscriber that stands still is 0")
			}
			release()
			if !eventually(func() bool { return backlog(t, c, "slow") == 0 && backlog(t, c, "quick") == 0 }) {
				t.Errorf("the backlogs are %d and %d in the end", backlog(t, c, "slow"), backlog(t, c, "quick"))
			}
			if got := slow.has(); got == 0 || got >= n {
				t.Errorf("a subscriber that stood still has %d of %d messages", got, n)
			}
			t.Logf("the slow subscriber has %d of %d messages, the other %d", slow.has(), n, quick.has())
		})
	}
}

// TestConsumersOfAPipelineShare has producers and consumers of different numbers.
func TestConsumersOfAPipelineShare(t *testing.T) {
	for _, bind := range []string{"producers", "consumers"} {
		c := openWith(t, "bind", bind)
		var sinks []*sink
		for i := range 3 {
			s, release := consume(t, c, "s", i)
			release()
			sinks = append(sinks, s)
		}
		for range 2 {
			p, _ := produce(t, c)
			publish(t, p, 900)
		}
		sum := func() (n int) {
			for _, s := range sinks {
				n += s.has()
			}
			return n
		}
		if !eventually(func() bool { return sum() == 1800 }) {
			t.Errorf("%s bind: %d of 1800 messages were delivered", bind, sum())
		}
		for i, s := range sinks {
			if s.has() == 0 {
				t.Errorf("%s bind: consumer %d has none", bind, i)
			}
		}
	}
}

func TestExistingDestinationsAreRefused(t *testing.T) {
	_, err := driver.Open(t.Context(), Definition(), Definition().New(), driver.Run{ID: "r", Existing: true})
	if !errors.Is(err, driver.ErrUnsupported) {
		t.Error(err)
	}
}

// TestBestEffortDropsWhatThereIsRoomFor shows why the driver does not offer to drop
// messages of a pipeline. Without the defect, mangos would drop none here.
func TestBestEffortDropsWhatThereIsRoomFor(t *testing.T) {
	s, err := push.NewSocket()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for name, value := range map[string]any{mangos.OptionWriteQLen: 1000, mangos.OptionBestEffort: true} {
		if err := s.SetOption(name, value); err != nil {
			t.Fatal(err)
		}
	}
	for range 1000 {
		if err := s.Send([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	r, err := pull.NewSocket()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if err := errors.Join(r.Listen("inproc://best-effort"), s.Dial("inproc://best-effort"),
		r.SetOption(mangos.OptionRecvDeadline, 500*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	got := 0
	for ; ; got++ {
		if _, err := r.Recv(); err != nil {
			break
		}
	}
	if got == 1000 {
		t.Error("mangos has no such defect any more: offer the option, and say so on the page")
	}
	t.Logf("%d of 1000 messages arrived that a queue of 1000 had room for", got)
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
	const rounds = 2000
	body := make([]byte, 64)
	a, err := push.NewSocket()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	b, err := pull.NewSocket()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	if err := errors.Join(b.Listen("inproc://budget"), a.Dial("inproc://budget")); err != nil {
		t.Fatal(err)
	}
	plain := allocs(rounds, func() {
		_ = a.Send(body)
		if m, err := b.RecvMsg(); err == nil {
			m.Free()
		}
	})

	c := openWith(t, "transport", "inproc")
	s, release := consume(t, c, "s", 0)
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
