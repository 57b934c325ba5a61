package view

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/result"
)

func TestFleetComparedWithSingleProcessIsNoted(t *testing.T) {
	t.Parallel()
	one, two := run(t, "jetstream-500"), run(t, "jetstream-500")
	two.Result.Agents = []result.Agent{{Name: "a", Hostname: "anvil"}, {Name: "b", Hostname: "anvil"}}
	two.Environment.Hosts = []host.Facts{two.Environment.Hosts[0], two.Environment.Hosts[0]}
	b := rendered(t, Overview, []Entry{one, two}, Options{})
	for want, is := range map[string]bool{
		"none; 2 agents on 1 host": true, "agents differ: one process and several": true, "hosts differ": false, "anvil + anvil": false,
	} {
		if strings.Contains(b, want) != is {
			t.Errorf("%q: want it said %v in\n%s", want, is, b)
		}
	}
}

func TestUnknownClockError(t *testing.T) {
	t.Parallel()
	e := run(t, "jetstream-500")
	e.Result.Agents = []result.Agent{{Name: "a", Hostname: "anvil"}, {Name: "b", Hostname: "bellows"}}
	e.Result.Clock = &result.FleetClock{Crosses: true}
	for i := range e.Result.Latency.E2E.Response.Percentiles {
		p := &e.Result.Latency.E2E.Response.Percentiles[i]
		p.Supported, p.UnsupportedBy = false, result.ByUnknownClock
	}
	b := rendered(t, Text, entry(e.Result), Options{})
	mentions(t, b, "e2e ±? clock", "? is finer than the clocks", "e2e needs two clocks that could not be compared")
	html1(t, e, Options{})
}

// If only senders are lost, pending messages are what the drain left.
func TestOnlyLostReceivingAgentMakesDeliveriesUnknown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		agent  result.Agent
		mode   string
		unsure bool
	}{
		{result.Agent{Name: "a", Missing: true, Producers: 2}, "stream", false},
		{result.Agent{Name: "a", Missing: true, Consumers: 2}, "stream", true},
		{result.Agent{Name: "a", Missing: true, Producers: 2}, "request", true},
		{result.Agent{Name: "a", Consumers: 2}, "stream", false},
	} {
		e := run(t, "jetstream-500")
		e.Result.Run.Mode, e.Result.Agents, e.Result.MessagesAll.Pending = tt.mode, []result.Agent{tt.agent}, 3
		b := rendered(t, Text, entry(e.Result), Options{})
		if got := strings.Contains(b, "an agent was lost, so some pending messages"); got != tt.unsure {
			t.Errorf("%+v in mode %s: said %v; want %v", tt.agent, tt.mode, got, tt.unsure)
		}
	}
}

// The page names a lost agent, what it had reported, and that the rest is not known.
func TestWhatALostAgentHadReported(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reported *result.Reported
		want     string
	}{
		{&result.Reported{UntilNS: 3_000_000_000, Sent: 1234, Received: 5}, ": 1,234 messages sent, 5 received. What it did after that is not known"},
		{nil, "it reported nothing: what it sent and received is not known"},
	} {
		e := run(t, "jetstream-500")
		e.Result.Agents = []result.Agent{{Name: "a", Producers: 2}, {Name: "gone", Consumers: 2, Missing: true, Absences: []result.Absence{{FromNS: 3e9}}, Reported: tt.reported}}
		judge.Withhold(e.Result)
		b := rendered(t, Text, entry(e.Result), Options{Dir: "out", Full: true, Fleet: new(Fleet)})
		mentions(t, strings.Join(strings.Fields(b), " "), tt.want, "gone")
	}
}

// After a run whose consumers' agent vanished, the suggested command is about the agents, whatever the
// messages and the checks say.
func TestLostAgentNotBlamedOnSystem(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		fleet *Fleet
		next  string
	}{
		{&Fleet{Look: "weir fleet doctor --listen 127.0.0.1:7622"}, "weir fleet doctor --listen 127.0.0.1:7622"},
		{nil, "less out/events.jsonl"},
	} {
		e := run(t, "jetstream-500")
		e.Result.Agents = []result.Agent{{Name: "a", Producers: 2}, {Name: "b", Consumers: 2, Missing: true}}
		e.Result.MessagesAll.Pending = 3
		judge.Withhold(e.Result)
		b := rendered(t, Text, entry(e.Result), Options{Dir: "out", Fleet: tt.fleet})
		mentions(t, b, "next        "+tt.next, "? needs an agent that was lost: do not quote it")
		mentions(t, html1(t, e, Options{}), "Dashed, with hollow dots: do not quote it, because it has too few samples, or needs an agent that was lost; ")
		if strings.Contains(b, "? is finer than") || strings.Contains(b, "\ne2e  ") {
			t.Errorf("it shows figures that need the agent:\n%s", b)
		}
	}
}
