package hub

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"github.com/weirmq/weir/internal/fleet/fleettest"
	"github.com/weirmq/weir/internal/must"
)

// fleet is a hub with a stream of reports and a bucket of each kind.
func fleet(t *testing.T) (h *Hub, js jetstream.JetStream, s jetstream.Stream) {
	t.Helper()
	h = begin(t, Options{Keep: fleettest.Keep(t)})
	_, js = inside(t, h)
	s = reports(t, js)
	for _, name := range []string{"mine", "other"} {
		kv := must.Get(js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: name}))(t)
		must.Get(kv.PutString(t.Context(), "k", "v"))(t)
	}
	must.Get(js.Publish(t.Context(), Reports+"a", []byte("x")))(t)
	return h, js, s
}

func TestAgentPermissions(t *testing.T) {
	h, _, s := fleet(t)
	agent, id := known(t, own(h))
	coordinator, _ := inside(t, h)
	js := must.Get(jetstream.New(agent))(t)
	report, question, order := Reports+"s.r."+id, Subjects+"ask."+id+".doctor", Orders+"agent."+id+".job"
	if _, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: report, Data: make([]byte, MaxPayload-100)}, jetstream.WithMsgID("1")); err != nil {
		t.Errorf("reporting: %v", err)
	}
	if a, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: report}, jetstream.WithMsgID("1")); err != nil || !a.Duplicate {
		t.Errorf("reporting the same again: %+v, %v; want a duplicate", a, err)
	}
	svc := must.Get(micro.AddService(agent, micro.Config{Name: "agent", Version: "1.0.0"}))(t)
	defer svc.Stop()
	for name, subject := range map[string]string{"doctor": question, "job": order} {
		must.Do(t, svc.AddEndpoint(name, micro.HandlerFunc(func(r micro.Request) { _ = r.Respond([]byte("yes")) }), micro.WithEndpointSubject(subject)))
	}
	if err := agent.Flush(); err != nil { // the hub knows of it then
		t.Fatal(err)
	}
	for _, subject := range []string{question, "$SRV.PING", "$SRV.INFO.agent"} {
		if _, err := dialed(t, own(h)).Request(subject, nil, time.Minute); err != nil {
			t.Errorf("asking %s: %v", subject, err)
		}
	}
	if _, err := coordinator.Request(order, nil, time.Minute); err != nil {
		t.Errorf("an order: %v", err)
	}
	heard := make(chan string, 8)
	for _, subject := range []string{Orders + "beacon", Orders + "all.s1", Orders + "all.s1.books.r"} {
		must.Get(agent.Subscribe(subject, func(m *nats.Msg) { heard <- m.Subject }))(t)
		must.Do(t, agent.Flush())
		must.Do(t, coordinator.Publish(subject, nil))
		select {
		case got := <-heard:
			if got != subject {
				t.Errorf("heard %s; want %s", got, subject)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s is not heard", subject)
		}
	}
	received := must.Get(coordinator.SubscribeSync(Subjects + "s1.>"))(t)
	must.Do(t, coordinator.Flush())
	for _, what := range []string{"door." + id + ".join", "clock", "leaders." + id, "standing." + id} {
		must.Do(t, agent.Publish(Subjects+"s1."+what, nil))
		if m, err := received.NextMsg(time.Minute); err != nil || m.Subject != Subjects+"s1."+what {
			t.Errorf("telling %s: %v, %v", what, m, err)
		}
	}
	if i, err := s.Info(t.Context()); err != nil || i.State.Msgs != 2 {
		t.Errorf("%+v, %v; want 2 reports", i, err)
	}
}

func TestAgentForbiddenActions(t *testing.T) {
	h, js, s := fleet(t)
	b := stand(t, own(h))
	var f fleettest.Refusals
	agent := dialed(t, own(h), f.Option())
	_, other := known(t, own(h)) // an agent that is there
	for _, subject := range []string{
		// What another agent tells, and what the coordinator orders.
		Subjects + "s1.standing." + other, Subjects + "s1.leaders." + other, Reports + "s1.r." + other, Subjects + "s1.door." + other + ".join", Subjects + "s1.door." + other + ".challenge",
		Orders + "beacon", Orders + "all.s1", Orders + "all.s1.books.r", Orders + "agent." + other + ".job", Inbox(other) + ".x", "_INBOX.x",
		"$JS.API.STREAM.CREATE.mine", "$JS.API.STREAM.UPDATE.reports", "$JS.API.STREAM.DELETE.reports", "$JS.API.STREAM.PURGE.reports",
		"$JS.API.STREAM.MSG.DELETE.reports", "$JS.API.STREAM.SNAPSHOT.reports", "$JS.API.STREAM.RESTORE.mine", "$JS.API.STREAM.DELETE.KV_mine",
		"$JS.API.CONSUMER.CREATE.reports", "$JS.API.CONSUMER.CREATE.reports.c", "$JS.API.CONSUMER.DURABLE.CREATE.reports.c", "$JS.API.CONSUMER.DELETE.reports.c",
		"$JS.API.CONSUMER.MSG.NEXT.reports.c", "$JS.API.ACCOUNT.PURGE.$G", "$JS.API.META.LEADER.STEPDOWN", "$JS.ACK.reports.c.1.1.1.1.1", "$JS.FC.x",
		"$JS.API.INFO", "$JS.API.STREAM.INFO.reports", "$JS.API.STREAM.MSG.GET.reports", "$JS.API.DIRECT.GET.reports", "$KV.other.k", "$SYS.REQ.SERVER.PING.VARZ", "$SYS.REQ.SERVER.PING.CONNZ", "$SYS.REQ.USER.INFO", "anything", "weir.fleet", "weir.other",
	} {
		must.Do(t, agent.PublishRequest(subject, "_INBOX.x", []byte("{}")))
		must.Until(t, "publishing to "+subject+" is refused", func() bool { return f.Said(`Publish to "` + subject + `"`) })
	}
	for _, subject := range []string{
		Orders + "agent." + other + ".job", Orders + "agent." + other + ".*", Orders + "agent.*.job", Orders + "agent.*.*", Orders + "agent.>", Orders + "*.>", Orders + "*", Orders + ">",
		Subjects + ">", Subjects + "s1.standing." + other, Subjects + "*.standing.*", Subjects + "s1.door." + other + ".join", Subjects + "ask." + other + ".doctor",
		Subjects + "ask.>", Reports + ">", Reports + "s1.r." + other, Inbox(other) + ".>", "_INBOX.>",
		">", "*", "$SYS.>", "$JS.>", "$JS.API.>", "$KV.>", "weir.>", "other", "$JS.EVENT.ADVISORY.>",
	} {
		must.Get(agent.SubscribeSync(subject))(t)
		must.Until(t, "subscribing to "+subject+" is refused", func() bool { return f.Said(`Subscription to "` + subject + `"`) })
	}
	untouched(t, js, s)
	b.undisturbed(t)
}

// untouched fails the test where the streams are not as fleet made them.
func untouched(t *testing.T, js jetstream.JetStream, s jetstream.Stream) {
	t.Helper()
	var names []string
	l := js.StreamNames(t.Context())
	for n := range l.Name() {
		names = append(names, n)
	}
	if i, err := s.Info(t.Context()); err != nil || len(names) != 3 || i.State.Consumers != 0 || i.State.FirstSeq != 1 {
		t.Errorf("streams %q, reports %+v, %v; want three, with nothing removed", names, i, err)
	}
}

// The hub acknowledges a report to any subject that the report names, and the coordinator answers queries
// likewise. Neither may be tricked into doing what the agent may not.
func TestAgentCannotActThroughOthers(t *testing.T) {
	h, js, s := fleet(t)
	coordinator, _ := inside(t, h)
	asked := make(chan struct{}, 100)
	if _, err := coordinator.Subscribe(Subjects+"ask.coordinator", func(m *nats.Msg) {
		_ = m.Respond(nil)                  // what some requests of JetStream are
		_ = m.Respond([]byte(`{"seq": 1}`)) // and others
		asked <- struct{}{}
	}); err != nil {
		t.Fatal(err)
	}
	must.Do(t, coordinator.Flush())
	agent, id := known(t, own(h))
	to := []string{
		"$JS.API.STREAM.PURGE.reports", "$JS.API.STREAM.DELETE.reports", "$JS.API.STREAM.DELETE.KV_other", "$JS.API.STREAM.MSG.DELETE.reports",
		"$KV.other.k", "$SYS.REQ.SERVER.PING.VARZ", "$JS.API.CONSUMER.CREATE.reports", Reports + "s.r.b",
	}
	for _, subject := range to {
		for _, via := range []string{Reports + "s.r." + id, Subjects + "ask.coordinator"} {
			must.Do(t, agent.PublishRequest(via, subject, nil))
		}
	}
	for range to {
		<-asked
	}
	must.Do(t, coordinator.Flush())
	// Whatever the hub does with it is done once it has answered later requests: JetStream works in order.
	reporter := must.Get(jetstream.New(agent))(t)
	for range 10 {
		must.Get(reporter.Publish(t.Context(), Reports+"s.r."+id, nil))(t)
		must.Get(js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{Name: "KV_later", Subjects: []string{"later"}}))(t)
	}
	must.Do(t, js.DeleteStream(t.Context(), "KV_later"))
	untouched(t, js, s)
	kv := must.Get(js.KeyValue(t.Context(), "other"))(t)
	if e, err := kv.Get(t.Context(), "k"); err != nil || e.Revision() != 1 {
		t.Errorf("a key is %v, %v; want its first value", e, err)
	}
}

func TestHubResourcesAreBounded(t *testing.T) {
	h := begin(t, Options{Keep: fleettest.Keep(t)})
	b := stand(t, own(h))
	var f fleettest.Refusals
	agent, id := known(t, own(h), f.Option())
	for i := range maxSubs + 1 {
		must.Get(agent.SubscribeSync(fmt.Sprintf("%sask.%s.%d", Subjects, id, i)))(t)
	}
	must.Until(t, "a subscription too many is refused", func() bool { return f.Said("maximum subscriptions exceeded") })
	b.undisturbed(t)
}

// Clients know that it ended, and warn only if the connection breaks unannounced.
func TestHubShutdownIsNotConnectionLoss(t *testing.T) {
	for name, tt := range map[string]struct {
		end       func(*Hub)
		says      string
		otherwise string
	}{
		"it ends":   {(*Hub).Close, "the fleet's hub has ended", "connection to the fleet lost"},
		"it breaks": {func(h *Hub) { h.server.Shutdown() }, "connection to the fleet lost", "the fleet's hub has ended"},
	} {
		t.Run(name, func(t *testing.T) {
			h := begin(t, Options{Keep: fleettest.Keep(t)})
			var said fleettest.Diary
			nc := must.Get(Dial(t.Context(), own(h), self(t), "agent-1", said.Log()))(t)
			t.Cleanup(nc.Close)
			tt.end(h)
			must.Until(t, tt.says, func() bool { return said.Lines(tt.says) == 1 })
			if said.Lines(tt.otherwise) > 0 || (said.Lines("level=WARN") > 0) != (name == "it breaks") {
				t.Errorf("the client says:\n%s", said.String())
			}
		})
	}
}

func TestHubShutdownDisconnectsAll(t *testing.T) {
	h := begin(t, Options{Keep: fleettest.Keep(t)})
	closed := make(chan struct{})
	nc := dialed(t, own(h), nats.MaxReconnects(0), nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
	h.Close()
	h.Close()
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Errorf("a connection is %v after the hub's end", nc.Status())
	}
	if _, err := h.Dial(t.Context(), "late", nil); err == nil {
		t.Error("a hub that ended was connected to")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, Options{Keep: fleettest.Keep(t), Dir: t.TempDir()}); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}
