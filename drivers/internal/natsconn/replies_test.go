package natsconn

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/must"
)

// TestALateReplyEndsNoOtherRequest sends two replies to one request, the first not marked as the
// only one. The second must not end the request that now occupies the slot.
func TestALateReplyEndsNoOtherRequest(t *testing.T) {
	take, answer, ended := asking(t, func(m *nats.Msg) bool { return string(m.Data) == "stored" })
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

// TestASecondConfirmationEndsNoOtherRequest covers a stream leader change: the old leader stores
// and confirms a message, and the new leader confirms it again. The duplicate must not confirm
// another message.
func TestASecondConfirmationEndsNoOtherRequest(t *testing.T) {
	take, answer, ended := asking(t, nil)
	a := take("a")
	answer(a, "stored as 1")
	if got := <-ended; got != (end{"a", "stored as 1"}) {
		t.Fatalf("%v ended first", got)
	}
	b := take("b")
	answer(a, "stored as 1")
	answer(b, "stored as 2")
	if got := <-ended; got != (end{"b", "stored as 2"}) {
		t.Errorf("the second request ended with %v, which was an answer to the first", got)
	}
}

// An end is a request that ended with a reply.
type end struct{ request, reply string }

// asking makes a table with one slot. It returns a function that makes a request and returns its
// reply subject, one that replies to a subject, and the channel of ended requests.
func asking(t *testing.T, only func(*nats.Msg) bool) (take func(request string) string, answer func(to, text string), ended <-chan end) {
	t.Helper()
	o := Defaults()
	o.Address, o.User, o.Password = []string{run(t)}, "ann", driver.NewSecret("right", "")
	link := must.Get(Connect(t.Context(), &o, driver.Run{ID: "t"}, "producer 0", Events{}))(t)
	t.Cleanup(func() { _ = link.Close(context.Background()) })
	ends := make(chan end, 10)
	r := must.Get(NewReplies(link, 1, time.Minute, func(request string, m *nats.Msg, err error) {
		if err == nil {
			ends <- end{request, string(m.Data)}
		}
	}, only))(t)
	t.Cleanup(r.Close)
	take = func(request string) string {
		t.Helper()
		reply, _ := must.Two(r.Take(t.Context(), request, link.Epoch()))(t)
		return reply
	}
	answer = func(to, text string) {
		t.Helper()
		must.Do(t, link.Publish(to, []byte(text)))
	}
	return take, answer, ends
}
