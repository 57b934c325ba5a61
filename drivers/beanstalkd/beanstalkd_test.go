package beanstalkd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	client "github.com/beanstalkd/go-beanstalk"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
)

func open(t testing.TB, run driver.Run, system map[string][]string, options ...string) driver.Conn {
	t.Helper()
	c, err := trial.Open(t, Definition(), run, system, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func produce(t testing.TB, c driver.Conn, destinations ...string) (*producer, trial.Fates) {
	t.Helper()
	p, f := trial.Producer(t, c, destinations...)
	return p.(*producer), f
}

// put sends one message, and returns what became of it.
func put(t testing.TB, p *producer, f trial.Fates, destination, text string) error {
	t.Helper()
	p.Publish(t.Context(), &driver.Message{Destination: destination, Payload: []byte(text)})
	return f.Next(t)
}

// A sink takes what a consumer yields.
type sink struct {
	mu       sync.Mutex
	texts    []string
	settled  []error
	faults   int
	deliver  func() // called in each Deliver
	readying sync.Once
	ready    chan struct{}
	consumer driver.Consumer
}

// stir sends something on the consumer's connection.
func (s *sink) stir(t testing.TB) {
	for _, f := range s.consumer.(blocking.Feeds) {
		if err := f.(*feed).link.Do(t.Context(), func(k *client.Conn) error { _, err := k.Stats(); return err }); err != nil {
			t.Error(err)
		}
	}
}

func (s *sink) Ready() { s.readying.Do(func() { close(s.ready) }) }

func (s *sink) Deliver(ds []driver.Delivery) error {
	s.mu.Lock()
	for _, d := range ds {
		s.texts = append(s.texts, string(d.Payload))
	}
	s.mu.Unlock()
	if s.deliver != nil {
		s.deliver()
	}
	return nil
}

func (s *sink) Settled(_ []driver.Delivery, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settled = append(s.settled, err)
}

func (s *sink) Fault(error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults++
}

// has returns how many deliveries there were, and settlements.
func (s *sink) has() (delivered, settled int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.texts), len(s.settled)
}

// consume runs a consumer until the test ends.
func consume(t testing.TB, c driver.Conn, deliver func(), destinations ...string) *sink {
	t.Helper()
	s := &sink{deliver: deliver, ready: make(chan struct{})}
	s.consumer, _ = trial.Run(t, c, driver.ConsumerSpec{Subscription: "s", Destinations: destinations}, s)
	<-s.ready
	return s
}

func TestTheGuaranteeFollowsTheServersSettings(t *testing.T) {
	for name, test := range map[string]struct {
		settings map[string]string
		options  []string
		want     driver.Confirms
	}{
		"memory":                {nil, nil, driver.Confirms{Guarantee: driver.Received}},
		"memory, -f0":           {map[string]string{"fsync": "0"}, nil, driver.Confirms{Guarantee: driver.Received}},
		"binlog":                {map[string]string{"binlog": "yes"}, nil, driver.Confirms{Guarantee: driver.Received, Stable: driver.StableOS}},
		"binlog, -f0":           {map[string]string{"binlog": "yes", "fsync": "0"}, nil, driver.Confirms{Guarantee: driver.Persisted, Stable: driver.StableFsync}},
		"binlog, -f0, not told": {map[string]string{"binlog": "yes", "fsync": "0"}, []string{"fsync", "-1"}, driver.Confirms{Guarantee: driver.Received, Stable: driver.StableOS}},
	} {
		t.Run(name, func(t *testing.T) {
			s := served.Up(t, Definition(), 1, served.With{Settings: test.settings})
			f, err := open(t, driver.Run{ID: "facts"}, s.Options, test.options...).Facts(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if f.Confirms != test.want || f.Nodes != 1 || f.Settings["max-job-size"] != "65535" || strings.ContainsAny(f.Version, `" `) {
				t.Errorf("%+v", f)
			}
		})
	}
}

func TestAMessageLargerThanTheServerTakes(t *testing.T) {
	s := served.Up(t, Definition(), 1)
	c := open(t, driver.Run{ID: "large"}, s.Options)
	spec := driver.ProducerSpec{Destinations: []string{"d"}, InFlight: 1, Largest: 65536}
	_, err := c.Producer(t.Context(), spec, nil)
	if want := "message too large: 64KiB, the server's max-job-size is 65535B"; !errors.Is(err, driver.ErrTooLarge) || !strings.Contains(err.Error(), want) {
		t.Errorf("a producer of larger messages: %v", err)
	}
	p, f := produce(t, c, "d")
	if err := put(t, p, f, "d", strings.Repeat("x", 65535)); err != nil {
		t.Errorf("the largest message: %v", err)
	}
	if err := put(t, p, f, "d", strings.Repeat("x", 65536)); !errors.Is(err, driver.ErrTooLarge) {
		t.Errorf("a larger one: %v", err)
	}
	p.tubes.Limit(0, "") // the server refuses it
	if err := put(t, p, f, "d", strings.Repeat("x", 65536)); !errors.Is(err, driver.ErrTooLarge) {
		t.Errorf("a larger one, sent: %v", err)
	}
	if err := put(t, p, f, "d", "small"); err != nil {
		t.Errorf("the next: %v", err)
	}
}

// TestAKilledServerHasItsBinlog kills the server while a producer and a consumer use it.
func TestAKilledServerHasItsBinlog(t *testing.T) {
	port := served.FreePorts(t, 1)[0]
	address := fmt.Sprintf("127.0.0.1:%d", port)
	server := served.Start(t, Definition(), served.Spec{
		Program: "beanstalkd", Args: []string{"-l127.0.0.1", fmt.Sprintf("-p%d", port), "-b."},
		Ready: func() error {
			c, err := net.Dial("tcp", address)
			if err == nil {
				err = c.Close()
			}
			return err
		},
	})
	events := make(chan string, 100)
	run := driver.Run{ID: "killed", Event: func(kind, text string) { events <- kind + " " + text }}
	c := open(t, run, nil, "address", address, "reconnect-wait", "10ms")
	p, f := produce(t, c, "d", "e")
	r := consume(t, c, nil, "e")
	for i := range 100 {
		if err := put(t, p, f, "d", fmt.Sprint("before-", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := put(t, p, f, "d", "lost"); !errors.Is(err, driver.ErrDisconnected) {
		t.Errorf("without a server: %v", err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	if !trial.Eventually(func() bool { return put(t, p, f, "e", "after") == nil }) {
		t.Fatal("the producer did not connect again")
	}
	if !trial.Eventually(func() bool { n, _ := r.has(); return n > 0 }) || r.faults == 0 {
		t.Errorf("the consumer has %v, %d faults", r.texts, r.faults)
	}
	told := map[string]bool{}
	for len(events) > 0 {
		told[<-events] = true
	}
	if !told["reconnect producer 0"] || !told["reconnect consumer s 0"] {
		t.Errorf("told: %v", told)
	}
	n, err := c.(driver.Backlogger).Backlog(t.Context(), "s", []string{"d"})
	if n != 100 || err != nil {
		t.Errorf("%d of 100 confirmed messages are there, %v", n, err)
	}
}

func TestAServerThatDrainsTakesNoMore(t *testing.T) {
	s := served.Up(t, Definition(), 1)
	p, f := produce(t, open(t, driver.Run{ID: "drain"}, s.Options), "d")
	if err := syscall.Kill(s.Pids[0], syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	var err error
	if !trial.Eventually(func() bool { err = put(t, p, f, "d", "x"); return err != nil }) || !errors.Is(err, driver.ErrBlocked) {
		t.Errorf("%v", err)
	}
}

// TestTimeToRun works on a message for longer than its time to run.
func TestTimeToRun(t *testing.T) {
	s := shared.Up(t, 1)
	for touch, want := range map[string]int{"0s": 2, "200ms": 1} {
		t.Run("touch "+touch, func(t *testing.T) {
			// Without the guard, so that stir reaches the connections of the consumers.
			cfg, err := trial.Configure(Definition(), s.Options, "ttr", "1s", "touch", touch)
			if err != nil {
				t.Fatal(err)
			}
			c, err := cfg.Open(t.Context(), driver.Run{ID: "ttr-" + touch})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = c.Delete(context.Background(), driver.Destination{Name: "d"})
				_ = c.Close(context.Background())
			})
			var held atomic.Bool
			ctx, release := context.WithCancel(t.Context()) // which ends before the cleanup
			slow := func() {
				if held.CompareAndSwap(false, true) {
					<-ctx.Done()
				}
			}
			first, second := consume(t, c, slow, "d"), consume(t, c, slow, "d")
			delivered := func() int {
				a, _ := first.has()
				b, _ := second.has()
				return a + b
			}
			p, f := produce(t, c, "d")
			if err := put(t, p, f, "d", "slow"); err != nil {
				t.Fatal(err)
			}
			if want > 1 {
				trial.Eventually(func() bool {
					first.stir(t) // otherwise the server can ignore the time to run (page.md)
					second.stir(t)
					return delivered() == want
				})
			} else {
				time.Sleep(2 * time.Second)
			}
			release()
			if n := delivered(); n != want {
				t.Errorf("%d deliveries, want %d", n, want)
			}
			trial.Eventually(func() bool { _, a := first.has(); _, b := second.has(); return a+b == want })
			refused := 0
			for _, err := range append(first.settled, second.settled...) {
				if err != nil {
					refused++
				}
			}
			if refused != want-1 {
				t.Errorf("%d settlements were refused, want %d", refused, want-1)
			}
		})
	}
}

func TestTubesThatExist(t *testing.T) {
	s := shared.Up(t, 1)
	const tube = "orders/(new)"
	k, err := client.Dial("tcp", s.Address[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = k.Close() }()
	c := open(t, driver.Run{ID: "existing", Existing: true}, s.Options)
	p, f := produce(t, c, tube)
	if err := put(t, p, f, tube, "mine"); err != nil {
		t.Fatal(err)
	}
	_ = c.Close(t.Context())
	id, body, err := client.NewTubeSet(k, tube).Reserve(time.Second)
	if err != nil || string(body) != "mine" {
		t.Errorf("%q, %v", body, err)
	}
	_ = k.Delete(id)
	for _, bad := range []string{"-begins", "with space", strings.Repeat("x", 200), "line\r\nquit"} {
		_, err := open(t, driver.Run{ID: "existing", Existing: true}, s.Options).Producer(t.Context(), driver.ProducerSpec{Destinations: []string{bad}}, nil)
		if !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestDeleteTakesWhatIsThere has more jobs than one call of the keeper deletes, and then
// one that a consumer does not give back.
func TestDeleteTakesWhatIsThere(t *testing.T) {
	s := shared.Up(t, 1)
	c := open(t, driver.Run{ID: "delete"}, s.Options)
	p, f := produce(t, c, "d")
	const n = drainers*drainBurst + 100
	for i := range n {
		p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: []byte("x")})
		if i >= 1000 {
			<-f
		}
	}
	d := driver.Destination{Name: "d"}
	if err := c.Delete(t.Context(), d); err != nil {
		t.Error(err)
	}
	if left, err := c.(driver.Backlogger).Backlog(t.Context(), "s", []string{"d"}); left > 0 || err != nil {
		t.Errorf("%d jobs are left, %v", left, err)
	}
	for range 1000 {
		<-f
	}
	x := consume(t, c, func() { <-t.Context().Done() }, "d") // which ends before the cleanup
	if err := put(t, p, f, "d", "held"); err != nil {
		t.Fatal(err)
	}
	trial.Eventually(func() bool { n, _ := x.has(); return n > 0 })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.Delete(ctx, d); err == nil {
		t.Error("a job that a consumer holds was deleted")
	}
}

func TestWhatIsWrongWhenItConnects(t *testing.T) {
	for _, address := range []string{"", "http://127.0.0.1:1", "user:secret@127.0.0.1:1"} {
		_, err := trial.Open(t, Definition(), driver.Run{}, nil, "address", address)
		if e := (*driver.OptionError)(nil); !errors.As(err, &e) || e.Name != "address" || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", address, err)
		}
	}
	// One that accepts and says nothing.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if _, err := trial.Open(t, Definition(), driver.Run{}, nil, "address", l.Addr().String(), "timeout", "3s"); !errors.Is(err, driver.ErrUnreachable) {
		t.Errorf("a server that is silent: %v", err)
	}
}

// TestAMessageCostsWhatTheClientDoes: the driver allocates nothing of its own for a
// message that is sent and one that is received.
func TestAMessageCostsWhatTheClientDoes(t *testing.T) {
	s := shared.Up(t, 1)
	c := open(t, driver.Run{ID: "budget"}, s.Options)
	k, err := client.Dial("tcp", s.Address[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = k.Close() }()
	const rounds = 500
	ctx, body := t.Context(), make([]byte, 64)

	p, f := produce(t, c, "d")
	m := &driver.Message{Destination: "d", Payload: body}
	tube := client.NewTube(k, "weir.budget.d")
	own := allocs(rounds, func() { p.Publish(ctx, m); <-f })
	plain := allocs(rounds, func() { _, _ = tube.Put(body, priority, 0, time.Minute) })
	if own > plain {
		t.Errorf("%v allocations a message sent, %v of the client's own", own, plain)
	}

	feed, err := driver.Inside(c).(*conn).feed(ctx, &driver.ConsumerSpec{}, "d", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer feed.link.Close()
	var out driver.Sink = nowhere{}
	own = allocs(rounds, func() {
		if err := feed.link.Do(ctx, feed.reserve); err != nil {
			t.Error(err)
		}
		feed.deliver(out)
	})
	set := client.NewTubeSet(k, "weir.budget.d")
	plain = allocs(rounds, func() {
		id, _, err := set.Reserve(time.Second)
		if err == nil {
			err = k.Delete(id)
		}
		if err != nil {
			t.Error(err)
		}
	})
	if own > plain {
		t.Errorf("%v allocations a message received, %v of the client's own", own, plain)
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

// nowhere is a sink that costs nothing.
type nowhere struct{ driver.Sink }

func (nowhere) Deliver([]driver.Delivery) error  { return nil }
func (nowhere) Settled([]driver.Delivery, error) {}

func TestThePageSaysWhatTheServerSays(t *testing.T) { served.Guarantees(t, Definition(), shared, "") }
