package artemis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	client "github.com/Azure/go-amqp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
)

// plain connects as a program without weir would.
func plain(t *testing.T, s *served.System) *client.Session {
	t.Helper()
	c, err := client.Dial(t.Context(), "amqp://"+s.Address[0], &client.ConnOptions{SASLType: client.SASLTypePlain("weir", "weir")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	session, err := c.NewSession(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// TestWithoutTheCapabilityAReceiverWaitsForEver shows the trap that the driver avoids: a
// receiver that does not ask for a queue gets a subscription of its own.
func TestWithoutTheCapabilityAReceiverWaitsForEver(t *testing.T) {
	s := shared.Up(t, 1)
	session := plain(t, s)
	address := fmt.Sprintf("weir-trap-%d", time.Now().UnixNano())
	for _, capabilities := range [][]string{nil, {"queue"}} {
		r, err := session.NewReceiver(t.Context(), address, &client.ReceiverOptions{SourceCapabilities: capabilities})
		if err != nil {
			t.Fatal(err)
		}
		x, err := session.NewSender(t.Context(), address, &client.SenderOptions{TargetCapabilities: []string{"queue"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Send(t.Context(), client.NewMessage([]byte("m")), nil); err != nil {
			t.Fatal(err)
		}
		limit := 300 * time.Millisecond
		if capabilities != nil {
			limit = trial.Patience
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		m, err := r.Receive(ctx, nil)
		cancel()
		if got := err == nil; got != (capabilities != nil) {
			t.Errorf("with the capabilities %v: received %v, %v", capabilities, got, err)
		}
		if m != nil {
			_ = r.AcceptMessage(t.Context(), m)
		}
		_ = r.Close(t.Context())
		_ = x.Close(t.Context())
	}
}

// TestConfirmationsMeanWhatTheServerIsSetTo reads the guarantee of two servers.
func TestConfirmationsMeanWhatTheServerIsSetTo(t *testing.T) {
	journal, memory := shared.Up(t, 1), served.Up(t, Definition(), 1, served.With{Settings: map[string]string{"persistence": "no"}})
	for _, tc := range []struct {
		on   *served.System
		set  []string
		want driver.Confirms
	}{
		{journal, nil, driver.Confirms{Guarantee: driver.Persisted, Stable: driver.StableFsync}},
		{journal, []string{"datasync", "unknown"}, driver.Confirms{Guarantee: driver.Received, Stable: driver.StableOS}},
		{journal, []string{"durable", "no"}, driver.Confirms{Guarantee: driver.Received}},
		{journal, []string{"confirm", "no"}, driver.Confirms{Guarantee: driver.Written}},
		{memory, nil, driver.Confirms{Guarantee: driver.Received}},
	} {
		f, err := trial.Declared(t, Definition(), tc.on.Options, tc.set...).Facts(t.Context())
		if err != nil || f.Confirms != tc.want || f.Version != "2.56.0" {
			t.Errorf("%v: %+v, %v; want %+v", tc.set, f, err, tc.want)
		}
	}
}

// TestAKilledServerKeepsWhatIsDurable kills it, and has it start again.
func TestAKilledServerKeepsWhatIsDurable(t *testing.T) {
	s := shared.Up(t, 1)
	const n = 50
	durable, transient := trial.Declared(t, Definition(), s.Options), trial.Declared(t, Definition(), s.Options, "durable", "no")
	p, f := trial.Producer(t, durable, "d")
	q, g := trial.Producer(t, transient, "d")
	if a, b := f.Confirmed(t, p, n), g.Confirmed(t, q, n); a != n || b != n {
		t.Fatalf("%d and %d of %d confirmed", a, b, n)
	}
	_ = q.Close(t.Context()) // or it makes the queue again when it connects
	early, err := durable.Consumer(t.Context(), driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}, Settle: driver.SettleEach})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = early.Close(context.Background()) })
	if err := syscall.Kill(s.Pids[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if !trial.Eventually(func() bool { return f.Confirmed(t, p, 1) == 0 }) {
		t.Error("a message is confirmed by a server that was killed")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := durable.Facts(ctx); !errors.Is(err, driver.ErrUnreachable) {
		t.Errorf("facts of a server that was killed: %v", err)
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	if got := trial.Backlog(t, durable); got < n {
		t.Errorf("%d of %d durable messages are there", got, n)
	}
	if _, err := transient.(driver.Backlogger).Backlog(t.Context(), "s", []string{"d"}); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("the queue that is not durable: %v", err)
	}
	if !trial.Eventually(func() bool { return f.Confirmed(t, p, 1) == 1 }) {
		t.Error("the producer does not connect again")
	}
	// A consumer that was opened before the server died, and runs after it is back.
	got := &tally{}
	running, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- early.Run(running, got) }()
	if !trial.Eventually(func() bool { return got.delivered.Load() >= n }) {
		t.Errorf("%d of %d messages came to a consumer whose connection was lost before it ran", got.delivered.Load(), n)
	}
	stop()
	if err := <-ended; err != nil || got.ready.Load() != 1 || got.faults.Load() != 1 {
		t.Errorf("it ended with %v, was ready %d times and told of %d faults; want nil, 1 and 1", err, got.ready.Load(), got.faults.Load())
	}
}

// A tally is a sink that counts.
type tally struct{ ready, delivered, faults atomic.Int64 }

func (c *tally) Ready()                             { c.ready.Add(1) }
func (c *tally) Deliver(ds []driver.Delivery) error { c.delivered.Add(int64(len(ds))); return nil }
func (c *tally) Settled([]driver.Delivery, error)   {}
func (c *tally) Fault(error)                        { c.faults.Add(1) }

// TestAQueueThatExists takes the queue of another run by its name.
func TestAQueueThatExists(t *testing.T) {
	s := shared.Up(t, 1)
	owner, err := trial.Open(t, Definition(), driver.Run{ID: "owner"}, s.Options)
	if err != nil {
		t.Fatal(err)
	}
	d := driver.Destination{Name: "d", Partitions: 1, Replicas: 1}
	if err := owner.Declare(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = owner.Delete(context.Background(), d); _ = owner.Close(context.Background()) })
	c, err := trial.Open(t, Definition(), driver.Run{Existing: true}, s.Options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	f := make(trial.Fates, 1)
	p, err := c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"weir.owner.d"}, InFlight: 1}, f)
	if err != nil {
		t.Fatal(err)
	}
	p.Publish(t.Context(), &driver.Message{Destination: "weir.owner.d"})
	if err := errors.Join(<-f, p.Close(t.Context())); err != nil {
		t.Error(err)
	}
	if n := trial.Backlog(t, owner); n != 1 {
		t.Errorf("%d messages", n)
	}
	_, noProducer := c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"missing"}}, nil)
	_, noConsumer := c.Consumer(t.Context(), driver.ConsumerSpec{Subscription: "s", Destinations: []string{"missing"}})
	for _, err := range []error{noProducer, noConsumer} {
		if !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("a queue that is missing: %v", err)
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	s := shared.Up(t, 1)
	for name, set := range map[string][]string{
		"address":            {"address", "http://127.0.0.1:1"},
		"password":           {"user", "", "password", "secret"},
		"datasync":           {"datasync", "maybe"},
		"reconnect-wait":     {"reconnect-wait", "0s"},
		"idle-timeout":       {"idle-timeout", "1s"},
		"tls.cert":           {"tls.cert", "x"},
		"server.persistence": {"server.persistence", "perhaps"},
	} {
		_, err := trial.Open(t, Definition(), driver.Run{}, s.Options, set...)
		if e := (*driver.OptionError)(nil); !errors.As(err, &e) || e.Name != name || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v: %v", set, err)
		}
	}
	if _, err := trial.Open(t, Definition(), driver.Run{}, s.Options, "password", "wrong-secret"); !errors.Is(err, driver.ErrAuth) || strings.Contains(err.Error(), "wrong-secret") {
		t.Errorf("a wrong password: %v", err)
	}
	anonymous := map[string][]string{"address": s.Options["address"]}
	if _, err := trial.Open(t, Definition(), driver.Run{}, anonymous); !errors.Is(err, driver.ErrAuth) {
		t.Errorf("no user: %v", err)
	}
	if _, err := trial.Open(t, Definition(), driver.Run{}, s.Options, "tls.insecure", "yes", "timeout", "1s"); err == nil {
		t.Error("TLS with a server that has none")
	}
}

// signals is a sink that tells of each delivery.
type signals struct {
	ready sync.WaitGroup
	got   chan struct{}
}

func (s *signals) Ready()                           { s.ready.Done() }
func (s *signals) Deliver([]driver.Delivery) error  { s.got <- struct{}{}; return nil }
func (s *signals) Settled([]driver.Delivery, error) {}
func (s *signals) Fault(error)                      {}

// TestAMessageCostsWhatTheClientDoes: the driver allocates nothing of its own for a
// message that is sent and one that is received. The client uses several goroutines, so
// its own number moves by a part of an allocation.
func TestAMessageCostsWhatTheClientDoes(t *testing.T) {
	s := shared.Up(t, 1)
	c := trial.Declared(t, Definition(), s.Options)
	session := plain(t, s)
	const rounds = 300
	ctx, body := t.Context(), make([]byte, 64)
	address := "weir-budget"
	x, err := session.NewSender(ctx, address, &client.SenderOptions{TargetCapabilities: []string{"queue"}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := session.NewReceiver(ctx, address, &client.ReceiverOptions{SourceCapabilities: []string{"queue"}, Credit: 200})
	if err != nil {
		t.Fatal(err)
	}
	message := client.Message{Header: &client.MessageHeader{Durable: true}, Data: [][]byte{body}}
	theirs := allocs(rounds, func() {
		receipt, err := x.SendWithReceipt(ctx, &message, nil)
		if err == nil {
			_, err = receipt.Wait(ctx)
		}
		if err != nil {
			t.Error(err)
		}
		m, err := r.Receive(ctx, nil)
		if err == nil {
			err = r.AcceptMessage(ctx, m)
		}
		if err != nil {
			t.Error(err)
		}
	})

	sink := &signals{got: make(chan struct{}, 1)}
	sink.ready.Add(1)
	consumer, err := c.Consumer(ctx, driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}})
	if err != nil {
		t.Fatal(err)
	}
	life, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { _ = consumer.Run(life, sink) })
	defer func() { stop(); running.Wait(); _ = consumer.Close(context.Background()) }()
	sink.ready.Wait()
	p, f := trial.Producer(t, c, "d")
	m := &driver.Message{Destination: "d", Payload: body}
	own := allocs(rounds, func() {
		p.Publish(ctx, m)
		if err := <-f; err != nil {
			t.Error(err)
		}
		<-sink.got
	})
	if own > theirs+1 {
		t.Errorf("%v allocations a message sent and received, %v of the client's own", own, theirs)
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

func TestThePageSaysWhatTheServersSay(t *testing.T) {
	served.Guarantees(t, Definition(), shared, "",
		"received: confirm: yes, durable: yes, server.persistence: yes, server.sync: yes",
		"received: confirm: yes, durable: yes, server.persistence: yes, server.sync: yes, datasync: yes",
	)
}

// TestCloseWaitsUntilMessagesSentSettledAreTaken closes a producer while the server stands still:
// the bytes of its messages are with the operating system then, and would reach a queue of that
// name also after it was deleted.
func TestCloseWaitsUntilMessagesSentSettledAreTaken(t *testing.T) {
	s := shared.Up(t, 1)
	c := trial.Declared(t, Definition(), s.Options, "durable", "no", "confirm", "no")
	p, f := trial.Producer(t, c, "d")
	resume, err := s.Stall()
	if err != nil {
		t.Fatal(err)
	}
	if n := f.Confirmed(t, p, 20); n != 20 {
		t.Errorf("%d of 20 sent", n)
	}
	closed := make(chan error, 1)
	go func() { closed <- p.Close(t.Context()) }()
	select {
	case err := <-closed:
		t.Errorf("Close returned before the server had the messages: %v", err)
	case <-time.After(500 * time.Millisecond):
	}
	resume()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if n := trial.Backlog(t, c); n != 20 {
		t.Errorf("the queue has %d of 20 messages when Close has returned, %d soon after", n, trial.Backlog(t, c))
	}
}
