package noop

import (
	"context"
	"errors"
	"testing"

	"github.com/weirmq/weir/driver"
)

type counter struct {
	n   int
	err error
}

func (c *counter) Complete(_ *driver.Message, err error) { c.n++; c.err = err }

func open(tb testing.TB, done driver.Completer) *producer {
	tb.Helper()
	c, err := Definition().New().Open(context.Background(), driver.Run{})
	if err != nil {
		tb.Fatal(err)
	}
	p, err := c.Producer(context.Background(), driver.ProducerSpec{}, done)
	if err != nil {
		tb.Fatal(err)
	}
	return p.(*producer)
}

func TestPublishCompletesInlineWithoutAllocating(t *testing.T) {
	var c counter
	p, m := open(t, &c), &driver.Message{}
	ms := []*driver.Message{m, m}
	n := testing.AllocsPerRun(1000, func() {
		before := c.n
		p.Publish(t.Context(), m)
		p.PublishBatch(t.Context(), ms)
		if c.n != before+3 || c.err != nil {
			t.Errorf("%d completions, the last with %v", c.n-before, c.err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestAMessageAfterCloseFails(t *testing.T) {
	var c counter
	p := open(t, &c)
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Publish(t.Context(), &driver.Message{})
	if c.n != 1 || !errors.Is(c.err, driver.ErrClosed) {
		t.Errorf("%d completions, the last with %v", c.n, c.err)
	}
}

func BenchmarkPublish(b *testing.B) {
	var c counter
	p, m := open(b, &c), &driver.Message{}
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		p.Publish(ctx, m)
	}
}
