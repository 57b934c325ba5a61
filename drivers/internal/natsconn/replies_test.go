package natsconn

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
)

// TestALateReplyEndsNoOtherRequest: two servers that both hold themselves for a stream's
// leader both answer, the one with a refusal, the other that the message is stored. The
// second must not confirm what has the place of the first request by then.
func TestALateReplyEndsNoOtherRequest(t *testing.T) {
	o := Defaults()
	o.Address, o.User, o.Password = []string{run(t)}, "ann", driver.NewSecret("right", "")
	link, err := Connect(t.Context(), &o, driver.Run{ID: "t"}, "producer 0", Events{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = link.Close(context.Background()) }()
	type end struct{ request, reply string }
	ended := make(chan end, 10)
	r, err := NewReplies(link, 1, time.Minute, func(request string, m *nats.Msg, err error) {
		if err == nil {
			ended <- end{request, string(m.Data)}
		}
	}, func(m *nats.Msg) bool { return string(m.Data) == "stored" })
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	take := func(request string) string {
		t.Helper()
		reply, _, err := r.Take(t.Context(), request, link.Epoch())
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	answer := func(to, text string) {
		t.Helper()
		if err := link.Publish(to, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	a := take("a")
	answer(a, "refused")
	if got := <-ended; got != (end{"a", "refused"}) {
		t.Fatalf("%v ended first", got)
	}
	b := take("b")
	answer(a, "stored")
	answer(b, "stored too")
	if got := <-ended; got != (end{"b", "stored too"}) {
		t.Errorf("the second request ended with %v, which was an answer to the first", got)
	}
	c := take("c")
	answer(c, "stored")
	if got := <-ended; got != (end{"c", "stored"}) {
		t.Errorf("%v ended third", got)
	}
	if d := take("d"); d != c {
		t.Errorf("the reply subject was %s and is %s: it costs an allocation, and c ended with the only reply that it gets", c, d)
	}
}
