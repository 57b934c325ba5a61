package mongodb

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

func open(t testing.TB, s *served.System, options ...string) (driver.Conn, *conn) {
	t.Helper()
	c := trial.Declared(t, Definition(), s.Options, options...)
	return c, driver.Inside(c).(*conn)
}

// put sends messages as a batch, and returns their outcomes.
func put(t testing.TB, p driver.Producer, f trial.Fates, payloads ...string) (errs []error) {
	t.Helper()
	ms := make([]*driver.Message, len(payloads))
	for i, text := range payloads {
		ms[i] = &driver.Message{Destination: "d", Payload: []byte(text)}
	}
	p.(driver.BatchProducer).PublishBatch(t.Context(), ms)
	for range ms {
		errs = append(errs, f.Next(t))
	}
	return errs
}

func consume(t testing.TB, c driver.Conn, s *trial.Log, settle driver.Settle) (end func() error) {
	t.Helper()
	_, end = trial.Run(t, c, driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}, Settle: settle}, s)
	return end
}

// TestLateMessageIsNotAcked processes a message for longer than the visibility timeout. Another
// consumer receives it as redelivered, and settles it.
func TestLateMessageIsNotAcked(t *testing.T) {
	c, _ := open(t, shared.Up(t, 1), "visibility-timeout", "1s", "receivers", "1")
	ctx, release := context.WithCancel(t.Context())
	defer release()
	var held atomic.Bool
	slow := trial.Hearing(func() {
		if held.CompareAndSwap(false, true) {
			<-ctx.Done()
		}
	})
	end := consume(t, c, slow, driver.SettleEach)
	p, f := trial.Producer(t, c, "d")
	if errs := put(t, p, f, "slow"); errs[0] != nil {
		t.Fatal(errs[0])
	}
	if !trial.Eventually(held.Load) {
		t.Fatal("nothing came")
	}
	other := trial.NewLog()
	consume(t, c, other, driver.SettleEach)
	if !other.Has(func() bool { return other.Settlements == 1 }) || len(other.Again) != 1 {
		t.Errorf("another consumer got %q, %d of them as delivered before", other.Got, len(other.Again))
	}
	release()
	if !slow.Has(func() bool { return len(slow.Unsettled) == 1 }) || !errors.Is(slow.Unsettled[0], errLate) || slow.Settlements != 0 {
		t.Errorf("the first settled %d, and was refused with %v", slow.Settlements, slow.Unsettled)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	if n := trial.Backlog(t, c); n != 0 {
		t.Errorf("%d messages are left", n)
	}
}

// TestTimesUseServerClock reads the documents. No time is before the connection, or ahead of the
// server's clock by more than the visibility timeout.
func TestTimesUseServerClock(t *testing.T) {
	c, k := open(t, shared.Up(t, 1), "visibility-timeout", "1h")
	opened := k.clock.now()
	p, f := trial.Producer(t, c, "d")
	put(t, p, f, "a", "b")
	name := must.Get(k.found(t.Context(), "d"))(t)
	read := func() (next []bson.DateTime) {
		cursor := must.Get(k.link.db.Collection(name).Find(t.Context(), bson.D{}))(t)
		var all []document
		must.Do(t, cursor.All(t.Context(), &all))
		for _, d := range all {
			next = append(next, d.NextDelivery)
		}
		return next
	}
	for _, next := range read() {
		if next < opened || next > k.clock.now() {
			t.Errorf("a message may be delivered from %v on, sent between %v and %v", next, opened, k.clock.now())
		}
	}
	ctx, release := context.WithCancel(t.Context())
	defer release()
	r := trial.Hearing(func() { <-ctx.Done() })
	consume(t, c, r, driver.SettleEach)
	r.Has(func() bool { return len(r.Got) > 0 })
	hidden := 0
	for _, next := range read() {
		if next >= opened+bson.DateTime(time.Hour.Milliseconds()) {
			hidden++
		}
	}
	if hidden == 0 {
		t.Error("none of the messages that were taken is hidden for an hour")
	}
}

// TestAutoDeletesOnReceive ends a consumer while it processes a message.
func TestAutoDeletesOnReceive(t *testing.T) {
	c, _ := open(t, shared.Up(t, 1), "receivers", "1")
	p, f := trial.Producer(t, c, "d")
	put(t, p, f, "a")
	left := make(chan uint64, 1)
	r := trial.Hearing(func() { left <- trial.Backlog(t, c) })
	consume(t, c, r, driver.SettleAuto)
	if n := <-left; n != 0 {
		t.Errorf("%d messages are left while it is delivered", n)
	}
}

// TestBatchReportsServerErrors makes the server refuse one document of a batch.
func TestBatchReportsServerErrors(t *testing.T) {
	refused := mongo.BulkWriteException{WriteErrors: []mongo.BulkWriteError{{WriteError: mongo.WriteError{Index: 1, Code: 10334, Message: "too large"}}}}
	b := &batch{ms: make([]*driver.Message, 3)}
	if err := b.each(refused); err != nil || b.errs[0] != nil || !errors.Is(b.errs[1], driver.ErrTooLarge) || b.errs[2] != nil {
		t.Errorf("%v: %v", err, b.errs)
	}
	refused = mongo.BulkWriteException{WriteConcernError: &mongo.WriteConcernError{Code: 64}}
	b = &batch{ms: make([]*driver.Message, 3)}
	if err := words.Cause(b.each(refused)); !errors.Is(err, driver.ErrTimeout) || b.errs != nil {
		t.Errorf("the write concern was not met: %v, %v", err, b.errs)
	}
	// A real batch in which some messages are refused before the call.
	c, _ := open(t, shared.Up(t, 1))
	p, f := trial.Producer(t, c, "d")
	errs := put(t, p, f, "a", strings.Repeat("x", documentMost), "b")
	if !errors.Is(errs[0], driver.ErrTooLarge) || errs[1] != nil || errs[2] != nil {
		t.Errorf("%v", errs)
	}
	if n := trial.Backlog(t, c); n != 2 {
		t.Errorf("%d messages are there", n)
	}
}

// TestGuaranteeFollowsWriteConcern checks the confirmation table, and the predicted guarantees.
func TestGuaranteeFollowsWriteConcern(t *testing.T) {
	const none, fsync = driver.StableNone, driver.StableFsync
	const one, quorum, all = driver.CopiesOne, driver.CopiesQuorum, driver.CopiesAll
	for _, c := range []struct {
		d    durability
		want driver.Confirms
	}{
		{durability{unknown: true, nodes: 1, journal: true, stored: true}, driver.Confirms{Guarantee: driver.Received, Copies: one, Stable: none}},
		{durability{nodes: 1, w: 1, stored: true}, driver.Confirms{Guarantee: driver.Received, Copies: one, Stable: none}},
		{durability{nodes: 1, w: 1, journal: true}, driver.Confirms{Guarantee: driver.Received, Copies: one, Stable: none}},
		{durability{nodes: 1, w: 1, journal: true, stored: true}, driver.Confirms{Guarantee: driver.Persisted, Copies: one, Stable: fsync}},
		{durability{nodes: 3, stored: true}, driver.Confirms{Guarantee: driver.Replicated, Copies: quorum, Stable: none}},
		{durability{nodes: 3, journal: true}, driver.Confirms{Guarantee: driver.Replicated, Copies: quorum, Stable: none}},
		{durability{nodes: 3, journal: true, stored: true}, driver.Confirms{Guarantee: driver.Persisted, Copies: quorum, Stable: fsync}},
		{durability{journal: true, stored: true}, driver.Confirms{Guarantee: driver.Persisted, Copies: quorum, Stable: fsync}},
		{durability{nodes: 3, w: 2, journal: true, stored: true}, driver.Confirms{Guarantee: driver.Persisted, Copies: quorum, Stable: fsync}},
		{durability{nodes: 3, w: 3, stored: true}, driver.Confirms{Guarantee: driver.Replicated, Copies: all, Stable: none}},
		{durability{nodes: 3, w: 1, journal: true, stored: true}, driver.Confirms{Guarantee: driver.Received, Copies: one, Stable: fsync}},
		{durability{nodes: 5, w: 2, stored: true}, driver.Confirms{Guarantee: driver.Received, Copies: one, Stable: none}},
		{durability{w: 2, journal: true, stored: true}, driver.Confirms{Guarantee: driver.Received, Copies: one, Stable: fsync}},
	} {
		if got := page.Confirmations.Of(c.d.known()); got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.d, got, c.want)
		}
	}
}

// TestFactsOfFerretDB uses settings that would mean more with MongoDB.
func TestFactsOfFerretDB(t *testing.T) {
	s := shared.Up(t, 1)
	for _, w := range []string{"1", majority} {
		for _, atomic := range []string{"no", "yes"} {
			c, _ := open(t, s, "w", w, "journal", "yes", "atomic", atomic)
			f := trial.Facts(t, c)
			if f.Confirms != (driver.Confirms{Guarantee: driver.Received}) || f.Name != "FerretDB" || f.Version != "v1.24.2" || f.Nodes != 1 ||
				f.Settings["w"] != w+" (ignored)" || f.Settings["findAndModify"] != "not atomic" {
				t.Errorf("w %s: %+v", w, f)
			}
		}
	}
}

func TestErrorsBeforeConnecting(t *testing.T) {
	mistakes := []trial.Mistake{
		{Name: "a user without a password", Set: []string{"user", "me"}, Option: "user"},
		{Name: "a database", Set: []string{"database", "a b"}, Option: "database"},
		{Name: "no database for users", Set: []string{"auth-database", ""}, Option: "auth-database"},
	}
	for _, w := range []string{"most", "0", "-1", "51", ""} {
		mistakes = append(mistakes, trial.Mistake{Name: "w " + w, Set: []string{"w", w}, Option: "w", Says: "(majority, or a number from 1 to 50)"})
	}
	trial.Refuses(t, Definition(), nil, mistakes...)
}

func TestExistingCollections(t *testing.T) {
	s := shared.Up(t, 1)
	_, k := open(t, s)
	must.Do(t, k.link.db.CreateCollection(t.Context(), "orders.new"))
	t.Cleanup(func() { _ = k.link.db.Collection("orders.new").Drop(context.Background()) })
	c := trial.Opened(t, Definition(), driver.Run{ID: "existing", Existing: true}, s.Options)
	p, f := trial.Producer(t, c, "orders.new")
	p.Publish(t.Context(), &driver.Message{Destination: "orders.new", Key: []byte("k"), Payload: []byte("mine")})
	if err := f.Next(t); err != nil {
		t.Error(err)
	}
	// A document from another program, without a payload.
	must.Get(k.link.db.Collection("orders.new").InsertOne(t.Context(), bson.D{{Key: "next_delivery", Value: bson.DateTime(1)}}))(t)
	r := trial.NewLog()
	trial.Run(t, c, driver.ConsumerSpec{Subscription: "s", Destinations: []string{"orders.new"}}, r)
	if !r.Has(func() bool { return r.Settlements == 2 }) || !bytes.Equal([]byte(strings.Join(r.Got, "")), []byte("mine")) {
		t.Errorf("%d settled: %q, faults %v", r.Settlements, r.Got, r.Faults)
	}
	for _, bad := range []string{"", "a$b", "system.views", strings.Repeat("x", 121), "missing"} {
		trial.NoProducer(t, c, driver.ProducerSpec{Destinations: []string{bad}}, bad, driver.ErrUnsupported, "")
	}
}

// TestTimeLimits uses servers that are silent, or speak another protocol.
func TestTimeLimits(t *testing.T) {
	trial.Refuses(t, Definition(), nil, trial.Mistake{Name: "silence", Set: []string{"address", trial.Silent(t)}, Is: driver.ErrUnreachable})
	s := served.Up(t, Definition(), 1)
	c, _ := open(t, s, "timeout", "1s")
	p, f := trial.Producer(t, c, "d")
	if errs := put(t, p, f, "before"); errs[0] != nil {
		t.Fatal(errs[0])
	}
	resume := trial.Stalled(t, s.Stall)
	if errs := put(t, p, f, "during"); !errors.Is(errs[0], driver.ErrTimeout) {
		t.Errorf("a message to a server that stands still: %v", errs[0])
	}
	resume()
	if !trial.Eventually(func() bool { return put(t, p, f, "after")[0] == nil }) {
		t.Error("no message is confirmed after the server continued")
	}
}

// No package registry offers MongoDB, and FerretDB covers only the first row.
func TestPageGuaranteesMatchServers(t *testing.T) {
	served.Guarantees(t, Definition(), shared, "",
		"received: atomic: yes, journal: yes",
		"replicated: atomic: yes, w: majority",
		"replicated: atomic: yes, w: all",
		"persisted: atomic: yes, journal: yes, nodes: 1",
		"persisted: atomic: yes, w: majority, journal: yes",
		"persisted: atomic: yes, w: all, journal: yes",
	)
}
