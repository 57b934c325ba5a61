package natsstreaming

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/stan.go"
	"github.com/nats-io/stan.go/pb"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

func TestAbandonedConnectionEndsUnstartedConsumer(t *testing.T) {
	s := served.Up(t, Definition(), 1)
	c := open(t, driver.Run{ID: "given-up"}, s.Options, "d")
	x := must.Get(inside(c).Consumer(t.Context(), driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}}))(t)
	x.(*consumer).Conn.Close() // like the client itself, when its credentials are refused twice
	ctx, cancel := context.WithTimeout(t.Context(), trial.Patience)
	defer cancel()
	b := trial.NewLog()
	if err := x.Run(ctx, b); !errors.Is(err, driver.ErrDisconnected) || b.IsReady() {
		t.Errorf("Run: %v, ready %v; want that the subscription is lost", err, b.IsReady())
	}
	if err := x.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestSilentlyClosedSessionIsReopened(t *testing.T) {
	s := served.Up(t, Definition(), 1)
	b := trial.NewLog()
	c := open(t, driver.Run{ID: "untold", Event: b.Event}, s.Options, "d")
	p := produce(t, c, b, "d")
	must.Do(t, p.current.Load().Close())
	p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: []byte("first")})
	b.Until(t, "a completion", func() bool { return errors.Is(b.Done["first"], driver.ErrDisconnected) })
	b.Until(t, "a new session", func() bool { return len(b.Events) > 0 })
	b.Send(t, p, "d", "second")
}

func TestForgottenGroupRestartsAtItsBeginning(t *testing.T) {
	offset := must.Get(position(driver.Position{At: driver.AtOffset, Offset: "100"}))(t)
	first := time.Now()
	for name, is := range map[string]struct {
		existing bool
		from     []stan.SubscriptionOption
		first    int64
		want     pb.StartPosition
	}{
		"weir's own":                      {want: pb.StartPosition_First},
		"weir's own, begun":               {first: first.UnixNano(), want: pb.StartPosition_First},
		"existing":                        {existing: true, want: pb.StartPosition_NewOnly},
		"existing, begun":                 {existing: true, first: first.UnixNano(), want: pb.StartPosition_TimeDeltaStart},
		"existing, from an offset":        {existing: true, from: offset, want: pb.StartPosition_SequenceStart},
		"existing, from an offset, begun": {existing: true, from: offset, first: first.UnixNano(), want: pb.StartPosition_TimeDeltaStart},
	} {
		r := &running{x: &consumer{conn: &conn{run: driver.Run{Existing: is.existing}}, from: is.from}, first: is.first}
		o := stan.DefaultSubscriptionOptions
		for _, set := range r.anew() {
			must.Do(t, set(&o))
		}
		if o.StartAt != is.want || o.StartAt == pb.StartPosition_TimeDeltaStart && !o.StartTime.Equal(first) {
			t.Errorf("%s: begins at %v (%v), want %v", name, o.StartAt, o.StartTime, is.want)
		}
	}
}

func TestSilentMonitorsDoNotImplyMissingChannel(t *testing.T) {
	m := monitorsAt(t, fmt.Sprintf("http://127.0.0.1:%d", served.FreePorts(t, 1)[0]))
	if err := m.mustHave(t.Context(), "x"); !errors.Is(err, driver.ErrUnreachable) {
		t.Errorf("%v; want that none answers", err)
	}
}
