package driver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Open connects driver d with cfg and returns a guarded Conn. Callers must open drivers this way.
// The guard rejects requests beyond d's Capabilities and calls after Close, and prefixes each error
// with the driver's name and with what was being opened, so that drivers need not.
//
// The guard wraps the Conn, not the message path: producers and the sinks of consumers are passed
// through unchanged. Targets does the checks of Publish.
//
// An error of Open itself does not name the driver. ctx bounds the connecting.
func Open(ctx context.Context, d Definition, cfg Config, run Run) (Conn, error) {
	conn, err := cfg.Open(ctx, run)
	if err != nil {
		return nil, err
	}
	g := &guard{conn: conn, name: d.Name, title: d.Title, can: d.Capabilities.With(cfg), takes: map[string]string{}, serves: map[[2]string]int{}}
	g.backlogs, _ = conn.(Backlogger)
	g.requests, _ = conn.(Requester)
	switch {
	case g.requests != nil:
		return requestGuard{backlogGuard{g}}, nil
	case g.backlogs != nil:
		return backlogGuard{g}, nil
	}
	return g, nil
}

// A guard is the Conn that Open returns.
type guard struct {
	conn        Conn
	backlogs    Backlogger // conn; nil if it is none
	requests    Requester  // conn; nil if it is none
	name, title string     // of the driver
	can         Capabilities
	closed      atomic.Bool

	mu     sync.Mutex
	takes  map[string]string // by destination: its subscription, if it can have only one
	serves map[[2]string]int // by destination and subscription: its consumer, if it can have only one
}

// Inside returns the driver's own Conn behind the guard, for tests of a driver.
func Inside(c Conn) Conn {
	if g, ok := c.(interface{ inside() Conn }); ok {
		return g.inside()
	}
	return c
}

func (g *guard) inside() Conn { return g.conn }

// A backlogGuard is a guard of a Conn that is a Backlogger.
type backlogGuard struct{ *guard }

// A requestGuard is a guard of a Conn that is a Requester.
type requestGuard struct{ backlogGuard }

// say prefixes err with the driver's name and what, unless it already has that prefix.
func (g *guard) say(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case strings.HasPrefix(err.Error(), g.name+": "):
		return err
	case what == "":
		return fmt.Errorf("%s: %w", g.name, err)
	}
	return fmt.Errorf("%s: %s: %w", g.name, what, err)
}

// lacks returns an error that the driver does not support something.
func lacks(format string, v ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, v...), ErrUnsupported)
}

// Declare implements Conn.
func (g *guard) Declare(ctx context.Context, ds ...Destination) error {
	if g.closed.Load() {
		return g.say("", ErrClosed)
	}
	for _, d := range ds {
		if err := g.refuses(d); err != nil {
			return g.say("", err)
		}
	}
	return g.say("", g.conn.Declare(ctx, ds...))
}

// refuses returns why a destination cannot be created.
func (g *guard) refuses(d Destination) error {
	switch {
	case d.Name == "":
		return lacks("destination without a name")
	case d.Partitions > 1 && !g.can.Partitions:
		return lacks("destination %s: %d partitions: %s has none", d.Name, d.Partitions, g.title)
	case d.Refusals > 0 && !g.can.DeadLetters:
		return lacks("destination %s: dead letters: %s has none with these settings", d.Name, g.title)
	case d.Replicas > 1 && !g.can.Replicas:
		return lacks("destination %s: %d replicas: %s has none of a destination", d.Name, d.Replicas, g.title)
	}
	return nil
}

// Delete implements Conn.
func (g *guard) Delete(ctx context.Context, ds ...Destination) error {
	if g.closed.Load() {
		return g.say("", ErrClosed)
	}
	g.mu.Lock()
	for _, d := range ds {
		delete(g.takes, d.Name)
		for s := range g.serves {
			if s[0] == d.Name {
				delete(g.serves, s)
			}
		}
	}
	g.mu.Unlock()
	return g.say("", g.conn.Delete(ctx, ds...))
}

// Producer implements Conn.
func (g *guard) Producer(ctx context.Context, spec ProducerSpec, done Completer) (Producer, error) {
	p, err := g.produce(ctx, spec, done, g.conn.Producer)
	return p, g.say(spec.Name(), err)
}

func (g *guard) produce(ctx context.Context, spec ProducerSpec, done Completer,
	open func(context.Context, ProducerSpec, Completer) (Producer, error),
) (Producer, error) {
	if g.closed.Load() {
		return nil, ErrClosed
	}
	if err := CheckSize(spec.Largest, int64(g.can.MaxPayload), "the driver's limit"); err != nil {
		return nil, err
	}
	for _, d := range spec.Destinations {
		if d == "" {
			return nil, lacks("destination without a name")
		}
	}
	p, err := open(ctx, spec, done)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Consumer implements Conn.
func (g *guard) Consumer(ctx context.Context, spec ConsumerSpec) (Consumer, error) {
	return g.consume(ctx, spec, g.conn.Consumer)
}

func (g *guard) consume(ctx context.Context, spec ConsumerSpec, open func(context.Context, ConsumerSpec) (Consumer, error)) (Consumer, error) {
	what := spec.Name()
	if g.closed.Load() {
		return nil, g.say(what, ErrClosed)
	}
	if err := g.mayConsume(spec); err != nil {
		return nil, g.say(what, err)
	}
	x, err := open(ctx, spec)
	if err != nil {
		return nil, g.say(what, err)
	}
	g.mu.Lock()
	for _, d := range spec.Destinations {
		g.takes[d] = spec.Subscription
		g.serves[[2]string{d, spec.Subscription}] = spec.Index
	}
	g.mu.Unlock()
	return &guardedConsumer{x, g, what}, nil
}

// mayConsume returns why a consumer cannot be opened.
func (g *guard) mayConsume(spec ConsumerSpec) error {
	switch {
	case !g.can.Consume:
		return lacks("%s has no consumers here", g.title)
	case !slices.Contains(g.can.Settle, spec.Settle):
		var have []string
		for _, s := range g.can.Settle {
			have = append(have, s.String())
		}
		return lacks("settle %v: %s has %s", spec.Settle, g.title, strings.Join(have, ", "))
	case spec.From != Position{} && !slices.Contains(g.can.Replays, spec.From.At):
		return lacks("%s does not begin at a position (%v)", g.title, spec.From.At)
	case spec.Durable && !g.can.Resumes:
		return lacks("%s keeps no subscription for later", g.title)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, d := range spec.Destinations {
		if d == "" {
			return lacks("destination without a name")
		}
		if have, ok := g.takes[d]; ok && have != spec.Subscription && !g.can.Subscriptions {
			return lacks("destination %s: subscription %s has it, and %s gives a message to one", d, have, g.title)
		}
		if have, ok := g.serves[[2]string{d, spec.Subscription}]; ok && have != spec.Index && !g.can.Competing {
			return lacks("destination %s: consumer %d has it, and the consumers of a subscription of %s do not share messages", d, have, g.title)
		}
	}
	return nil
}

// Facts implements Conn.
func (g *guard) Facts(ctx context.Context) (Facts, error) {
	if g.closed.Load() {
		return Facts{}, g.say("", ErrClosed)
	}
	f, err := g.conn.Facts(ctx)
	return f, g.say("", err)
}

// Close implements Conn. It is idempotent.
func (g *guard) Close(ctx context.Context) error {
	if g.closed.Swap(true) {
		return nil
	}
	return g.say("", g.conn.Close(ctx))
}

// Backlog implements Backlogger.
func (g backlogGuard) Backlog(ctx context.Context, subscription string, destinations []string) (uint64, error) {
	if g.closed.Load() {
		return 0, g.say("", ErrClosed)
	}
	n, err := g.backlogs.Backlog(ctx, subscription, destinations)
	return n, g.say("backlog of "+subscription, err)
}

// Requester implements Requester.
func (g requestGuard) Requester(ctx context.Context, spec ProducerSpec, done Completer) (Producer, error) {
	p, err := g.produce(ctx, spec, done, g.requests.Requester)
	return p, g.say(fmt.Sprintf("requester %d", spec.Index), err)
}

// Responder implements Requester.
func (g requestGuard) Responder(ctx context.Context, spec ConsumerSpec) (Consumer, error) {
	return g.consume(ctx, spec, g.requests.Responder)
}

// A guardedConsumer adds the driver's name to the error of Run.
type guardedConsumer struct {
	Consumer
	guard *guard
	what  string
}

// Run implements Consumer.
func (x *guardedConsumer) Run(ctx context.Context, sink Sink) error {
	return x.guard.say(x.what, x.Consumer.Run(ctx, sink))
}

// CheckSize returns ErrTooLarge if a message of size bytes exceeds most, which limit sets ("the
// server's max-msg-size"); a most of 0 means no limit.
func CheckSize(size int, most int64, limit string) error {
	if most <= 0 || int64(size) <= most {
		return nil
	}
	return fmt.Errorf("%w: %s, %s is %s", ErrTooLarge, FormatSize(int64(size)), limit, FormatSize(most))
}
