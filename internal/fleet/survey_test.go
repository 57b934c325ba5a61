package fleet

import (
	"encoding/json"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/fleet/agent"
	"github.com/weirmq/weir/internal/fleet/fleettest"
	"github.com/weirmq/weir/internal/fleet/hub"
	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/fleet/survey"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/pace"
)

// seen are the agents of a sight, by their names.
func seen(s *survey.Sight) map[string]survey.Seen {
	all := map[string]survey.Seen{}
	for _, x := range s.Agents {
		all[x.Name] = x
	}
	return all
}

// The survey connects like an agent, and sees those that joined, a refused one, one with a wrong clock, and
// one that left.
func TestSurveyListsCoordinatorsAgents(t *testing.T) {
	t.Parallel()
	_, drivers := memoryDrivers(t)
	w := open(t, drivers, Options{})
	w.agent(t, "a", func(a *agent.Agent) { a.Labels = map[string]string{"zone": "x"} })
	w.agent(t, "wrong", func(a *agent.Agent) {
		c := must.Get(pace.NewWrongClock(pace.Wrong{Constant: 25 * time.Millisecond}))(t)
		a.Clock, a.OwnTime = func() *pace.Clock { return c }, true
	})
	gone := w.agent(t, "gone")
	w.await(t, 3)
	w.agent(t, "old", func(a *agent.Agent) { a.Version = "v0.9.0" })
	must.Do(t, gone.stop())
	var s *survey.Sight
	must.Until(t, "the agent of another version", func() bool {
		s = must.Get((&survey.Survey{Place: survey.Place{Server: w.address(t)}, Wait: time.Second, Doctor: true}).Look(t.Context()))(t)
		there := 0
		for _, x := range s.Agents {
			if !x.Gone {
				there++
			}
		}
		return len(s.Agents) == 4 && there == 3
	})
	if s.StoodIn || len(s.Coordinators) != 1 || s.Coordinators[0].Session != w.session || s.Strange != 0 {
		t.Errorf("%+v; want the one coordinator, and no stand-in", s)
	}
	all := seen(s)
	if a := all["a"]; a.Gone || a.Session != w.session || !a.Clock.Same || a.Labels["zone"] != "x" || a.Cores < 1 || a.Unasked != "" || len(a.Findings) == 0 {
		t.Errorf("the agent that joined: %+v", a)
	}
	if x := all["gone"]; !x.Gone || x.Session != w.session || x.Unasked == "" {
		t.Errorf("the agent that went: %+v", x)
	}
	if x := all["old"]; x.Gone || x.Session != "" || x.Version != "v0.9.0" {
		t.Errorf("the agent of another version: %+v", x)
	}
	r := all["wrong"].Clock
	if off := r.OffsetNS + int64(25*time.Millisecond); r.Same || !r.Known || r.BoundNS <= 0 || off > r.BoundNS+1000 || -off > r.BoundNS+1000 {
		t.Errorf("a clock that reads 25 ms too much: %+v", r)
	}
	if r.WallNS > r.BoundNS+int64(time.Second) || -r.WallNS > r.BoundNS+int64(time.Second) {
		t.Errorf("its wall clock is right: %+v", r)
	}
	names := map[string][]string{}
	for _, c := range s.Check(ownVersion) {
		names[c.Name] = append(names[c.Name], c.Agents...)
	}
	if !slices.Equal(names["version"], []string{"old"}) || !slices.Equal(names["missing"], []string{"gone"}) || pace.BootID() != "" && len(names["machine"]) != 3 {
		t.Errorf("what is wrong: %v", names)
	}
}

// Waiting agents connect, and none joins; likewise with tokens. If a coordinator already listens there, it
// is queried with a temporary token instead.
func TestSurveyReplacesAbsentCoordinator(t *testing.T) {
	t.Parallel()
	_, drivers := memoryDrivers(t)
	keep := must.Get(admission.Open(t.TempDir(), time.Now()))(t)
	token := must.Get(keep.New(time.Hour, time.Now()))(t)
	f := must.Get(Open(t.Context(), Options{Keep: keep, Dir: t.TempDir(), Version: ownVersion}))(t)
	t.Cleanup(f.Close)
	w := open(t, drivers, Options{}) // of which there are the agents alone
	there := f.hub.Addr()
	// Where nobody listens yet.
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	free := l.Addr().String()
	_ = l.Close()
	for _, listen := range []string{free, there} {
		url := admission.Address{Scheme: admission.SchemeWeir, Host: listen, Pin: keep.Pin(), Token: token}
		w.agent(t, "at-"+listen[strings.LastIndexByte(listen, ':')+1:], func(a *agent.Agent) { a.Address = url })
		var s *survey.Sight
		must.Until(t, "an agent at "+listen, func() bool {
			s = must.Get((&survey.Survey{Place: survey.Place{Listen: listen, Keep: keep}, Wait: 2 * time.Second}).Look(t.Context()))(t)
			return len(s.Agents) == 1
		})
		if s.StoodIn != (listen == free) || len(s.Coordinators) != map[bool]int{true: 0, false: 1}[s.StoodIn] {
			t.Errorf("at %s: %+v", listen, s)
		}
		if strings.Contains(s.At, "token") {
			t.Errorf("it tells the token: %s", s.At)
		}
	}
	other := must.Get(admission.Open(t.TempDir(), time.Now()))(t)
	if _, err := (&survey.Survey{Place: survey.Place{Listen: there, Keep: other}}).Look(t.Context()); err == nil || !strings.Contains(err.Error(), "another folder") {
		t.Errorf("with another keep: %v", err)
	}
	if all, err := keep.List(); err != nil || len(all) != 1 || all[0].ID != token.ID() {
		t.Errorf("tokens: %v, %v; want the one that was there", all, err)
	}
}

// Invalid answers are counted, over-long ones and control sequences refused, and unknown fields of other
// versions ignored.
func TestASurveyIsNotMisled(t *testing.T) {
	t.Parallel()
	keep := fleettest.Keep(t)
	h := must.Get(hub.Start(t.Context(), hub.Options{Keep: keep, Dir: t.TempDir()}))(t)
	defer h.Close()
	at := keep.Own(h.JoinURL("", admission.Token{}))
	nc, err := h.Dial(t.Context(), "liar", nil) // an agent may answer but once, and as itself
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	one := protocol.About{Name: "one", Instance: "1", Version: "v2"}
	good := must.Get(json.Marshal(map[string]any{"name": "next", "instance": "2", "version": "v9", "quantum": []int{1}}))(t)
	cursed := one
	cursed.Host = "\x1b[2J"
	long := one
	long.Host = strings.Repeat("h", 300)
	dotted := one
	dotted.Instance = "a.b"
	answers := [][]byte{good, protocol.Encode(cursed), protocol.Encode(long), protocol.Encode(dotted), []byte("{"), make([]byte, protocol.SmallSize+1), protocol.Encode(protocol.About{})}
	bosses := [][]byte{[]byte("[]"), protocol.Encode(protocol.Roster{}), protocol.Encode(protocol.Roster{Session: "s", Members: []protocol.Member{{AgoNS: -1}}}), protocol.Encode(protocol.Roster{Session: "\n"})}
	for subject, all := range map[string][][]byte{protocol.AboutSubject: answers, protocol.RosterSubject: bosses} {
		must.Get(nc.Subscribe(subject, func(m *nats.Msg) {
			for _, b := range all {
				_ = nc.Publish(m.Reply, b)
			}
		}))(t)
	}
	must.Get(nc.Subscribe(protocol.AskSubject("2", "doctor"), func(m *nats.Msg) {
		_ = m.Respond(protocol.Encode(protocol.Look{Findings: []host.Finding{{Name: "x\x1b", Health: host.Bad, Found: "\x1b[2J"}}, Daemon: host.Daemon{Source: "\x07"}}))
	}))(t)
	must.Do(t, nc.FlushTimeout(patience))
	var s *survey.Sight
	must.Until(t, "every answer to be there while it looks", func() bool {
		s = must.Get((&survey.Survey{Place: survey.Place{Server: at}, Wait: 500 * time.Millisecond, Doctor: true}).Look(t.Context()))(t)
		if len(s.Agents) > 1 || len(s.Coordinators) > 0 || s.Strange > len(answers)+len(bosses)-1 {
			t.Fatalf("%+v; want the agent of another version alone, and %d strange answers", s, len(answers)+len(bosses)-1)
		}
		return len(s.Agents) == 1 && s.Strange == len(answers)+len(bosses)-1
	})
	if s.Agents[0].Name != "next" || s.Agents[0].Clock.Known {
		t.Errorf("%+v; want the agent of another version", s.Agents[0])
	}
	for _, c := range s.Check(ownVersion) {
		if strings.ContainsAny(c.Name+c.Found+c.Do, "\x1b\x07") {
			t.Errorf("%+v holds what moves a cursor", c)
		}
	}
}
