package fleet

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/coordinator"
	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/fleet/agent"
	"github.com/weirmq/weir/internal/fleet/fleettest"
	"github.com/weirmq/weir/internal/fleet/hub"
	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/fleet/survey"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "4") // these tests wait, most of the time
	goleak.VerifyTestMain(m)
}

// patience bounds every wait of these tests.
const patience = 60 * time.Second

// registry returns the drivers of a test.
func registry(t *testing.T, defs ...driver.Definition) *driver.Registry {
	t.Helper()
	return must.Get(driver.NewRegistry(defs...))(t)
}

// A world is a coordinator and agents in this process, which meet at a server.
type world struct {
	*Fleet
	drivers *driver.Registry
	diary   *fleettest.Diary // of all
	agents  map[string]*running
}

// A running is an agent.
type running struct {
	*agent.Agent
	stop func() error // waits for its end
}

const ownVersion = "v1.2.3-test"

// open opens a coordinator with those drivers. It and its agents end with the
// test.
func open(t *testing.T, drivers *driver.Registry, o Options) *world {
	t.Helper()
	w := &world{drivers: drivers, diary: &fleettest.Diary{}, agents: map[string]*running{}}
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	if o.Keep == nil && o.Server.Host == "" {
		o.Keep = fleettest.Keep(t)
	}
	if o.Version == "" {
		o.Version = ownVersion
	}
	if o.Log == nil {
		o.Log = w.diary.Log()
	}
	f := must.Get(Open(t.Context(), o))(t)
	w.Fleet = f
	t.Cleanup(func() {
		for _, a := range w.agents {
			if err := a.stop(); err != nil {
				t.Errorf("agent %s: %v", a.Name, err)
			}
		}
		f.Close()
		if t.Failed() {
			t.Log("what was logged:\n" + w.diary.String())
		}
	})
	return w
}

// address is where agents join.
func (w *world) address(t *testing.T) admission.Address {
	t.Helper()
	a := must.Get(admission.Parse(w.JoinURL()))(t)
	if a.IsOwn() {
		a = w.o.Keep.Own(a)
	}
	return a
}

// dial connects a process that is not an agent, and says by which ID.
func dial(t *testing.T, a admission.Address, name string, more ...nats.Option) (nc *nats.Conn, id string) {
	t.Helper()
	self := must.Get(admission.NewSelf())(t)
	nc = must.Get(hub.Dial(t.Context(), a, self, name, nil, more...))(t)
	t.Cleanup(nc.Close)
	return nc, self.ID()
}

// of returns what is known of an agent that joined.
func (w *world) of(t *testing.T, name string) protocol.About {
	t.Helper()
	for _, a := range w.Agents() {
		if a.Name == name {
			return a
		}
	}
	t.Fatalf("agent %s has not joined", name)
	return protocol.About{}
}

// sealed is a message as it travels to an agent.
func sealed(t *testing.T, a protocol.About, v any) []byte {
	t.Helper()
	return must.Get(admission.Seal(protocol.Encode(v), a.Key))(t)
}

// agent starts one.
func (w *world) agent(t *testing.T, name string, more ...func(*agent.Agent)) *running {
	t.Helper()
	var at admission.Address
	if w.Fleet != nil {
		at = w.address(t)
	}
	a := &agent.Agent{
		Address: at, Name: name, Version: ownVersion, Drivers: w.drivers, Env: func(string) (string, bool) { return "", false },
		Clock: pace.NewClock, Log: w.diary.Log(),
	}
	for _, f := range more {
		f(a)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	var once sync.Once
	var ended error
	r := &running{Agent: a, stop: func() error {
		once.Do(func() {
			cancel()
			select {
			case ended = <-done:
			case <-time.After(patience):
				ended = fmt.Errorf("did not end within %v", patience)
			}
		})
		return ended
	}}
	w.agents[name+a.Version+fmt.Sprint(len(w.agents))] = r
	return r
}

// fleetOf opens a coordinator and this many agents, called a, b, and so on, and
// waits for them.
func fleetOf(t *testing.T, n int, drivers *driver.Registry, more ...func(*agent.Agent)) *world {
	t.Helper()
	w := open(t, drivers, Options{})
	for i := range n {
		w.agent(t, string(rune('a'+i)), more...)
	}
	w.await(t, n)
	return w
}

// busy returns the run that an agent is busy with; "" where with none.
func (w *world) busy(t *testing.T, name string) string {
	t.Helper()
	all, err := survey.Agents(w.nc, 200*time.Millisecond)
	if err != nil {
		t.Error(err)
	}
	for _, a := range all {
		if a.Name == name {
			return a.Busy
		}
	}
	return "?"
}

func (w *world) await(t *testing.T, n int) {
	t.Helper()
	must.Do(t, w.Await(t.Context(), Want{Agents: n}, patience))
}

// runOf creates the run of a scenario with that id.
func runOf(t *testing.T, drivers *driver.Registry, id, yaml string) *Run {
	t.Helper()
	needs.Time(t)
	none := func(string) error { return fs.ErrNotExist }
	all, err := scenario.Resolve(scenario.Inputs{
		File: "test.yaml", Text: []byte("weir: 1\n" + yaml), Drivers: drivers, Dir: "/", Env: func(string) (string, bool) { return "", false },
		ReadFile: func(p string) ([]byte, error) { return nil, none(p) },
		Stat:     func(p string) (fs.FileInfo, error) { return nil, none(p) },
		ReadDir:  func(p string) ([]fs.DirEntry, error) { return nil, none(p) },
	})
	if err != nil {
		t.Fatalf("%v in:\n%s", err, yaml)
	}
	s := all[0]
	return &Run{Config: s.Config(id, number), Scenario: s.YAML(), Placement: s.Placement}
}

// do executes a run and checks its message accounting.
func (w *world) do(t *testing.T, r *Run) *Done {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	done, err := w.Do(ctx, nil, r)
	if err != nil {
		t.Fatalf("run %s: %v", r.Config.RunID, err)
	}
	balanced(t, done.Raw)
	return done
}

// here executes a run in this process, divided among that many agents.
func here(t *testing.T, r *Run, agents int) *engine.Raw {
	t.Helper()
	cfg := r.Config
	cfg.Clock, cfg.Calibration = pace.NewClock(), pace.Virtual()
	names, shares := dealt(t, r, agents)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	raw, err := coordinator.Together(ctx, nil, cfg, names, shares)
	if err != nil {
		t.Fatalf("run %s by %d: %v", cfg.RunID, agents, err)
	}
	balanced(t, raw)
	return raw
}

// dealt divides a run among that many agents.
func dealt(t *testing.T, r *Run, agents int) (names []string, shares []engine.Worker) {
	t.Helper()
	d := &drive{run: r}
	for i := range agents {
		names = append(names, string(rune('a'+i)))
		d.abouts = append(d.abouts, protocol.About{Name: names[i], Clock: "one"})
	}
	shares = must.Get(d.deal())(t)
	return names, shares
}

// balanced checks the message accounting.
func balanced(t *testing.T, raw *engine.Raw) {
	t.Helper()
	for name, m := range map[string]result.Messages{"all": raw.All, "measured": raw.Measured} {
		if m.Scheduled != m.Sent+m.Dropped+m.Unsent {
			t.Errorf("%s: scheduled %d != sent %d + dropped %d + unsent %d", name, m.Scheduled, m.Sent, m.Dropped, m.Unsent)
		}
		if m.Sent != m.Confirmed+m.Failed+m.Unconfirmed {
			t.Errorf("%s: sent %d != confirmed %d + failed %d + unconfirmed %d", name, m.Sent, m.Confirmed, m.Failed, m.Unconfirmed)
		}
		if subs := uint64(raw.Subscriptions); subs > 0 && m.Confirmed*subs != m.Delivered+m.Late+m.Corrupted+m.Lost+m.Pending+m.Unknown {
			t.Errorf("%s: confirmed %d x %d != delivered %d + corrupted %d + lost %d + pending %d", name, m.Confirmed, subs, m.Delivered, m.Corrupted, m.Lost, m.Pending)
		}
	}
}

// exact checks a normal run: every planned message was sent, except what a busy host left unsent, and all
// sent ones were confirmed and delivered.
func exact(t *testing.T, raw *engine.Raw, planned uint64) {
	t.Helper()
	m := raw.All
	want := m.Sent * uint64(raw.Subscriptions)
	if m.Sent == 0 || m.Sent+m.Unsent != planned || m.Confirmed != m.Sent || m.Delivered != want || m.Duplicated+m.Reordered+m.Foreign+m.Corrupted+m.Lost+m.Pending != 0 {
		t.Errorf("sent %d, unsent %d, confirmed %d, delivered %d, faults %d/%d/%d/%d/%d/%d; want %d, all confirmed, and %d delivered",
			m.Sent, m.Unsent, m.Confirmed, m.Delivered, m.Duplicated, m.Reordered, m.Foreign, m.Corrupted, m.Lost, m.Pending, planned, want)
	}
	for _, k := range []measure.Kind{measure.SendResponse, measure.E2EResponse} {
		var stages measure.Counts
		for i := range raw.Stages {
			stages.Merge(&raw.Stages[i].Kinds[k])
		}
		if len(raw.Stages) > 0 {
			fleettest.Same(t, k.String()+" of all stages", &stages, &raw.Snapshot.Kinds[k][measure.Measure])
		}
	}
}

// memoryDrivers is a registry of a memory alone.
func memoryDrivers(t *testing.T) (*memory, *driver.Registry) {
	t.Helper()
	m := newMemory("memory")
	return m, registry(t, m.definition())
}
