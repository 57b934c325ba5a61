package drivertest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
)

// A memory is a broker inside the test with every capability, for testing the suite: correct with
// fault "", and broken in one respect otherwise. broken_test.go lists the faults.
type memory struct {
	fault string
	caps  driver.Capabilities
	nodes int
	limit int // messages a subscription holds before Publish blocks, if that is declared

	mu       sync.Mutex
	changed  chan struct{} // closed, and replaced, when anything changes
	topics   map[string]*memTopic
	cuts     int           // how often the connections were cut
	released chan struct{} // closed at the end of the test, for goroutines left on purpose
	shared   *memConfig
	looking  delivering
	stalled  bool
	killed   bool
	held     string // the destination that is held; "": none
	senders  []*memProducer
	readers  []*memConsumer
}

// A memTopic is a destination.
type memTopic struct {
	partitions int
	refusals   int         // after which a message goes to dead; 0: none
	dead       string      // topic
	log        []memStored // all messages ever sent
	subs       map[string]*memSub
}

// A memSub is a subscription of one destination.
type memSub struct{ queue []*memStored }

// A memStored is one message in one subscription.
type memStored struct {
	key, payload []byte
	partition    int32
	again        bool
	refused      int // times
	at           time.Time
	answer       chan<- []byte // of a request
}

// memCapabilities declares everything.
func memCapabilities() driver.Capabilities {
	return driver.Capabilities{
		Consume: true, Partitions: true, Replicas: true, Keys: true, Batch: true, Subscriptions: true, Competing: true,
		Nack: true, DeadLetters: true, SettleConfirmed: true, Retains: true, Requests: true, Resumes: true, Leaders: true,
		Replays:    []driver.Start{driver.AtEarliest, driver.AtLatest, driver.AtOffset, driver.AtTime},
		Settle:     []driver.Settle{driver.SettleEach, driver.SettleBatch, driver.SettleAuto},
		Guarantees: []driver.Guarantee{driver.Received},
		Delivery:   driver.AtLeastOnce,
		Ordering:   driver.PerDestination,
		MaxPayload: 128 << 10,
	}
}

func newMemory(fault string, caps driver.Capabilities) *memory {
	return &memory{
		fault: fault, caps: caps, nodes: 1, limit: 256,
		changed: make(chan struct{}), topics: map[string]*memTopic{}, released: make(chan struct{}),
	}
}

func (m *memory) definition() driver.Definition {
	return driver.Definition{Name: "memory", Title: "memory", Client: "here", Capabilities: m.caps, New: func() driver.Config {
		c := &memConfig{m: m, Address: "here"}
		if m.fault == "every Config is the same" {
			if m.shared == nil {
				m.shared = c
			}
			c = m.shared
		}
		if m.fault == "an option has no help" {
			return &memHelpless{memConfig: *c}
		}
		return c
	}}
}

// harness returns a complete harness for m.
func (m *memory) harness() Harness {
	return Harness{
		Options: map[string][]string{"address": {"here"}},
		Quiet:   100 * time.Millisecond,
		Nodes:   m.nodes,
		Yields:  memFetch,
		Offset:  func(_, _ string, n int) (string, error) { return strconv.Itoa(n), nil },
		Stall: func() (func(), error) {
			m.stall(true)
			return func() { m.stall(false) }, nil
		},
		Hold: func(_, destination string) (func(), error) {
			m.hold(destination)
			return func() { m.hold("") }, nil
		},
		Kill:   m.kill,
		Allocs: 200, // one fault allocates in small pieces, which is another check's concern
		Existing: func(run, destination string) string {
			return (&memConn{m: m, run: driver.Run{ID: run}}).name(destination)
		},
		Cut: func() error {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.cuts++
			m.change()
			return nil
		},
	}
}

// stall makes questions about a backlog go unanswered, or ends that.
func (m *memory) stall(yes bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stalled = yes
}

// kill kills the broker until start is called.
func (m *memory) kill() (start func() error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.killed = true
	return func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.killed = false
		if m.fault == "forgets what it confirmed" {
			for _, t := range m.topics {
				for _, s := range t.subs {
					s.queue = nil
				}
			}
		}
		return nil
	}
}

// gone reports whether the broker was killed.
func (m *memory) gone() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.killed
}

// hold holds one destination, and no other; "": none.
func (m *memory) hold(destination string) {
	m.mu.Lock()
	m.held = destination
	senders := m.senders
	m.mu.Unlock()
	for _, p := range senders {
		p.poke()
	}
}

// holds reports whether a destination is held.
func (m *memory) holds(destination string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held != "" && m.held == destination
}

// change wakes all waiters; m.mu must be held.
func (m *memory) change() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// wait waits, with m.mu held before and after, until ok or ctx ends.
func (m *memory) wait(ctx context.Context, ok func() bool) error {
	for !ok() {
		c := m.changed
		m.mu.Unlock()
		select {
		case <-c:
		case <-ctx.Done():
			m.mu.Lock()
			return ctx.Err()
		}
		m.mu.Lock()
	}
	return nil
}

type memConfig struct {
	m       *memory
	Address string `option:"address" help:"Where the system is."`
	Depth   int    `option:"depth" help:"Some number."`
}

type memHelpless struct {
	memConfig
	Silent bool `option:"silent"`
}

func (c *memConfig) Validate() error {
	if c.m.fault == "the defaults are not valid" && c.Address == "here" && c.Depth == 0 {
		c.Depth = 1 // once
		return errors.New("depth is 0")
	}
	return nil
}

func (c *memConfig) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	if c.Address != "here" {
		switch c.m.fault {
		case "connects lazily":
		case "takes ages to find nobody":
			<-ctx.Done()
			return nil, driver.ErrUnreachable
		case "calls the unreachable by another name":
			return nil, errors.New("no route")
		default:
			return nil, fmt.Errorf("dial %s: %w", c.Address, driver.ErrUnreachable)
		}
	}
	conn := &memConn{m: c.m, run: run, opened: ctx}
	switch {
	case c.m.fault == "does not say what is left":
		return struct{ driver.Conn }{conn}, nil // neither Backlogger nor Requester
	case !c.m.caps.Requests && c.m.fault != "answers requests undeclared":
		return struct {
			driver.Conn
			driver.Backlogger
		}{conn, conn}, nil // no Requester
	}
	return conn, nil
}

func (c *memConn) Backlog(ctx context.Context, subscription string, destinations []string) (n uint64, err error) {
	m := c.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stalled && m.fault != "answers for a system that stands still" {
		m.mu.Unlock()
		<-ctx.Done()
		m.mu.Lock()
		if m.fault == "says in its own words that it was not answered" {
			return 0, errors.New("nothing came")
		}
		return 0, driver.ErrUnreachable
	}
	if m.fault == "says that nothing is left" {
		return 0, nil
	}
	for _, r := range m.readers {
		if r.c == c && r.spec.Subscription == subscription {
			n += uint64(r.out)
			for _, d := range destinations {
				if t := m.topics[c.name(d)]; t != nil && t.subs[r.name()] != nil {
					n += uint64(len(t.subs[r.name()].queue))
				}
			}
		}
	}
	return n, nil
}

type memConn struct {
	m         *memory
	run       driver.Run
	opened    context.Context // of Open; only one fault uses it
	consumers int
}

// name is a topic's name in the system.
func (c *memConn) name(destination string) string {
	if c.run.Existing || c.m.fault == "names without the run" {
		return destination
	}
	return c.run.ID + "/" + destination
}

func (c *memConn) Declare(_ context.Context, ds ...driver.Destination) error {
	m := c.m
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range ds {
		if d.Replicas > m.nodes && m.fault != "promises replicas it has not" {
			return errors.New("not enough nodes")
		}
		if m.topics[c.name(d.Name)] != nil {
			if m.fault == "declares only once" {
				return errors.New("exists")
			}
			continue
		}
		m.topics[c.name(d.Name)] = &memTopic{
			partitions: d.Partitions, refusals: d.Refusals, dead: c.name(driver.DeadLetters(d.Name)), subs: map[string]*memSub{},
		}
	}
	return nil
}

func (c *memConn) Delete(_ context.Context, ds ...driver.Destination) error {
	m := c.m
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range ds {
		if m.topics[c.name(d.Name)] == nil && m.fault == "deletes only once" {
			return errors.New("does not exist")
		}
		if m.fault == "deletes for everybody" {
			for name := range m.topics {
				if strings.HasSuffix(name, "/"+d.Name) {
					delete(m.topics, name)
				}
			}
		}
		if m.fault != "deletes nothing" {
			delete(m.topics, c.name(d.Name))
		}
	}
	m.change()
	return nil
}

func (c *memConn) Facts(context.Context) (driver.Facts, error) {
	f := driver.Facts{Name: "memory", Version: "1", Nodes: c.m.nodes, Confirms: driver.Confirms{Guarantee: driver.Received, Stable: driver.StableOS}}
	if c.m.gone() && c.m.fault != "tells facts of servers that are gone" {
		return f, driver.ErrUnreachable
	}
	if c.m.caps.Leaders && c.m.fault != "tells no leader" {
		f.Leaders = []string{"here:1"}
	}
	switch c.m.fault {
	case "lives as long as Open's context":
		return f, c.opened.Err()
	case "guarantees what it does not declare":
		f.Confirms.Guarantee = driver.Persisted
	case "guarantees nothing":
		f.Confirms.Guarantee = 0
	case "has no version":
		f.Version = ""
	}
	return f, nil
}

func (c *memConn) Close(context.Context) error {
	if c.run.Existing && c.m.fault == "takes away what it found" {
		c.m.mu.Lock()
		defer c.m.mu.Unlock()
		clear(c.m.topics)
	}
	if c.m.fault == "cannot close" {
		return errors.New("busy")
	}
	return nil
}

func (c *memConn) Producer(_ context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	if err := c.missing(spec.Destinations); err != nil {
		return nil, err
	}
	p := &memProducer{c: c, m: c.m, cuts: c.m.cut(), done: done, stopped: make(chan struct{}), wake: make(chan struct{}, 1)}
	c.m.mu.Lock()
	c.m.senders = append(c.m.senders, p)
	c.m.mu.Unlock()
	go p.work()
	if c.m.fault == "leaves a goroutine" {
		go func() { <-c.m.released }()
	}
	if !c.m.caps.Batch && c.m.fault != "batches undeclared" {
		return struct{ driver.Producer }{p}, nil // without PublishBatch
	}
	return p, nil
}

func (c *memConn) Consumer(_ context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	m := c.m
	m.mu.Lock()
	defer m.mu.Unlock()
	c.consumers++
	r := &memConsumer{c: c, m: m, spec: spec, cuts: m.cuts, number: c.consumers}
	m.readers = append(m.readers, r)
	t := m.topics[c.name(spec.Destinations[0])]
	if t == nil {
		return nil, fmt.Errorf("no such destination: %w", driver.ErrUnsupported)
	}
	if _, err := strconv.Atoi(spec.From.Offset); err != nil && spec.From.At == driver.AtOffset && m.fault != "takes any text for an offset" {
		return nil, fmt.Errorf("offset %q: %w", spec.From.Offset, driver.ErrUnsupported)
	}
	if m.caps.Retains && m.fault != "keeps nothing before Run" && !r.late() {
		r.subscribe()
	}
	return r, nil
}

// missing rejects destinations that do not exist, in a run that uses existing ones.
func (c *memConn) missing(destinations []string) error {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	for _, d := range destinations {
		if c.run.Existing && c.m.topics[c.name(d)] == nil && c.m.fault != "finds out late what is missing" {
			return fmt.Errorf("no such destination: %w", driver.ErrUnsupported)
		}
	}
	return nil
}

// deliver puts a message into every subscription of a topic, and waits for space if Publish may
// block.
func (m *memory) deliver(ctx context.Context, topic string, s memStored) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	room := func() bool {
		t := m.topics[topic]
		if t == nil {
			return true
		}
		for _, sub := range t.subs {
			if len(sub.queue) >= m.limit {
				return false
			}
		}
		return true
	}
	if m.caps.PublishBlocks {
		if m.fault == "waits for room for ever" {
			ctx = context.Background()
		}
		if err := m.wait(ctx, room); err != nil {
			if m.fault == "hides why it stopped" {
				return errors.New("no room")
			}
			return err
		}
	}
	t := m.topics[topic]
	if t == nil {
		return errors.New("no such destination")
	}
	s.at = time.Now()
	t.log = append(t.log, s)
	for _, sub := range t.subs {
		one := s
		sub.queue = append(sub.queue, &one)
	}
	m.change()
	return nil
}
