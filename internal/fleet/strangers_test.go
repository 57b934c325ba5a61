package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/fleet/fleettest"
	"github.com/weirmq/weir/internal/fleet/hub"
	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/latch"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/schedule"
)

// Unexpected messages from somebody with access are refused and reported, without disturbing a run in
// progress.
func TestUnexpectedMessagesAreIgnored(t *testing.T) {
	t.Parallel()
	_, drivers := memoryDrivers(t)
	w := fleetOf(t, 2, drivers)
	refused := &fleettest.Refusals{}
	nc, id := dial(t, w.address(t), "stranger", refused.Option())
	r := runOf(t, drivers, "run", "topology: {producers: 4, consumers: 4, subscriptions: 2}\nload: {rate: 1000/s}\nwarmup: 500ms\nmeasure: 1h"+common)
	begun := make(chan struct{})
	var once sync.Once
	r.Config.OnInterval = func(*measure.Interval) { once.Do(func() { close(begun) }) }
	attacked := make(chan struct{}) // which ends the run, and nothing else does
	go func() {
		defer close(attacked)
		select {
		case <-begun:
			attack(t, w, nc, id)
		case <-time.After(patience):
			t.Error("the run did not begin")
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	done := must.Get(w.Do(ctx, attacked, r))(t)
	if !latch.Closed(attacked) || !done.Raw.Interrupted {
		t.Error("the run ended before it was stopped")
	}
	<-attacked
	balanced(t, done.Raw)
	if done.Raw.All.Sent == 0 {
		t.Error("the run has sent nothing")
	}
	exact(t, done.Raw, done.Raw.All.Sent+done.Raw.All.Unsent)
	a := w.of(t, "a").Instance
	for _, subject := range []string{
		protocol.BeaconSubject, protocol.OrdersPrefix + w.session, protocol.OrderSubject(a, "job"), protocol.StandingSubject(w.session, a), protocol.ReportSubject(w.session, "run", a), protocol.DoorSubject(w.session, a, "join"),
	} {
		must.Until(t, "a refusal to publish "+subject, func() bool { return refused.Said(`Publish to "` + subject + `"`) })
	}
	for _, words := range [][]string{
		{"challenge refused", "malformed"},
		{"join refused", "malformed"},
		{"join refused", "nonce was used before, or not given"},
		{"a standing was refused", "from=a", "malformed"},
		{"a standing was refused", "from=" + id, "an agent outside this run"},
		{"a report was refused", "from=a", "it is not a piece"},
		{"a report was refused", "from=a", "a report of agent b"},
		{"a report was refused", "from=a", "it is not a report"},
		{"a report was refused", "from=" + id, "an agent outside this run"},
		{"orders refused", "malformed"},
		{"job refused", "malformed"},
		{"job refused", "another coordinator"},
		{"job refused", "is for agent b"},
		{"job refused", "the agent is busy with run run"},
	} {
		w.diary.Has(t, words...)
	}
	exact(t, w.do(t, runOf(t, drivers, "next", "topology: {producers: 4, consumers: 4}\nload: {rate: 1000/s}\nwarmup: 0s\nmeasure: 500ms"+common)).Raw, 500)
}

// attack sends forbidden messages: from outside, where the server accepts only the sender's own subjects,
// and from the coordinator's side, as anyone could at an existing server.
func attack(t *testing.T, w *world, nc *nats.Conn, id string) {
	publish := func(nc *nats.Conn, subject string, b []byte) {
		if err := nc.Publish(subject, b); err != nil {
			t.Errorf("publishing to %s: %v", subject, err)
		}
	}
	valid := func(agent string) []byte {
		b, err := new(protocol.ReportEncoder).Encode(&protocol.Report{Agent: agent, Seq: 1 << 40, Final: &protocol.Final{Part: &engine.WorkerResult{}}})
		if err != nil {
			t.Error(err)
		}
		return b
	}
	a := w.of(t, "a")
	run := func(instance string) string { return protocol.ReportSubject(w.session, "run", instance) }
	failed := protocol.Encode(&protocol.Standing{Run: "run", Come: 4, Error: "it failed", Kind: "auth"})
	garbage := [][]byte{nil, []byte("{"), []byte(`{"run":5}`), bytes.Repeat([]byte("x"), 2<<20)}
	for _, nc := range []*nats.Conn{nc, w.nc} {
		for _, g := range garbage {
			for _, subject := range []string{
				protocol.DoorSubject(w.session, id, "challenge"), protocol.DoorSubject(w.session, id, "join"), protocol.DoorSubject(w.session, a.Instance, "join"), protocol.ClockSubject(w.session),
				protocol.StandingSubject(w.session, a.Instance), protocol.StandingSubject("another", a.Instance), run(a.Instance), run(id), protocol.ReportSubject("another", "run", a.Instance),
				protocol.ReportSubject(w.session, "another", a.Instance), hub.Subjects + w.session + ".unheard",
			} {
				publish(nc, subject, g)
			}
		}
		publish(nc, protocol.DoorSubject(w.session, id, "join"), []byte(`{"agent":"a","version":"`+ownVersion+`","nonce":"00000000000000000000000000000000"}`))
		publish(nc, protocol.StandingSubject(w.session, id), failed)
	}
	publish(nc, protocol.StandingSubject(w.session, a.Instance), failed) // which it would believe
	for _, piece := range protocol.Split(99, []byte("no report"), 1<<10) {
		publish(w.nc, run(a.Instance), piece)
	}
	for _, piece := range protocol.Split(98, valid("b"), 1<<10) {
		publish(w.nc, run(a.Instance), piece)
		publish(nc, run(id), piece)
	}
	for _, piece := range protocol.Split(97, valid("a"), 1<<10) {
		publish(nc, run(a.Instance), piece) // which would end its part
	}
	// The server accepts orders, and what only a coordinator says, from nobody else.
	stop := protocol.Encode(&protocol.Orders{Run: "run", Stop: true, Over: true, Cut: true, Abort: "because"})
	publish(nc, protocol.OrdersPrefix+w.session, stop)
	publish(nc, protocol.BeaconSubject, protocol.Encode(&protocol.Beacon{Session: "another", Version: ownVersion}))
	publish(nc, protocol.OrderSubject(a.Instance, "job"), sealed(t, a, goodJob()))
	if err := nc.Flush(); err != nil {
		t.Error(err)
	}
	// A coordinator that sends garbage.
	for _, g := range garbage {
		for _, subject := range []string{protocol.OrdersPrefix + w.session, protocol.BeaconSubject, protocol.OrderSubject(a.Instance, "job"), protocol.OrderSubject(a.Instance, "may"), protocol.OrderSubject(a.Instance, "holds"), protocol.DeliveriesSubject(w.session, "run")} {
			if err := w.nc.PublishRequest(subject, "elsewhere", g); err != nil {
				t.Error(err)
			}
		}
	}
	j := goodJob()
	for _, c := range []struct {
		what   string
		change func()
	}{
		{"another coordinator", func() { j.Session = "another" }},
		{"is for agent b", func() { j.Session, j.Agents = w.session, []string{"b"} }},
		{"busy with run run", func() { j.Agents = []string{"a"} }},
	} {
		c.change()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		m, err := w.nc.RequestWithContext(ctx, protocol.OrderSubject(a.Instance, "job"), sealed(t, a, j))
		cancel()
		var got protocol.Answer
		if err != nil || json.Unmarshal(m.Data, &got) != nil || !strings.Contains(got.Error, c.what) {
			t.Errorf("a job is answered by %+v, %v; want %q", got, err, c.what)
		}
	}
}

// goodJob is a job of one agent, a.
func goodJob() *protocol.Job {
	all := schedule.Part{Count: 1}
	return &protocol.Job{Session: "s1", Run: "r", Number: 5, Scenario: []byte("weir: 1"), Agents: []string{"a"}, Workers: []engine.Worker{{Producers: all, Consumers: all}}}
}
