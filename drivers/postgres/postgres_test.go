package postgres

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

func TestProducing(t *testing.T) {
	s := served.Up(t, Definition(), 1)

	t.Run("a batch is one transaction", func(t *testing.T) {
		c := open(t, s, false, "transaction", "1")
		declare(t, c, "d")
		execute(t, s, `ALTER TABLE `+own(c.run, "d").name+` ADD CHECK (length(content) < 10)`)
		p, f := produce(t, c, "d")
		ms := []*driver.Message{}
		for _, text := range []string{"good", "much too long", "good too"} {
			ms = append(ms, &driver.Message{Destination: "d", Payload: []byte(text)})
		}
		p.PublishBatch(t.Context(), ms)
		f.Send(t, p, "d", "after")
		for _, m := range ms {
			if err, _ := f.Fate(string(m.Payload)); err == nil || !strings.Contains(err.Error(), "violates check constraint") {
				t.Errorf("%s: %v; want the fault of its batch", m.Payload, err)
			}
		}
		if n, err := c.Backlog(t.Context(), "s", []string{"d"}); n != 1 || err != nil {
			t.Errorf("%d rows, %v; want the one after the batch", n, err)
		}
	})

	t.Run("messages of one transaction each fail each for itself", func(t *testing.T) {
		c := open(t, s, false, "transaction", "1")
		declare(t, c, "d")
		execute(t, s, `ALTER TABLE `+own(c.run, "d").name+` ADD CHECK (length(content) < 10)`)
		p, f := produce(t, c, "d")
		trial.Send(t, p, "d", "a", "much too long", "b", "also much too long", "c")
		f.MustConfirm(t, "a", "b", "c")
		if err, _ := f.Fate("much too long"); err == nil {
			t.Error("a row that the table refuses was confirmed")
		}
	})

	t.Run("what waits shares a transaction, up to the option", func(t *testing.T) {
		c := open(t, s, false, "transaction", "10")
		declare(t, c, "d")
		table := own(c.run, "d").name
		execute(t, s, `CREATE VIEW "transactions" AS SELECT xmin::text AS x, count(*) AS n FROM `+table+` GROUP BY 1`)
		p, f := produce(t, c, "d")
		texts := trial.Numbered("m", 500)
		f.Send(t, p, "d", texts...)
		rows := execute(t, s, `SELECT max(n), count(*) FROM "transactions"; DROP VIEW "transactions"`)
		most, _ := strconv.Atoi(rows[0][0])
		if most > 10 || most < 2 {
			t.Errorf("%d messages in the largest of %s transactions; want 2 to 10", most, rows[0][1])
		}
	})

	t.Run("an empty payload and an empty key are not missing ones", func(t *testing.T) {
		c := open(t, s, false)
		declare(t, c, "d")
		p, f := produce(t, c, "d")
		p.Publish(t.Context(), &driver.Message{Destination: "d", Key: []byte{}})
		trial.Flush(t, p)
		f.MustConfirm(t, "")
		keys := make(chan []byte, 1)
		x := consume(t, c, driver.ConsumerSpec{Destinations: []string{"d"}}, func(ds []driver.Delivery) error {
			keys <- slices.Clone(ds[0].Key)
			return nil
		})
		if key := <-keys; key == nil || len(key) > 0 {
			t.Errorf("key %v; want an empty one", key)
		}
		_ = x
	})

	t.Run("what is not the producer's is refused", func(t *testing.T) {
		c := open(t, s, false)
		declare(t, c, "d")
		p, f := produce(t, c, "d")
		trial.Send(t, p, "other", "x")
		if err, _ := f.Fate("x"); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("error %v", err)
		}
	})

	t.Run("a standby that nobody waits for any more fails the message", func(t *testing.T) {
		execute(t, s, `ALTER SYSTEM SET synchronous_standby_names = 'ghost'`)
		execute(t, s, `SELECT pg_reload_conf()`)
		t.Cleanup(func() {
			execute(t, s, `ALTER SYSTEM RESET synchronous_standby_names`)
			execute(t, s, `SELECT pg_reload_conf()`)
		})
		local := open(t, s, false, "synchronous-commit", "local")
		declare(t, local, "d")
		cfg := local.cfg
		cfg.SynchronousCommit = "on"
		k := &conn{cfg: cfg, run: local.run}
		p, f := produce(t, k, "d")
		text := "x"
		p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: []byte(text)})
		if !trial.Eventually(func() bool {
			if _, ok := f.Fate(text); ok { // the server has not reread its configuration yet
				text += "x"
				p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: []byte(text)})
			}
			return len(execute(t, s, `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`)) > 0
		}) {
			t.Fatal("the commit does not wait for its standby")
		}
		trial.Flush(t, p)
		if err, _ := f.Fate(text); !errors.Is(err, driver.ErrTimeout) || !strings.Contains(err.Error(), "gave up waiting for its standbys") {
			t.Errorf("error %v", err)
		}
	})

	t.Run("a silent server is a timeout, and then a reconnect", func(t *testing.T) {
		events := make(chan string, 10)
		run := driver.Run{Event: func(kind, text string) { events <- kind + " " + text }}
		c := driver.Inside(trial.Opened(t, Definition(), run, s.Options, "timeout", "2s", "reconnect-wait", "20ms")).(*conn)
		declare(t, c, "d")
		p, f := produce(t, c, "d")
		resume := trial.Stalled(t, s.Stall)
		trial.Send(t, p, "d", "x")
		resume()
		if err, _ := f.Fate("x"); !errors.Is(err, driver.ErrTimeout) {
			t.Errorf("error %v; want a timeout", err)
		}
		select {
		case e := <-events:
			if e != "reconnect producer 0" {
				t.Errorf("event %q", e)
			}
		case <-time.After(trial.Patience):
			t.Fatal("no reconnect")
		}
		f.Send(t, p, "d", "y")
	})
}

func TestConsuming(t *testing.T) {
	s := served.Up(t, Definition(), 1)

	t.Run("competing consumers each see what they get in order", func(t *testing.T) {
		c := open(t, s, false, "fetch", "7")
		declare(t, c, "d")
		p, f := produce(t, c, "d")
		var sinks []*sink
		for i := range 4 {
			sinks = append(sinks, consume(t, c, driver.ConsumerSpec{Index: i, Destinations: []string{"d"}, Settle: driver.Settle(i % 2)}, nil))
		}
		texts := trial.Numbered("m", 2000)
		f.Send(t, p, "d", texts...)
		var all []string
		if !trial.Eventually(func() bool {
			all = nil
			for _, x := range sinks {
				got, _, _, _ := x.look()
				all = append(all, got...)
			}
			return len(all) >= len(texts)
		}) {
			t.Fatalf("%d of %d were delivered", len(all), len(texts))
		}
		for i, x := range sinks {
			if got, _, _, faults := x.look(); !slices.IsSorted(got) || len(faults) > 0 {
				t.Errorf("consumer %d: sorted %v, faults %v", i, slices.IsSorted(got), faults)
			}
		}
		slices.Sort(all)
		if diff := cmp.Diff(texts, all); diff != "" {
			t.Errorf("(-sent +delivered):\n%s", diff)
		}
	})

	t.Run("what is not settled in time comes again, flagged", func(t *testing.T) {
		c := open(t, s, false, "visibility-timeout", "200ms")
		declare(t, c, "d")
		p, _ := produce(t, c, "d")
		trial.Send(t, p, "d", "x")
		entered, leave := make(chan struct{}), make(chan struct{})
		slow := consume(t, c, driver.ConsumerSpec{Destinations: []string{"d"}}, func([]driver.Delivery) error {
			close(entered)
			<-leave
			return nil
		})
		<-entered
		quick := consume(t, c, driver.ConsumerSpec{Index: 1, Destinations: []string{"d"}}, nil)
		ok := trial.Eventually(func() bool { got, _, _, _ := quick.look(); return len(got) == 1 })
		close(leave)
		if _, again, _, _ := quick.look(); !ok || len(again) != 1 {
			t.Errorf("delivered again: %v, flagged %v", ok, again)
		}
		if _, again, _, _ := slow.look(); len(again) > 0 {
			t.Error("the first delivery is flagged")
		}
	})

	t.Run("what was accepted is settled on the next connection", func(t *testing.T) {
		for _, settle := range []driver.Settle{driver.SettleEach, driver.SettleBatch} {
			c := open(t, s, false, "reconnect-wait", "20ms")
			declare(t, c, "d")
			p, _ := produce(t, c, "d")
			trial.Send(t, p, "d", trial.Numbered("m", 20)...)
			cut := false
			x := consume(t, c, driver.ConsumerSpec{Destinations: []string{"d"}, Settle: settle}, func([]driver.Delivery) error {
				if !cut {
					cut = true
					execute(t, s, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '%`+c.run.ID+` consumer%'`)
				}
				return nil
			})
			if !trial.Eventually(func() bool { _, _, settled, _ := x.look(); return settled == 20 }) {
				_, _, settled, faults := x.look()
				t.Fatalf("settle %v: %d of 20 settled, faults %v", settle, settled, faults)
			}
			got, _, _, faults := x.look()
			if len(got) != 20 || len(faults) != 1 || !errors.Is(faults[0], driver.ErrDisconnected) {
				t.Errorf("settle %v: %d deliveries of 20, faults %v; want the lost connection", settle, len(got), faults)
			}
			if n, err := c.Backlog(t.Context(), "s", []string{"d"}); n != 0 || err != nil {
				t.Errorf("settle %v: %d rows are left, %v", settle, n, err)
			}
		}
	})

	t.Run("a notification ends the wait", func(t *testing.T) {
		c := open(t, s, false, "notify", "true", "poll-interval", "1h")
		declare(t, c, "d", "e")
		p, f := produce(t, c, "d", "e")
		x := consume(t, c, driver.ConsumerSpec{Destinations: []string{"d", "e"}}, nil)
		x.WaitReady(t)
		texts := trial.Numbered("m", 500)
		for i, text := range texts {
			trial.Send(t, p, []string{"d", "e"}[i%2], text)
			if !trial.Eventually(func() bool { got, _, _, _ := x.look(); return len(got) == i+1 }) {
				t.Fatalf("%d of %d delivered", i, len(texts))
			}
		}
		f.MustConfirm(t, texts...)
		if err := x.stop(); err != nil {
			t.Error(err)
		}
	})

	t.Run("settle auto leaves no row", func(t *testing.T) {
		c := open(t, s, false)
		declare(t, c, "d")
		p, _ := produce(t, c, "d")
		texts := trial.Numbered("m", 50)
		trial.Send(t, p, "d", texts...)
		x := consume(t, c, driver.ConsumerSpec{Destinations: []string{"d"}, Settle: driver.SettleAuto, Prefetch: 9}, func(ds []driver.Delivery) error {
			if len(ds) > 9 {
				t.Errorf("%d at a time; want 9 at most", len(ds))
			}
			return errors.New("refused")
		})
		trial.Eventually(func() bool { got, _, _, _ := x.look(); return len(got) >= len(texts) })
		got, again, settled, _ := x.look()
		if diff := cmp.Diff(texts, got); diff != "" || settled != 0 || len(again) > 0 {
			t.Errorf("settled %d, flagged %v (-sent +delivered):\n%s", settled, again, diff)
		}
	})

	t.Run("a table that is gone ends the subscription", func(t *testing.T) {
		c := open(t, s, false)
		declare(t, c, "d")
		x := must.Get(c.Consumer(t.Context(), driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}}))(t)
		l, ended := trial.NewLog(), make(chan error, 1)
		go func() { ended <- x.Run(t.Context(), l) }()
		l.WaitReady(t)
		execute(t, s, `DROP TABLE `+own(c.run, "d").name)
		if err := errors.Join(<-ended, x.Close(t.Context())); !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "does not exist") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("a large backlog is taken by the index", func(t *testing.T) {
		c := open(t, s, false)
		declare(t, c, "d")
		x := consume(t, c, driver.ConsumerSpec{Destinations: []string{"d"}}, nil)
		x.WaitReady(t) // its plans were made while the table was empty
		must.Do(t, x.stop())
		l := must.Get(c.cfg.connect(t.Context(), c.run, "plan", s.Address, planning))(t)
		defer l.close(t.Context())
		results := must.Get(l.Exec(t.Context(), `EXPLAIN `+own(c.run, "d").take(100, time.Second, false)).ReadAll())(t)
		var plan []string
		for _, r := range results[0].Rows {
			plan = append(plan, string(r[0]))
		}
		text := strings.Join(plan, "\n")
		for _, never := range []string{"Seq Scan", "Hash Join", "Merge Join", "Bitmap"} {
			if strings.Contains(text, never) {
				t.Errorf("the plan has a %s:\n%s", never, text)
			}
		}
		if strings.Count(text, "Index Scan") != 2 {
			t.Errorf("the plan has not two index scans:\n%s", text)
		}
	})
}
