package drivertest

import (
	"bytes"
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
)

// memProducer completes on a goroutine of its own, as a client library does; with a blocking
// Publish it completes inside it.
type memProducer struct {
	c    *memConn
	m    *memory
	done driver.Completer
	wake chan struct{}

	mu        sync.Mutex
	pending   []*driver.Message
	working   bool
	closed    bool
	stopped   chan struct{} // closed when the goroutine has ended
	published int
	cuts      int
	scrap     []byte     // its last useless allocation
	held      *memStored // for the fault that swaps
	heldTopic string
}

func (p *memProducer) Publish(ctx context.Context, m *driver.Message) {
	p.m.overwrite()
	if p.m.fault == "blocks undeclared" {
		p.m.mu.Lock()
		_ = p.m.wait(ctx, func() bool { return p.m.longest() < 150 })
		p.m.mu.Unlock()
	}
	if p.m.caps.PublishBlocks {
		p.done.Complete(m, p.send(ctx, m))
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		p.done.Complete(m, driver.ErrClosed)
		return
	}
	p.pending = append(p.pending, m)
	p.poke()
}

func (p *memProducer) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *memProducer) PublishBatch(ctx context.Context, ms []*driver.Message) {
	ms = slices.Clone(ms)
	if p.m.fault == "turns batches round" {
		slices.Reverse(ms)
	}
	for i, m := range ms {
		if p.m.fault == "drops the last of a batch" && len(ms) > 5 && i == len(ms)-1 {
			p.done.Complete(m, nil)
			continue
		}
		p.Publish(ctx, m)
	}
}

// work is the client library's goroutine.
func (p *memProducer) work() {
	defer close(p.stopped)
	for range p.wake {
		for {
			if p.m.fault == "flushes too early" || p.m.fault == "abandons at Close" || p.m.fault == "closes with errors of its own" {
				time.Sleep(20 * time.Millisecond) // a slow network
			}
			p.mu.Lock()
			next := slices.IndexFunc(p.pending, func(m *driver.Message) bool { return !p.m.holds(m.Destination) })
			if p.m.fault == "waits behind a destination that stands still" && next > 0 {
				next = -1
			}
			if next < 0 {
				closed := p.closed && len(p.pending) == 0
				p.mu.Unlock()
				if closed {
					return
				}
				break
			}
			m := p.pending[next]
			p.pending = slices.Delete(p.pending, next, next+1)
			p.working = true
			p.mu.Unlock()
			p.finish(m)
			p.mu.Lock()
			p.working = false
			p.mu.Unlock()
		}
	}
}

// finish sends m and completes it.
func (p *memProducer) finish(m *driver.Message) {
	err := p.send(context.Background(), m)
	switch {
	case p.m.fault == "completes some twice" && p.published%100 == 99:
		p.done.Complete(m, err)
	case p.m.fault == "forgets to complete one" && p.published == 700:
		return
	case p.m.fault == "forgets what was under way when cut" && p.m.cut() > p.cuts:
		return
	}
	p.done.Complete(m, err)
}

// partitions returns how many partitions a topic has.
func (m *memory) partitions(topic string) int32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.topics[topic]; t != nil {
		return int32(t.partitions)
	}
	return 1
}

// cut returns how often the connections were cut.
func (m *memory) cut() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cuts
}

// send puts m into the broker.
func (p *memProducer) send(ctx context.Context, m *driver.Message) error {
	p.published++
	if p.m.gone() && p.m.fault != "confirms without a server" {
		return driver.ErrDisconnected
	}
	if p.m.fault == "allocates for each message" {
		for range 1_000 {
			p.scrap = make([]byte, 8)
		}
	}
	if len(m.Payload) > p.m.caps.MaxPayload && p.m.caps.MaxPayload > 0 {
		switch p.m.fault {
		case "swallows what is too large":
			return nil
		case "calls the too large by another name":
			return errors.New("refused")
		}
		return driver.ErrTooLarge
	}
	s := memStored{key: bytes.Clone(m.Key), payload: bytes.Clone(m.Payload)}
	if p.m.caps.Partitions {
		n := p.m.partitions(p.c.name(m.Destination))
		h := fnv.New32a()
		_, _ = h.Write(m.Key)
		s.partition = int32(h.Sum32()&0xFFFF) % n
		if len(m.Key) == 0 {
			s.partition = int32(p.published) % n
		}
	}
	switch p.m.fault {
	case "sends the caller's bytes":
		s.payload = m.Payload
	case "ends payloads at a zero":
		if i := bytes.IndexByte(s.payload, 0); i >= 0 {
			s.payload = s.payload[:i]
		}
	case "cuts at 65,535 bytes":
		s.payload = s.payload[:min(len(s.payload), 65_535)]
	case "drops keys":
		s.key = nil
	case "lets one overtake":
		if p.published == 60 {
			p.held, p.heldTopic = &s, p.c.name(m.Destination)
			return nil
		}
		if p.held != nil {
			defer func(topic string, held memStored) { _ = p.m.deliver(ctx, topic, held) }(p.heldTopic, *p.held)
			p.held = nil
		}
	}
	return p.m.deliver(ctx, p.c.name(m.Destination), s)
}

func (p *memProducer) Flush(ctx context.Context) error {
	if p.m.fault == "flushes too early" {
		return nil
	}
	for {
		p.mu.Lock()
		idle := len(p.pending) == 0 && !p.working
		p.mu.Unlock()
		if idle {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

func (p *memProducer) Close(context.Context) error {
	p.mu.Lock()
	again := p.closed
	p.closed = true
	switch p.m.fault {
	case "abandons at Close":
		p.pending = nil
	case "closes with errors of its own":
		for _, m := range p.pending {
			p.done.Complete(m, errors.New("bye"))
		}
		p.pending = nil
	}
	p.mu.Unlock()
	if again && p.m.fault == "closes only once" {
		return errors.New("closed already")
	}
	p.poke()
	<-p.stopped
	return nil
}
