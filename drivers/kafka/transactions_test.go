//go:build unix

package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/kafkaconn"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/internal/must"
)

// together makes a producer accept messages at once, so that they share transactions.
func together(t *testing.T, p driver.Producer, ms ...*driver.Message) {
	t.Helper()
	x := p.(*transactor)
	x.turn.Lock()
	x.queue, x.open = append(x.queue, ms...), x.open+len(ms)
	x.turn.Changed()
	x.turn.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must.Do(t, p.Flush(ctx))
}

func numbered(destination string, from, n int) (ms []*driver.Message) {
	for i := from; i < from+n; i++ {
		ms = append(ms, &driver.Message{Destination: destination, Payload: fmt.Appendf(nil, "%06d", i)})
	}
	return ms
}

// inTheLog returns the messages in a single-partition topic, committed or not, and the numbers of
// committed and aborted transactions.
func inTheLog(t *testing.T, c *conn, topic string) (texts []string, commits, aborts int) {
	t.Helper()
	ends := must.Get(c.Link.Offsets(t.Context(), topic, kafkaconn.Latest))(t)
	if ends[0] == 0 {
		return nil, 0, 0
	}
	link := must.Get(c.Connect(t.Context(), c.Run, "reader", nil, kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}})))(t)
	defer link.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for next := int64(0); next < ends[0]; {
		fetches := link.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatal(ctx.Err())
		}
		fetches.EachRecord(func(r *kgo.Record) {
			next = r.Offset + 1
			if !r.Attrs.IsControl() {
				texts = append(texts, string(r.Value))
				return
			}
			key := kmsg.ControlRecordKey{}
			if err := key.ReadFrom(r.Key); err != nil {
				t.Error(err)
			}
			if key.Type == kmsg.ControlRecordKeyTypeCommit {
				commits++
			} else {
				aborts++
			}
		})
	}
	return texts, commits, aborts
}

// abortedUnseen makes the broker refuse one message of a transaction over two topics.
func abortedUnseen(t *testing.T, s *served.System) {
	c := open(t, s.Address, driver.Run{ID: "abort"}, map[string]string{"transaction": "1000"}, driver.Destination{Name: "a"}, driver.Destination{Name: "b"})
	g := newGather()
	spec := driver.ConsumerSpec{Subscription: "s", Destinations: []string{"a", "b"}}
	consume(t, c, spec, g)
	f := &fates{}
	p := must.Get(c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"a", "b"}, InFlight: 1000}, f))(t)
	// Unknown to the producer, which would otherwise refuse the message itself.
	alter := kmsg.NewPtrIncrementalAlterConfigsRequest()
	of := kmsg.NewIncrementalAlterConfigsRequestResource()
	of.ResourceType, of.ResourceName = kmsg.ConfigResourceTypeTopic, "weir.abort.b"
	setting := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	setting.Name, setting.Value = "max.message.bytes", kmsg.StringPtr("1000")
	of.Configs = append(of.Configs, setting)
	alter.Resources = append(alter.Resources, of)
	must.Get(alter.RequestWith(t.Context(), c.Link))(t)
	large := &driver.Message{Destination: "b", Payload: make([]byte, 5000)}
	eventually(t, "a broker that refuses", func() bool { // the change may take a moment
		together(t, p, large)
		f.Lock()
		defer f.Unlock()
		errs := f.Errs[large]
		return errors.Is(errs[len(errs)-1], driver.ErrTooLarge)
	})
	seen := g.All(func(g *gather) bool { return len(g.Got) > 0 })
	before, _, _ := inTheLog(t, c, "weir.abort.a")
	small := numbered("a", 0, 20)
	together(t, p, append(small, large)...)
	for _, m := range small {
		if errs := f.Errs[m]; len(errs) != 1 || !errors.Is(errs[0], errAborted) || errors.Is(errs[0], driver.ErrTooLarge) {
			t.Fatalf("%s completed with %v; want the abort, as another message failed", m.Payload, errs)
		}
	}
	if errs := f.Errs[large]; !errors.Is(errs[len(errs)-1], driver.ErrTooLarge) {
		t.Errorf("the large message completed with %v", errs)
	}
	var texts []string
	eventually(t, "the abort", func() bool { // continues after the messages have failed
		var aborts int
		texts, _, aborts = inTheLog(t, c, "weir.abort.a")
		return aborts == 1
	})
	if len(texts) != len(before)+20 {
		t.Errorf("the log holds %d messages; want 20 more than the %d from before", len(texts), len(before))
	}
	after := numbered("a", 100, 20)
	together(t, p, after...)
	for _, m := range after {
		if errs := f.Errs[m]; len(errs) != 1 || errs[0] != nil {
			t.Fatalf("%s, after the abort, completed with %v", m.Payload, errs)
		}
	}
	eventually(t, "what was committed", func() bool { return g.All(func(g *gather) bool { return len(g.Got) >= 20 && g.Settlements >= 20 }) })
	for _, text := range g.Got {
		if len(text) == 6 && text < "000100" {
			t.Errorf("%s was delivered, which was aborted (anything before: %v)", text, seen)
		}
	}
	eventually(t, "nothing left", func() bool {
		n, err := c.Backlog(t.Context(), "s", spec.Destinations)
		return err == nil && n == 0
	})
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func transactionSizes(t *testing.T, s *served.System) {
	for _, settle := range []driver.Settle{driver.SettleEach, driver.SettleBatch, driver.SettleAuto} {
		t.Run(settle.String(), func(t *testing.T) {
			c := open(t, s.Address, driver.Run{ID: "sizes"}, map[string]string{"transaction": "10"}, driver.Destination{Name: "d"})
			f := &fates{}
			p := must.Get(c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"d"}}, f))(t)
			together(t, p, numbered("d", 0, 95)...)
			must.Do(t, errors.Join(f.Wrong(95), p.Close(t.Context())))
			if texts, commits, aborts := inTheLog(t, c, "weir.sizes.d"); len(texts) != 95 || commits != 10 || aborts != 0 {
				t.Errorf("%d messages in %d transactions, %d aborted; want 95 in 10", len(texts), commits, aborts)
			}
			g := newGather()
			spec := driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}, Settle: settle}
			stop := consume(t, c, spec, g)
			eventually(t, "95 messages", func() bool { return g.All(func(g *gather) bool { return len(g.Got) >= 95 }) })
			eventually(t, "the last end", func() bool {
				if settle == driver.SettleAuto {
					stop() // commits at the end
				}
				n, err := c.Backlog(t.Context(), "s", spec.Destinations)
				return err == nil && n == 0
			})
			if settle != driver.SettleAuto { // the client learns of the server's commit with a delay
				eventually(t, "95 settled", func() bool { return g.All(func(g *gather) bool { return g.Settlements >= 95 }) })
			}
			if g.All(func(g *gather) bool { return len(g.Got) != 95 || settle != driver.SettleAuto && g.Settlements != 95 }) {
				t.Errorf("%d messages, %d settled; want 95", len(g.Got), g.Settlements)
			}
			if facts, err := c.Facts(t.Context()); err != nil || facts.Settings["isolation.level"] != "read_committed" || facts.Settings["transaction"] != "10" {
				t.Errorf("facts %+v, %v", facts, err)
			}
		})
	}
}

// openTransaction keeps a transaction of another client open.
func openTransaction(t *testing.T, s *served.System) {
	c := open(t, s.Address, driver.Run{ID: "open"}, map[string]string{"transaction": "10"}, driver.Destination{Name: "d"})
	g := newGather()
	consume(t, c, driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}}, g)
	theirs := must.Get(kgo.NewClient(kgo.SeedBrokers(s.Address...), kgo.TransactionalID("theirs")))(t)
	defer theirs.Close()
	must.Do(t, theirs.BeginTransaction())
	must.Do(t, theirs.ProduceSync(t.Context(), &kgo.Record{Topic: "weir.open.d", Value: []byte("000000")}).FirstErr())
	publish(t, c, "d", 1, 5, nil) // confirmed: committed, after an uncommitted message
	if g.All(func(g *gather) bool { return len(g.Got) > 0 }) {
		t.Error("messages came from behind a transaction that is open")
	}
	must.Do(t, theirs.EndTransaction(t.Context(), kgo.TryCommit))
	eventually(t, "all", func() bool { return g.All(func(g *gather) bool { return len(g.Got) == 6 }) })
	if g.Got[0] != "000000" {
		t.Errorf("%v", g.Got)
	}
}

// transactionsThroughAKill kills the broker during transactions.
func transactionsThroughAKill(t *testing.T, s *served.System) {
	c := open(t, s.Address, driver.Run{ID: "tkill"}, map[string]string{"transaction": "20"}, driver.Destination{Name: "d"})
	f := &fates{}
	p := must.Get(c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"d"}, InFlight: 5000}, f))(t)
	restarted := make(chan error, 1)
	go func() {
		time.Sleep(200 * time.Millisecond)
		for _, pid := range s.Pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				restarted <- err
				return
			}
		}
		restarted <- s.Restart()
	}()
	sent := 0
	for running := true; running && sent < 4000; {
		for _, m := range numbered("d", sent, 3) {
			p.Publish(t.Context(), m)
			sent++
		}
		select {
		case err := <-restarted:
			if running = false; err != nil {
				t.Fatal(err)
			}
		case <-time.After(10 * time.Millisecond):
		}
	}
	for _, m := range numbered("d", sent, 50) {
		p.Publish(t.Context(), m)
		sent++
	}
	eventually(t, "all completed", func() bool { return f.Len() == sent })
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if committed, _, _ := fatesHold(t, c, f); committed < 50 {
		t.Errorf("%d of %d messages were committed; want the last 50 at the least", committed, sent)
	}
}

// fatesHold consumes destination d and compares deliveries with how the messages completed.
func fatesHold(t *testing.T, c *conn, f *fates) (committed, aborted, doubtful int) {
	t.Helper()
	g := newGather()
	consume(t, c, driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}}, g)
	eventually(t, "nothing left", func() bool {
		n, err := c.Backlog(t.Context(), "s", []string{"d"})
		return err == nil && n == 0
	})
	g.Lock()
	defer g.Unlock()
	came := map[string]int{}
	for _, text := range g.Got {
		came[text]++
	}
	for m, errs := range f.Errs {
		text := string(m.Payload)
		switch {
		case len(errs) != 1:
			t.Errorf("%s completed %d times", text, len(errs))
		case errs[0] == nil:
			if committed++; came[text] != 1 {
				t.Errorf("%s was confirmed, and came %d times", text, came[text])
			}
		case errors.Is(errs[0], errAborted):
			if aborted++; came[text] != 0 {
				t.Errorf("%s was aborted, and came: %v", text, errs[0])
			}
		case errors.Is(errs[0], driver.ErrTimeout), errors.Is(errs[0], driver.ErrDisconnected), errors.Is(errs[0], driver.ErrUnreachable):
			doubtful++
		default:
			t.Errorf("%s failed with %v; want an error that says that it may have arrived, or not", text, errs[0])
		}
	}
	t.Logf("%d committed, %d aborted, %d doubtful", committed, aborted, doubtful)
	return committed, aborted, doubtful
}

// transactionsThroughAPause stops the broker for longer than a message may take.
func transactionsThroughAPause(t *testing.T, s *served.System) {
	c := open(t, s.Address, driver.Run{ID: "tpause"}, map[string]string{"transaction": "20", "delivery-timeout": "3s"}, driver.Destination{Name: "d"})
	f := &fates{}
	p := must.Get(c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"d"}, InFlight: 5000}, f))(t)
	together(t, p, numbered("d", 0, 50)...)
	before := 0 // a host may still be too slow
	for _, errs := range f.Errs {
		if errs[0] == nil {
			before++
		}
	}
	resume := must.Get(s.Stall())(t)
	defer resume()
	for _, m := range numbered("d", 50, 100) {
		p.Publish(t.Context(), m)
	}
	eventually(t, "all completed, with nobody there", func() bool { return f.Len() == 150 })
	resume()
	sent, committed := 150, 0
	eventually(t, "a commit", func() bool { // some may fail while the brokers wake up
		more := numbered("d", sent, 10)
		sent += len(more)
		together(t, p, more...)
		for _, m := range more {
			if f.Errs[m][0] == nil {
				committed++
			}
		}
		return committed > 0
	})
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if committed, aborted, _ := fatesHold(t, c, f); committed <= before || aborted < 20 {
		t.Errorf("%d committed, %d aborted; want more than the %d from before the pause, and 20 of the transaction that met it", committed, aborted, before)
	}
}

// answering makes the fake broker refuse the ends of transactions.
func answering(f *kfake.Cluster, err *kerr.Error) (stop func()) {
	h := f.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.EndTxn}, Err: err, TopLevel: true, Count: 1})
	return h.Remove
}

func TestFailedTransactionCommitFailsItsMessages(t *testing.T) {
	for _, c := range []struct {
		says *kerr.Error
		is   error
		text string
	}{
		{kerr.TransactionAbortable, errAborted, "transaction aborted"},
		{kerr.UnknownServerError, driver.ErrTimeout, "not known"},
		{kerr.InvalidProducerEpoch, driver.ErrTimeout, "not known"},
		{kerr.TransactionalIDAuthorizationFailed, driver.ErrAuth, "not known"},
	} {
		t.Run(c.says.Message, func(t *testing.T) {
			f := fake(t)
			conn := open(t, f.ListenAddrs(), driver.Run{ID: "r"}, map[string]string{"transaction": "10"}, driver.Destination{Name: "d"})
			done := &fates{}
			p := must.Get(conn.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"d"}}, done))(t)
			stop := answering(f, c.says)
			ms := numbered("d", 0, 5)
			together(t, p, ms...)
			stop()
			for _, m := range ms {
				if errs := done.Errs[m]; len(errs) != 1 || !errors.Is(errs[0], c.is) || !strings.Contains(errs[0].Error(), c.text) {
					t.Fatalf("completed with %v; want %v with %q", errs, c.is, c.text)
				}
			}
			again := numbered("d", 5, 5)
			together(t, p, again...)
			for _, m := range again {
				if errs := done.Errs[m]; len(errs) != 1 || errs[0] != nil {
					t.Fatalf("the next transaction completed with %v", errs)
				}
			}
			if err := p.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
