package rabbitmq

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	client "github.com/rabbitmq/amqp091-go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/clientpath"
)

// TestBothPathsPutTheSameBytesOnTheServer reuses one payload's memory for all
// messages, as the engine does: a publisher that read it after the end would send
// others.
func TestBothPathsPutTheSameBytesOnTheServer(t *testing.T) {
	s := shared.Up(t, 1)
	const n = 40
	var want []string
	for i := range n {
		want = append(want, string(bytes.Repeat([]byte{byte(i), 0, 0xff}, i)))
	}
	for _, path := range []string{clientpath.Weir, clientpath.Vendor} {
		for _, confirm := range []string{"yes", "no"} {
			t.Run(path+", confirm "+confirm, func(t *testing.T) {
				l := newLog()
				c := open(t, driver.Run{}, options(s, "client-path", path, "confirm", confirm))
				declared(t, c, 1)
				p := producerOf(t, c, l, "d")
				if plain := p.now.Load().wire.plain; plain != (path == clientpath.Vendor) {
					t.Fatalf("client-path %s: the wire is plain: %v", path, plain)
				}
				consume(t, c, driver.ConsumerSpec{}, l)
				memory := make([]byte, 3*n)
				for i, w := range want {
					p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: memory[:copy(memory, w)]})
					l.until(t, "a completion", func() bool { return len(l.errs) == i+1 })
					clear(memory)
				}
				l.until(t, "all messages", func() bool { return len(l.got) >= n })
				if err := errors.Join(l.errs...); err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(want, l.got); diff != "" {
					t.Errorf("delivered (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestWhatTheClientTellsDecides has messages come back, and others refused: without
// the wire the client alone tells of both.
func TestWhatTheClientTellsDecides(t *testing.T) {
	s := shared.Up(t, 1)
	l := newLog()
	c := open(t, driver.Run{}, options(s, "client-path", clientpath.Vendor, "max-length", "3", "overflow", "reject-publish"))
	declared(t, c, 1)
	p := producerOf(t, c, l, "d")
	var err error
	for range 100 {
		if err = publish(t, p, l, "d", "more"); err != nil {
			break
		}
	}
	if !errors.Is(err, driver.ErrOverloaded) {
		t.Errorf("a full queue: %v", err)
	}
	by(t, c, func(ch *client.Channel) error {
		at := mustPlace(t, c, "d")
		return ch.QueueUnbind(at.queue, "", at.rest, nil)
	})
	l = newLog()
	p = producerOf(t, c, l, "d")
	const n = 100
	for i := range n {
		p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: fmt.Append(nil, i)})
	}
	l.until(t, "all completions", func() bool { return len(l.errs) == n })
	for _, err := range l.errs {
		if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "basic.return") {
			t.Fatalf("to no queue: %v", err)
		}
	}
}

// TestAWriteThatWaitsEndsWithItsContext has the server read nothing: without the
// wire Publish waits for it, and every message completes all the same.
func TestAWriteThatWaitsEndsWithItsContext(t *testing.T) {
	s := shared.Up(t, 1)
	l := newLog()
	c := open(t, driver.Run{}, options(s, "client-path", clientpath.Vendor))
	declared(t, c, 1)
	p := producerOf(t, c, l, "d")
	resume, err := s.Stall()
	if err != nil {
		t.Fatal(err)
	}
	defer resume()
	ctx, cancel := context.WithCancel(t.Context())
	waits := time.AfterFunc(time.Second, cancel)
	defer waits.Stop()
	n := 0
	for ; ctx.Err() == nil; n++ {
		p.Publish(ctx, &driver.Message{Destination: "d", Payload: make([]byte, 1<<20)})
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if len(l.errs) != n || !slices.ContainsFunc(l.errs, func(err error) bool { return errors.Is(err, ctx.Err()) }) {
		t.Errorf("%d of %d completed, %v", len(l.errs), n, l.errs)
	}
}
