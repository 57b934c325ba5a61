package nsq

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/clientpath"
	"github.com/weirmq/weir/drivers/internal/served"
)

// by opens a producer of the destination d by a path, and fails where it is of another.
func by(t *testing.T, c driver.Conn, path string, l *log) driver.BatchProducer {
	t.Helper()
	d := driver.Destination{Name: "d", Partitions: 1, Replicas: 1}
	if err := c.Declare(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(context.Background(), d) })
	p, err := c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"d"}, InFlight: 100}, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	if _, vendor := p.(*vendorProducer); vendor != (path == clientpath.Vendor) {
		t.Fatalf("client-path %s publishes by %T", path, p)
	}
	return p.(driver.BatchProducer)
}

// TestBothPathsPutTheSameBytesOnTheServer reuses one payload's memory for all
// messages, as the engine does: a publisher that read it after the end would send
// others.
func TestBothPathsPutTheSameBytesOnTheServer(t *testing.T) {
	s := served.Up(t, Definition(), 1)
	const n = 40
	var want []string
	for i := range n {
		want = append(want, string(bytes.Repeat([]byte{byte(i), 0, 0xff}, i+1)))
	}
	slices.Sort(want) // nsqd keeps no order
	for _, path := range []string{clientpath.Weir, clientpath.Vendor} {
		for _, batch := range []int{1, 4} {
			t.Run(path, func(t *testing.T) {
				s.Options["client-path"] = []string{path}
				c := open(t, driver.Run{ID: "bytes"}, s.Options)
				l := newLog()
				p := by(t, c, path, l)
				consume(t, c, driver.ConsumerSpec{}, l)
				memory := make([]byte, batch*3*n)
				for some := range slices.Chunk(want, batch) {
					l.mu.Lock()
					before := len(l.errs)
					l.mu.Unlock()
					var ms []*driver.Message
					for i, w := range some {
						at := memory[i*3*n:]
						ms = append(ms, &driver.Message{Destination: "d", Payload: at[:copy(at, w)]})
					}
					if batch == 1 {
						p.Publish(t.Context(), ms[0])
					} else {
						p.PublishBatch(t.Context(), ms)
					}
					l.until(t, "the completions", func() bool { return len(l.errs) == before+len(some) })
					clear(memory)
				}
				l.until(t, "all messages", func() bool { return len(l.got) >= n })
				if err := errors.Join(l.errs...); err != nil {
					t.Error(err)
				}
				slices.Sort(l.got)
				if diff := cmp.Diff(want, l.got); diff != "" {
					t.Errorf("delivered (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestTheClientsOwnPublisherGoesOnWithTheNextServer: the client connects again only
// when it is told to.
func TestTheClientsOwnPublisherGoesOnWithTheNextServer(t *testing.T) {
	s := startServer(t, "nsqd")
	l := newLog()
	c := open(t, driver.Run{ID: "killed", Event: l.event}, map[string][]string{"address": {s.tcp}, "reconnect-wait": {"5ms"}, "client-path": {clientpath.Vendor}})
	p := by(t, c, clientpath.Vendor, l)
	if err := publish(t, p, l, "before"); err != nil {
		t.Fatal(err)
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the first may find it out, the second must know
		if err := publish(t, p, l, "while it is gone"); !errors.Is(err, driver.ErrDisconnected) {
			t.Errorf("completed with %v", err)
		}
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	l.until(t, "another connection", func() bool { return slices.Contains(l.events, "reconnect producer 0 to "+s.tcp) })
	if err := publish(t, p, l, "after"); err != nil {
		t.Error(err)
	}
}

// TestTheClientsOwnPublisherEndsThoughTheServerStandsStill: its Producer would wait.
func TestTheClientsOwnPublisherEndsThoughTheServerStandsStill(t *testing.T) {
	s := startServer(t, "nsqd")
	c := open(t, driver.Run{ID: "still"}, map[string][]string{"address": {s.tcp}, "client-path": {clientpath.Vendor}})
	l := newLog()
	p := by(t, c, clientpath.Vendor, l)
	resume, err := s.Stall()
	if err != nil {
		t.Fatal(err)
	}
	defer resume()
	const n = 100
	for range n {
		p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: []byte("x")})
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if len(l.errs) != n {
		t.Fatalf("%d of %d completed", len(l.errs), n)
	}
	for _, err := range l.errs {
		if !errors.Is(err, driver.ErrClosed) {
			t.Fatalf("completed with %v", err)
		}
	}
}
