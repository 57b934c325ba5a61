package driver_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/must"
)

// A lax Conn rejects nothing itself.
type lax struct {
	driver.Config
	driver.Conn
	err    error // of the calls that open something
	closed int
}

func (c *lax) Open(context.Context, driver.Run) (driver.Conn, error) { return c, nil }

func (*lax) Validate() error { return nil }

func (c *lax) Declare(context.Context, ...driver.Destination) error { return c.err }
func (c *lax) Delete(context.Context, ...driver.Destination) error  { return c.err }
func (c *lax) Facts(context.Context) (driver.Facts, error)          { return driver.Facts{}, c.err }

func (c *lax) Producer(context.Context, driver.ProducerSpec, driver.Completer) (driver.Producer, error) {
	return nil, c.err
}

func (c *lax) Consumer(context.Context, driver.ConsumerSpec) (driver.Consumer, error) {
	return &laxConsumer{c: c}, c.err
}

func (c *lax) Close(context.Context) error {
	c.closed++
	return c.err
}

type laxConsumer struct {
	driver.Consumer
	c *lax
}

func (x *laxConsumer) Run(context.Context, driver.Sink) error { return x.c.err }

// A laxRequester reports a backlog, and answers requests.
type laxRequester struct{ *lax }

func (c laxRequester) Open(context.Context, driver.Run) (driver.Conn, error) { return c, nil }

func (c laxRequester) Backlog(context.Context, string, []string) (uint64, error) { return 7, c.err }

func (c laxRequester) Requester(ctx context.Context, s driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	return c.Producer(ctx, s, done)
}

func (c laxRequester) Responder(ctx context.Context, s driver.ConsumerSpec) (driver.Consumer, error) {
	return c.Consumer(ctx, s)
}

func guarded(t *testing.T, cfg driver.Config, can driver.Capabilities) driver.Conn {
	t.Helper()
	return must.Get(driver.Open(t.Context(), driver.Definition{Name: "lax", Title: "Lax", Capabilities: can}, cfg, driver.Run{ID: "r"}))(t)
}

// The Conn accepts everything: each rejection is the guard's, and what is declared goes through.
func TestGuardRejectsUndeclaredUse(t *testing.T) {
	one := driver.Capabilities{Consume: true, Settle: []driver.Settle{driver.SettleNone}, MaxPayload: 10}
	all := driver.Capabilities{
		Consume: true, Partitions: true, Replicas: true, Competing: true, Subscriptions: true, Resumes: true,
		Settle:  []driver.Settle{driver.SettleEach, driver.SettleNone},
		Replays: []driver.Start{driver.AtEarliest},
	}
	consume := func(s driver.ConsumerSpec) func(driver.Conn) error {
		return func(c driver.Conn) error {
			if s.Destinations == nil {
				s.Destinations = []string{"d"}
			}
			_, err := c.Consumer(t.Context(), s)
			return err
		}
	}
	none := driver.ConsumerSpec{Subscription: "s", Settle: driver.SettleNone, Destinations: []string{"d"}}
	for _, tc := range []struct {
		what string
		do   func(driver.Conn) error
		is   error
		says string
	}{
		{"partitions", func(c driver.Conn) error {
			return c.Declare(t.Context(), driver.Destination{Name: "d", Partitions: 2})
		}, driver.ErrUnsupported, "lax: destination d: 2 partitions: Lax has none"},
		{"replicas", func(c driver.Conn) error {
			return c.Declare(t.Context(), driver.Destination{Name: "d", Replicas: 2})
		}, driver.ErrUnsupported, "lax: destination d: 2 replicas: Lax has none"},
		{"a large message", func(c driver.Conn) error {
			_, err := c.Producer(t.Context(), driver.ProducerSpec{Index: 3, Largest: 11}, nil)
			return err
		}, driver.ErrTooLarge, "lax: producer 3: message too large: 11B, the driver's limit is 10B"},
		{"a way of settling", consume(driver.ConsumerSpec{Subscription: "s", Index: 0, Settle: driver.SettleEach}), driver.ErrUnsupported, "lax: consumer s 0: settle each: Lax has none"},
		{"a second consumer of a destination", func(c driver.Conn) error {
			second := none
			second.Index = 1
			return errors.Join(consume(none)(c), consume(second)(c))
		}, driver.ErrUnsupported, "lax: consumer s 1: destination d: consumer 0 has it, and the consumers of a subscription of Lax do not share messages"},
		{"a position", consume(driver.ConsumerSpec{Settle: driver.SettleNone, From: driver.Position{At: driver.AtEarliest}}), driver.ErrUnsupported, "does not begin at a position (earliest)"},
		{"a durable subscription", consume(driver.ConsumerSpec{Settle: driver.SettleNone, Durable: true}), driver.ErrUnsupported, "keeps no subscription"},
		{"a second subscription", func(c driver.Conn) error {
			second := none
			second.Subscription = "t"
			return errors.Join(consume(none)(c), consume(second)(c))
		}, driver.ErrUnsupported, "lax: consumer t 0: destination d: subscription s has it"},
	} {
		if err := tc.do(guarded(t, &lax{}, one)); !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s, not declared: %v; want %q", tc.what, err, tc.says)
		}
		if err := tc.do(guarded(t, &lax{}, all)); err != nil {
			t.Errorf("%s, declared: %v", tc.what, err)
		}
	}
	c := guarded(t, &lax{}, driver.Capabilities{})
	if err := consume(none)(c); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("a consumer of a driver without any: %v", err)
	}
	for what, err := range map[string]error{
		"declare": c.Declare(t.Context(), driver.Destination{}),
		"consume": consume(driver.ConsumerSpec{Destinations: []string{""}})(guarded(t, &lax{}, all)),
	} {
		if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "destination without a name") {
			t.Errorf("%s without a name: %v", what, err)
		}
	}
}

// Each has a destination of its own.
func TestUnsharedConsumersNeedNoCompetition(t *testing.T) {
	c := guarded(t, &lax{}, driver.Capabilities{Consume: true, Settle: []driver.Settle{driver.SettleNone}})
	for i, d := range []string{"d", "e", "f"} {
		if _, err := c.Consumer(t.Context(), driver.ConsumerSpec{Subscription: "s", Index: i, Destinations: []string{d}, Settle: driver.SettleNone}); err != nil {
			t.Error(err)
		}
	}
}

// Another subscription may then use the destination.
func TestDeleteFreesADestination(t *testing.T) {
	c := guarded(t, &lax{}, driver.Capabilities{Consume: true, Settle: []driver.Settle{driver.SettleNone}})
	for _, s := range []string{"s", "t"} {
		if _, err := c.Consumer(t.Context(), driver.ConsumerSpec{Subscription: s, Destinations: []string{"d"}, Settle: driver.SettleNone}); err != nil {
			t.Error(err)
		}
		if err := c.Delete(t.Context(), driver.Destination{Name: "d"}); err != nil {
			t.Error(err)
		}
	}
}

func TestTheGuardNamesTheDriverOnce(t *testing.T) {
	can := driver.Capabilities{Consume: true, Settle: []driver.Settle{driver.SettleEach}}
	said := errors.New("down")
	for _, err := range []error{said, errors.New("lax: down")} {
		l := &lax{err: err}
		c := guarded(t, laxRequester{l}, can)
		_, facts := c.Facts(t.Context())
		_, produce := c.Producer(t.Context(), driver.ProducerSpec{Index: 2}, nil)
		_, request := c.(driver.Requester).Requester(t.Context(), driver.ProducerSpec{Index: 2}, nil)
		_, consume := c.Consumer(t.Context(), driver.ConsumerSpec{Subscription: "s"})
		_, respond := c.(driver.Requester).Responder(t.Context(), driver.ConsumerSpec{Subscription: "s"})
		_, backlog := c.(driver.Backlogger).Backlog(t.Context(), "s", nil)
		l.err = nil
		x := must.Get(c.Consumer(t.Context(), driver.ConsumerSpec{Subscription: "s"}))(t)
		l.err = err
		for what, got := range map[string]error{
			"declare": c.Declare(t.Context()), "delete": c.Delete(t.Context()), "facts": facts, "producer 2": produce, "requester 2": request,
			"consumer s 0": consume, "consumer s 0 again": respond, "consumer s 0 again again": x.Run(t.Context(), nil), "backlog of s": backlog, "close": c.Close(t.Context()),
		} {
			want := "lax: " + strings.ReplaceAll(what, " again", "") + ": down"
			if got == nil || errors.Is(err, said) && strings.Contains(what, " ") && got.Error() != want || strings.Count(got.Error(), "lax: ") != 1 {
				t.Errorf("%s: %v", what, got)
			}
		}
	}
}

// The Conn is not called any more, and closed once.
func TestACallAfterCloseIsErrClosed(t *testing.T) {
	l := &lax{}
	c := guarded(t, laxRequester{l}, driver.Capabilities{Consume: true, Settle: []driver.Settle{driver.SettleEach}})
	for range 2 {
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if l.closed != 1 {
		t.Errorf("closed %d times", l.closed)
	}
	_, facts := c.Facts(t.Context())
	_, produce := c.Producer(t.Context(), driver.ProducerSpec{}, nil)
	_, consume := c.Consumer(t.Context(), driver.ConsumerSpec{})
	_, backlog := c.(driver.Backlogger).Backlog(t.Context(), "s", nil)
	for what, err := range map[string]error{
		"declare": c.Declare(t.Context()), "delete": c.Delete(t.Context()), "facts": facts, "producer": produce, "consumer": consume, "backlog": backlog,
	} {
		if !errors.Is(err, driver.ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// The guard adds no interface either.
func TestGuardKeepsOptionalInterfaces(t *testing.T) {
	c := guarded(t, &lax{}, driver.Capabilities{})
	if _, is := c.(driver.Backlogger); is {
		t.Error("a Backlogger")
	}
	if _, is := c.(driver.Requester); is {
		t.Error("a Requester")
	}
	if _, is := driver.Inside(c).(*lax); !is {
		t.Errorf("inside is a %T", driver.Inside(c))
	}
}

// A destination of the producer is found without an allocation; any other is rejected with the
// reason.
func TestTargetLookup(t *testing.T) {
	ts := must.Get(driver.NewTargets([]string{"a", "b"}, func(d string) (string, error) { return "at/" + d, nil }))(t)
	ts.Limit(4, "the server's limit")
	m := &driver.Message{Destination: "b", Payload: []byte("1234")}
	if got, err := ts.Of(t.Context(), m); got != "at/b" || err != nil {
		t.Errorf("b is at %q, %v", got, err)
	}
	for _, d := range []string{"a", "a", "b", "a"} {
		if got, err := ts.Of(t.Context(), &driver.Message{Destination: d}); got != "at/"+d || err != nil {
			t.Errorf("%s is at %q, %v", d, got, err)
		}
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = ts.Of(t.Context(), m) }); n > 0 {
		t.Errorf("%v allocations a message", n)
	}
	over, end := context.WithCancel(t.Context())
	end()
	for what, tc := range map[string]struct {
		ctx context.Context
		m   driver.Message
		is  error
	}{
		"a context that has ended": {over, *m, context.Canceled},
		"another destination":      {t.Context(), driver.Message{Destination: "c"}, driver.ErrUnsupported},
		"no destination":           {t.Context(), driver.Message{}, driver.ErrUnsupported},
		"a large message":          {t.Context(), driver.Message{Destination: "a", Payload: make([]byte, 5)}, driver.ErrTooLarge},
	} {
		if _, err := ts.Of(tc.ctx, &tc.m); !errors.Is(err, tc.is) {
			t.Errorf("%s: %v", what, err)
		}
	}
	single := must.Get(driver.NewTargets([]string{"a"}, func(string) (int, error) { return 1, nil }))(t)
	single.Limit(4, "the server's limit")
	for d, is := range map[string]error{"a": nil, "b": driver.ErrUnsupported, "": driver.ErrUnsupported} {
		if _, err := single.Of(t.Context(), &driver.Message{Destination: d}); !errors.Is(err, is) {
			t.Errorf("of a single destination, %q: %v", d, err)
		}
	}
	if _, err := single.Of(t.Context(), &driver.Message{Destination: "a", Payload: make([]byte, 5)}); !errors.Is(err, driver.ErrTooLarge) {
		t.Errorf("of a single destination, a large message: %v", err)
	}
	if _, err := driver.NewTargets([]string{"a"}, func(string) (int, error) { return 0, driver.ErrUnreachable }); !errors.Is(err, driver.ErrUnreachable) {
		t.Errorf("a target that cannot be had: %v", err)
	}
}

func BenchmarkTargets(b *testing.B) {
	ts, _ := driver.NewTargets([]string{"weir-1"}, func(string) (int, error) { return 1, nil })
	ts.Limit(1<<20, "the server's limit")
	ctx, end := context.WithCancel(b.Context())
	defer end()
	m := &driver.Message{Destination: "weir-1", Payload: make([]byte, 1024)}
	b.ReportAllocs()
	for b.Loop() {
		must.Get(ts.Of(ctx, m))(b)
	}
}
