package mongodb

import (
	"context"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/trial"
)

// TestAMessageCostsWhatTheClientDoes compares messages with the client's own calls.
func TestAMessageCostsWhatTheClientDoes(t *testing.T) {
	c, k := open(t, shared.Up(t, 1), "senders", "1", "receivers", "1")
	p, f := trial.Producer(t, c, "d")
	x, err := k.Consumer(t.Context(), driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = x.Close(context.Background()) }()
	name, _ := k.name("d")
	own, ctx := k.link.db.Collection(name), t.Context()
	m := &driver.Message{Destination: "d", Payload: make([]byte, 64)}
	feed := x.(blocking.Feeds)[0].(*feed)
	for _, test := range []struct {
		name          string
		most          float64 // more than the client's own calls
		ours, plainly func()
	}{
		// The context of a call, the document, and what stands for it in the call.
		{"sending", 15, func() { p.Publish(ctx, m); <-f }, func() {
			_, _ = own.InsertOne(ctx, &document{ID: bson.NewObjectID(), Payload: m.Payload})
		}},
		// A message is taken, and settled by two fields where the plain call has one.
		{"taking and settling", 80, func() {
			m, err := feed.take(ctx)
			if err != nil || m == nil {
				t.Fatal(m, err)
			}
			feed.handOver(ctx, m, trial.NewLog())
		}, func() {
			raw, err := own.FindOneAndUpdate(ctx, bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "token", Value: 1}}}}).Raw()
			if err != nil {
				t.Fatal(err)
			}
			_, _ = own.DeleteOne(ctx, bson.D{{Key: "_id", Value: raw.Lookup("_id")}})
		}},
	} {
		ours, plainly := allocs(test.ours), allocs(test.plainly)
		if ours > plainly+test.most {
			t.Errorf("%s: %v allocations a message, %v of the client's own; want %v more at most", test.name, ours, plainly, test.most)
		}
		t.Logf("%s: %v allocations a message, %v of the client's own", test.name, ours, plainly)
	}
}

// allocs is the least of a few counts: what else the process does adds to one.
func allocs(f func()) float64 {
	least := testing.AllocsPerRun(20, f)
	for range 3 {
		least = min(least, testing.AllocsPerRun(20, f))
	}
	return least
}
