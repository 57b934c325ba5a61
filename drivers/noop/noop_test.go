package noop

import (
	"context"
	"errors"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/must"
)

type counter struct {
	n   int
	err error
}

func (c *counter) Complete(_ *driver.Message, err error) { c.n++; c.err = err }

func open(tb testing.TB, done driver.Completer) *producer {
	tb.Helper()
	c := must.Get(Definition().New().Open(context.Background(), driver.Run{}))(tb)
	p := must.Get(c.Producer(context.Background(), driver.ProducerSpec{}, done))(tb)
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
	must.Do(t, p.Close(t.Context()))
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
