package series

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/view"
	"github.com/weirmq/weir/result"
)

func TestOnlyServersStillDownReportedAtEnd(t *testing.T) {
	folder := must.Get(result.Create(filepath.Join(t.TempDir(), "r")))(t)
	defer func() { _ = folder.Close() }()
	said := &notebook{}
	m := newMeasurement(&measurement{
		observer: said, folder: folder,
		scenario: &scenario.Scenario{System: scenario.System{Definition: driver.Definition{Name: "nats"}}},
	})
	if m.servers.tellOfDeaths() || said.wrong() != "" {
		t.Errorf("nothing ended, and it says %q", said.wrong())
	}
	gone := func(process string, node int, why string, at int64) {
		m.servers.event(broker.ServerEvent{Process: process, Node: node, Pid: 9, Ended: why, MonotonicNS: at})
	}
	gone("server-1", 1, "exit code 3: no disk\nno luck", 1_000_000_000)
	m.epoch = 3_000_000_000
	gone("server-2", 2, "signal: killed", 5_000_000_000)
	gone("server-3", 3, "stopped for a restart", 5_000_000_000)
	gone("server-3", 3, "", 6_000_000_000)
	m.servers.event(broker.ServerEvent{Process: "server-4", Node: 4, Pid: 9, Ended: "killed by a fault", ByFault: true, MonotonicNS: 5_000_000_000})
	want := `nats: server-1 on node 1 ended by itself before the run began: exit code 3: no disk; no luck
nats: server-2 on node 2 ended by itself 2.0 s into the run: killed (signal 9)
`
	if !m.servers.tellOfDeaths() || said.wrong() != want {
		t.Errorf("it says\n%s; want\n%s", said.wrong(), want)
	}
}

// shown is an observer that shows a run as weir run does.
type shown struct{ *view.Live }

func (shown) Complain(error) {}

func TestAServersEventHasItsInstant(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r")
	folder := must.Get(result.Create(dir))(t)
	said := &strings.Builder{}
	m := newMeasurement(&measurement{folder: folder, observer: shown{view.NewLive(view.Terminal{Out: said}, view.LivePlan{})}, scenario: &scenario.Scenario{}})
	e := broker.ServerEvent{Process: "server-2", Node: 2, Pid: 9, Ended: "exit code 0", MonotonicNS: 5_000_000_007}
	m.servers.event(e)
	m.epoch = 3_000_000_000
	m.servers.event(e)
	e.Process, e.Node, e.Ended = "server-3", 3, ""
	m.servers.event(e) // not held back as one of the same kind
	m.servers.ended = true
	m.servers.event(e)
	must.Do(t, folder.Close())
	b, err := os.ReadFile(filepath.Join(dir, result.FileEvents))
	want := `{"schema": "weir.events/v1"}
{"t_ns":0,"kind":"server","text":"server-2 on node 2 (pid 9) ended: exit code 0"}
{"t_ns":2000000007,"kind":"server","text":"server-2 on node 2 (pid 9) ended: exit code 0"}
{"t_ns":2000000007,"kind":"server","text":"server-3 on node 3 (pid 9) was started again"}
`
	if err != nil || string(b) != want {
		t.Errorf("events are\n%s%v", b, err)
	}
	if !strings.Contains(said.String(), "at 2.0 s: the system: server-3 on node 3 (pid 9) was started again\n") {
		t.Errorf("said %q", said.String())
	}
}
