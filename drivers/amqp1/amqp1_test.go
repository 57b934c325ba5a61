package amqp1

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	client "github.com/Azure/go-amqp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
)

// destination is the queue of the tests.
var destination = driver.Destination{Name: "d", Partitions: 1, Replicas: 1}

// TestConfirmationsMeanWhatIsStatedAndRead: a virtual host in memory keeps nothing,
// whatever the option store says.
func TestConfirmationsMeanWhatIsStatedAndRead(t *testing.T) {
	files, memory := shared.Up(t, 1), served.Up(t, Definition(), 1, served.With{Settings: map[string]string{"persistence": "no"}})
	for _, tc := range []struct {
		on   *served.System
		set  []string
		want driver.Confirms
	}{
		{files, nil, driver.Confirms{Guarantee: driver.Persisted, Stable: driver.StableFsync}},
		{files, []string{"store", "written"}, driver.Confirms{Guarantee: driver.Received, Stable: driver.StableOS}},
		{files, []string{"store", "unknown"}, driver.Confirms{Guarantee: driver.Received}},
		{files, []string{"durable", "no"}, driver.Confirms{Guarantee: driver.Received}},
		{files, []string{"confirm", "no"}, driver.Confirms{Guarantee: driver.Written}},
		{memory, nil, driver.Confirms{Guarantee: driver.Received}},
		{memory, []string{"store", "synced"}, driver.Confirms{Guarantee: driver.Received}},
	} {
		f, err := trial.Declared(t, Definition(), tc.on.Options, tc.set...).Facts(t.Context())
		if err != nil || f.Confirms != tc.want || f.Version != "10.1.0" || f.Name != "Apache Qpid Broker-J Core" {
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
}

// TestWithoutManagementItOnlySends to a queue that the user made: another Conn counts what
// came, and Delete takes it out.
func TestWithoutManagementItOnlySends(t *testing.T) {
	s := shared.Up(t, 1)
	owner, err := trial.Open(t, Definition(), driver.Run{ID: "owner"}, s.Options)
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Declare(t.Context(), destination); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = owner.Delete(context.Background(), destination); _ = owner.Close(context.Background()) })
	const queue = "weir.owner.d"
	c, err := trial.Open(t, Definition(), driver.Run{Existing: true}, s.Options, "management", "none")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	f := make(trial.Fates, 1)
	p, err := c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{queue}, InFlight: 1}, f)
	if err != nil {
		t.Fatal(err)
	}
	p.Publish(t.Context(), &driver.Message{Destination: queue})
	if err := errors.Join(f.Next(t), p.Close(t.Context())); err != nil {
		t.Error(err)
	}
	if n := trial.Backlog(t, owner); n != 1 {
		t.Errorf("%d messages", n)
	}
	same, err := trial.Open(t, Definition(), driver.Run{ID: "owner"}, s.Options, "management", "none")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = same.Close(context.Background()) })
	if err := same.Delete(t.Context(), destination, driver.Destination{Name: "missing"}); err != nil {
		t.Error(err)
	}
	if n := trial.Backlog(t, owner); n != 0 {
		t.Errorf("%d messages of a queue that was emptied", n)
	}
	_, missing := c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"missing"}}, nil)
	_, consumer := c.Consumer(t.Context(), driver.ConsumerSpec{Subscription: "s", Destinations: []string{queue}})
	for _, err := range []error{missing, consumer} {
		if !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("a queue that is missing, a consumer without management: %v", err)
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	s := shared.Up(t, 1)
	for name, set := range map[string][]string{
		"address":            {"address", "http://127.0.0.1:1"},
		"password":           {"user", "", "password", "secret"},
		"store":              {"store", "maybe"},
		"management":         {"management", "artemis"},
		"idle-timeout":       {"idle-timeout", "1s"},
		"server.persistence": {"server.persistence", "perhaps"},
	} {
		_, err := trial.Open(t, Definition(), driver.Run{ID: "r"}, s.Options, set...)
		if e := (*driver.OptionError)(nil); !errors.As(err, &e) || e.Name != name || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v: %v", set, err)
		}
	}
	_, err := trial.Open(t, Definition(), driver.Run{ID: "r"}, s.Options, "password", "wrong-secret")
	if !errors.Is(err, driver.ErrAuth) || strings.Contains(err.Error(), "wrong-secret") {
		t.Errorf("a wrong password: %v", err)
	}
}

// TestAMessageCostsWhatTheClientDoes: the driver allocates nothing of its own for a message
// that is sent. The client uses several goroutines, so its own number moves by a part of
// an allocation.
func TestAMessageCostsWhatTheClientDoes(t *testing.T) {
	s := shared.Up(t, 1)
	c := trial.Declared(t, Definition(), s.Options, "durable", "no")
	p, f := trial.Producer(t, c, "d")
	conn, err := client.Dial(t.Context(), "amqp://"+s.Address[0], &client.ConnOptions{SASLType: client.SASLTypePlain("weir", "weir")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	session, err := conn.NewSession(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	x, err := session.NewSender(t.Context(), "amq.fanout", nil)
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 100
	ctx, body := t.Context(), make([]byte, 64)
	message := client.Message{Header: &client.MessageHeader{}, Data: [][]byte{body}}
	theirs := testing.AllocsPerRun(rounds, func() {
		receipt, err := x.SendWithReceipt(ctx, &message, nil)
		if err == nil {
			_, err = receipt.Wait(ctx)
		}
		if err != nil {
			t.Error(err)
		}
	})
	m := &driver.Message{Destination: "d", Payload: body}
	own := testing.AllocsPerRun(rounds, func() {
		p.Publish(ctx, m)
		if err := <-f; err != nil {
			t.Error(err)
		}
	})
	if own > theirs+1 {
		t.Errorf("%v allocations a message sent, %v of the client's own", own, theirs)
	}
}

// TestRabbitMQIsReadAsItIs: facts are those of the queue that is there, and a server that
// is not RabbitMQ is refused.
func TestRabbitMQIsReadAsItIs(t *testing.T) {
	s := shared.Up(t, 1, served.With{Recipe: "rabbitmq4"})
	for kind, want := range map[string]driver.Confirms{
		quorum:  {Guarantee: driver.Persisted, Stable: driver.StableFsync},
		classic: {Guarantee: driver.Received, Stable: driver.StableOS},
	} {
		f, err := trial.Declared(t, Definition(), s.Options, "queue-type", kind).Facts(t.Context())
		if err != nil || f.Confirms != want || f.Name != "RabbitMQ" || f.Version != "4.0.5" || f.Settings["queue-type"] != kind {
			t.Errorf("%s: %+v, %v; want %+v", kind, f, err, want)
		}
	}
	c, err := trial.Open(t, Definition(), driver.Run{}, s.Options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	if err := c.Declare(t.Context(), driver.Destination{Name: "d", Partitions: 1, Replicas: 2}); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("two replicas on one node: %v", err)
	}
	if _, err := c.(driver.Backlogger).Backlog(t.Context(), "s", []string{"d"}); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("the backlog of a queue that was not made: %v", err)
	}
	_, err = trial.Open(t, Definition(), driver.Run{}, shared.Up(t, 1).Options, "management", rabbit4)
	if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "management: rabbitmq is for RabbitMQ 4") {
		t.Errorf("Qpid as RabbitMQ: %v", err)
	}
}

func TestThePageSaysWhatTheServersSay(t *testing.T) {
	served.Guarantees(t, Definition(), shared, "",
		"received: confirm: yes, management: qpid or none, durable: yes, store: written",
	)
}
