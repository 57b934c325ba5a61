package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/fleet/agent"
	"github.com/weirmq/weir/internal/fleet/fleettest"
	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/measure"
)

// tooFew waits in vain for this many agents, until the error says all that it is to
// say: an agent that is slow to answer is told of later.
func (w *world) tooFew(t *testing.T, n int, want ...string) {
	t.Helper()
	must.Until(t, fmt.Sprintf("being told %q", want), func() bool {
		err := w.Await(t.Context(), Want{Agents: n}, 3*time.Second)
		if !errors.Is(err, ErrTooFew) {
			t.Fatalf("%v, want ErrTooFew", err)
		}
		for _, x := range want {
			if !strings.Contains(err.Error(), x) {
				t.Logf("%q does not say %q", err, x)
				return false
			}
		}
		return true
	})
}

func TestAgentOfOtherVersionIsRejected(t *testing.T) {
	t.Parallel()
	_, drivers := memoryDrivers(t)
	w := open(t, drivers, Options{})
	w.agent(t, "old", func(a *agent.Agent) { a.Version = "v1.0.0" })
	w.agent(t, "same")
	w.await(t, 1)
	w.tooFew(t, 2, "1 of 2", "same on ", "old on ", "v1.0.0", ownVersion)
	// One that lies about it until it is at the door is refused there either.
	w.door(t, "other", "v1.0.0", "", admission.ErrVersion.Error(), "v1.0.0", ownVersion)
}

// door asks to be let in as an agent does, and checks what is answered.
func (w *world) door(t *testing.T, name, version, nonce string, want ...string) {
	t.Helper()
	nc, id := dial(t, w.address(t), "agent "+name)
	self := must.Get(admission.NewSelf())(t)
	ask := func(what string, b []byte) (a protocol.Answer) {
		m := must.Get(nc.Request(protocol.DoorSubject(w.session, id, what), b, patience))(t)
		must.Do(t, protocol.Decode(m.Data, protocol.SmallSize, &a))
		return a
	}
	if nonce == "" {
		nonce = ask("challenge", protocol.Encode(protocol.Challenge{Agent: name})).Nonce
	}
	j := admission.Request{Agent: name, Version: version, Nonce: nonce, About: protocol.Encode(protocol.About{Name: name, Instance: id, Key: self.Key(), Version: version})}
	j.Prove(w.address(t).Token)
	b := must.Get(j.Encode())(t)
	a := ask("join", b)
	for _, x := range want {
		if !strings.Contains(a.Error, x) {
			t.Errorf("answered %q, want %q in it", a.Error, x)
		}
	}
	if len(want) == 0 && a.Error != "" {
		t.Errorf("answered %q", a.Error)
	}
	if len(want) == 0 { // what was said then does not serve again
		if a := ask("join", b); !strings.Contains(a.Error, admission.ErrReplayed.Error()) {
			t.Errorf("a join that was made before is answered %q", a.Error)
		}
	}
}

func TestJoinIsSingleUse(t *testing.T) {
	t.Parallel()
	_, drivers := memoryDrivers(t)
	w := open(t, drivers, Options{})
	w.door(t, "a", ownVersion, "")
	w.diary.Has(t, "join refused", admission.ErrReplayed.Error())
	w.door(t, "b", ownVersion, strings.Repeat("0", 32), admission.ErrReplayed.Error())
}

func TestAgentNamesAreUnique(t *testing.T) {
	t.Parallel()
	m, drivers := memoryDrivers(t)
	w := open(t, drivers, Options{})
	first := w.agent(t, "a")
	w.await(t, 1)
	instance := w.of(t, "a").Instance
	w.agent(t, "a")
	w.diary.Has(t, "join refused", "already has the name a ")
	// The other agent is not involved in a run, and does not delay it.
	exact(t, w.do(t, runOf(t, drivers, "run", "load: {rate: 1000/s}\nwarmup: 0s\nmeasure: 2500ms"+common)).Raw, 2500)
	if m.opened != 1 {
		t.Errorf("%d agents did a part, want one", m.opened)
	}
	w.tooFew(t, 2, "a was refused: an agent on ")
	if got := w.Agents(); len(got) != 1 || got[0].Instance != instance {
		t.Errorf("the agents are %+v, want the first alone", got)
	}
	// When the first has left, the second takes its place.
	must.Do(t, first.stop())
	must.Until(t, "the second to be let in", func() bool { return w.Agents()[0].Instance != instance })
}

// An agent that is silent for some seconds, as on a busy host, keeps its place. One that leaves loses it at
// once.
func TestSilentAgentKeepsItsSlotBriefly(t *testing.T) {
	t.Parallel()
	_, drivers := memoryDrivers(t)
	w := open(t, drivers, Options{})
	p := &peer{About: protocol.About{Name: "a", Instance: "UA"}}
	if w.there(p) {
		t.Error("an agent that nothing listens for is there")
	}
	silent := must.Get(w.nc.SubscribeSync(protocol.AskSubject(p.Instance, "clock")))(t)
	for i := range missedLimit {
		if is, want := w.there(p), i+1 < missedLimit; is != want {
			t.Errorf("after %d questions without an answer: there %v; want %v", i+1, is, want)
		}
	}
	must.Do(t, silent.Unsubscribe())
	must.Get(w.nc.Subscribe(protocol.AskSubject(p.Instance, "clock"), func(m *nats.Msg) { _ = m.Respond(nil) }))(t)
	if !w.there(p) || p.missed != 0 {
		t.Errorf("it answers, and is not there (%d missed)", p.missed)
	}
}

// The first coordinator has the agents until it leaves.
func TestTwoCoordinatorsAtOneServer(t *testing.T) {
	t.Parallel()
	m, drivers := memoryDrivers(t)
	address := must.Get(admission.Parse(server(t)))(t)
	first := open(t, drivers, Options{Server: address})
	for _, name := range []string{"a", "b"} {
		first.agent(t, name)
	}
	first.await(t, 2)
	second := open(t, drivers, Options{Server: address})
	second.tooFew(t, 1, "0 of 1", "a on ", "b on ", "belongs to another coordinator")
	const yaml = "topology: {producers: 2, consumers: 2}\nload: {rate: 1000/s}\nwarmup: 0s\nmeasure: 500ms" + common
	if _, err := second.Do(t.Context(), nil, runOf(t, drivers, "none", yaml)); err == nil {
		t.Error("a run by nobody was done")
	}
	exact(t, first.do(t, runOf(t, drivers, "one", yaml)).Raw, 500)
	m.marks()
	first.cancel() // its beacon ends
	second.await(t, 2)
	exact(t, second.do(t, runOf(t, drivers, "two", yaml)).Raw, 500)
}

// An agent executes one run at a time: it refuses a second, even from the same coordinator, without
// disturbing the first.
func TestBusyAgentRejectsSecondRun(t *testing.T) {
	t.Parallel()
	_, drivers := memoryDrivers(t)
	w := fleetOf(t, 2, drivers)
	const yaml = "topology: {producers: 2, consumers: 2}\nload: {rate: 100/s}\nwarmup: 0s\nmeasure: 1h" + common
	stop := make(chan struct{})
	type outcome struct {
		done *Done
		err  error
	}
	first := make(chan outcome, 1)
	r := runOf(t, drivers, "first", yaml)
	begun := make(chan struct{})
	var once sync.Once
	r.Config.OnInterval = func(iv *measure.Interval) {
		if iv.Counters[measure.Measure].Sent > 0 {
			once.Do(func() { close(begun) })
		}
	}
	go func() {
		done, err := w.Do(t.Context(), stop, r)
		first <- outcome{done, err}
	}()
	must.Until(t, "the first run to begin", func() bool { return w.busy(t, "a") == "first" && w.busy(t, "b") == "first" })
	must.Until(t, "being told that the agents are busy", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // it would be asked again for jobLimit
		defer cancel()
		done, err := w.Do(ctx, nil, runOf(t, drivers, "second", yaml))
		if done != nil || err == nil {
			t.Fatalf("%v, %v; want the second run refused", done, err)
		}
		return strings.Contains(err.Error(), "busy with run first")
	})
	select {
	case <-begun: // or there is nothing to count
	case <-time.After(patience):
		t.Fatal("the first run sends nothing")
	}
	close(stop)
	select {
	case o := <-first:
		if o.err != nil {
			t.Fatal(o.err)
		}
		if m := o.done.Raw.All; m.Sent == 0 || m.Delivered != m.Sent {
			t.Errorf("%+v", m)
		}
	case <-time.After(patience):
		t.Fatal("the first run did not end")
	}
}

// An agent waits for a server that is not there yet, joins, and rejoins after server and coordinator were
// away.
func TestAgentWaitsAndReconnects(t *testing.T) {
	t.Parallel()
	_, drivers := memoryDrivers(t)
	w := open(t, drivers, Options{})
	listen := w.hub.Addr()
	address := w.address(t)
	w.Close()
	var notes fleettest.Diary
	late := &world{Fleet: w.Fleet, drivers: drivers, diary: w.diary, agents: map[string]*running{}}
	a := late.agent(t, "a", func(a *agent.Agent) {
		a.Address = address
		a.Note = func(format string, args ...any) { _, _ = fmt.Fprintf(&notes, format+"\n", args...) }
	})
	defer func() {
		if err := a.stop(); err != nil {
			t.Error(err)
		}
	}()
	notes.Has(t, "no coordinator answers at")
	for range 2 {
		f, err := Open(t.Context(), Options{Listen: listen, Keep: w.o.Keep, Dir: t.TempDir(), Version: ownVersion, Log: w.diary.Log()})
		if err != nil {
			t.Fatal(err)
		}
		err = f.Await(t.Context(), Want{Agents: 1}, patience)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
}
