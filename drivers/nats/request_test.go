package nats

import (
	"context"
	"errors"
	"fmt"
	"testing"

	client "github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natstest"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/natsd"
)

// ask opens a requester with the options, and returns it with its completions.
func ask(t testing.TB, options map[string]string) (driver.Conn, driver.Producer, trial.Fates) {
	t.Helper()
	c := open(t, natstest.Start(t, natsd.Options{}), options)
	done := make(trial.Fates, 16)
	p := must.Get(c.(driver.Requester).Requester(t.Context(), driver.ProducerSpec{Destinations: []string{"d"}, InFlight: 16}, done))(t)
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	return c, p, done
}

// answerBy opens a responder that calls deliver.
func answerBy(t testing.TB, c driver.Conn, deliver func() error) {
	t.Helper()
	x := must.Get(c.(driver.Requester).Responder(t.Context(), driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}, Settle: driver.SettleNone}))(t)
	l := trial.NewLog()
	l.OnDeliver = func([]driver.Delivery) error { return deliver() }
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- x.Run(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, x.Close(context.Background())); err != nil {
			t.Error(err)
		}
	})
	l.WaitReady(t)
}

func TestRequestWithoutResponderFailsAtOnce(t *testing.T) {
	_, p, done := ask(t, map[string]string{"request-timeout": "1h"})
	p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: []byte("x")})
	if err := done.Next(t); !errors.Is(err, client.ErrNoResponders) || !errors.Is(err, errNobody) {
		t.Errorf("completed with %v; want that nobody answers", err)
	}
}

func TestRequestWithoutReplyTimesOut(t *testing.T) {
	c, p, done := ask(t, map[string]string{"request-timeout": "100ms"})
	answerBy(t, c, func() error { return errors.New("refused") })
	p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: []byte("x")})
	if err := done.Next(t); !errors.Is(err, driver.ErrTimeout) {
		t.Errorf("completed with %v; want ErrTimeout", err)
	}
}

func TestLateReplyAnswersNoOtherRequest(t *testing.T) {
	c, p, done := ask(t, map[string]string{"request-timeout": "100ms"})
	let, first := make(chan struct{}), true
	answerBy(t, c, func() error {
		if first {
			first = false
			<-let
		}
		return nil
	})
	early := &driver.Message{Destination: "d", Payload: []byte("early")}
	p.Publish(t.Context(), early)
	if err := done.Next(t); !errors.Is(err, driver.ErrTimeout) {
		t.Fatalf("the first request completed with %v; want ErrTimeout", err)
	}
	for n := range 100 { // on a host slow enough for this one to be late too, another follows
		text := fmt.Sprintf("later %d", n)
		later := &driver.Message{Destination: "d", Payload: []byte(text)}
		p.Publish(t.Context(), later) // in the slot of the previous request, whose reply arrives now
		if n == 0 {
			close(let)
		}
		err := done.Next(t)
		if errors.Is(err, driver.ErrTimeout) {
			continue
		}
		if err != nil || string(later.Reply) != text || early.Reply != nil {
			t.Errorf("a later request completed with %v and the reply %q; want its own", err, later.Reply)
		}
		return
	}
	t.Error("none of 100 later requests was answered in time")
}

func TestReplyRaisesGuarantee(t *testing.T) {
	c, _, _ := ask(t, nil)
	f, err := c.Facts(t.Context())
	if err != nil || f.Confirms.Guarantee != driver.Received || f.Settings["confirm"] != "reply" {
		t.Errorf("%+v, %v; want the guarantee received, by the reply", f, err)
	}
}
