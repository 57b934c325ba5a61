package fleet

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/fleet/agent"
	"github.com/weirmq/weir/internal/fleet/fleettest"
	"github.com/weirmq/weir/internal/fleet/hub"
	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/scenario"
)

// A locked is a driver's configuration with a secret and a file.
type locked struct {
	driver.Config
	Password driver.Secret `option:"password" help:"Of the user."`
	CA       string        `option:"ca" file:"yes" help:"File of authorities."`
	Command  []string      `option:"command" command:"yes" help:"Program to start."`

	opened func(*locked)
}

func (l *locked) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	l.opened(l)
	return l.Config.Open(ctx, run)
}

// lockedDrivers is a registry of a memory that has such options, and reports each
// configuration that is opened.
func lockedDrivers(t *testing.T, opened func(*locked)) *driver.Registry {
	t.Helper()
	d := newMemory("memory").definition()
	fresh := d.New
	d.New = func() driver.Config { return &locked{Config: fresh(), opened: opened} }
	return registry(t, d)
}

// The agent itself refuses a job out of its reach, whatever its coordinator checked before, and looks
// nothing up for it.
func TestAgentLooksUpOnlyWhatItAllows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nest := filepath.Join(dir, "nest")
	must.Do(t, os.WriteFile(nest, []byte("in the file\n"), 0o600))
	var mu sync.Mutex
	var asked []string
	var got []string
	drivers := lockedDrivers(t, func(c *locked) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, c.Password.Reveal()+" "+c.CA)
	})
	env := func(name string) (string, bool) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, name)
		return "in the variable", name == "NEST" || name == "OTHER"
	}
	reach := agent.Reach{Env: []string{"NEST"}, Files: []string{nest}, Run: []string{`child,a\,b`}}
	w := open(t, drivers, Options{})
	w.agent(t, "a", func(a *agent.Agent) { a.Env, a.Reach = env, reach })
	w.await(t, 1)
	for _, tt := range []struct {
		name, options string
		needs         []scenario.Need
		want          string // what the driver has; "": the job is refused
		refused       string
	}{
		{"a variable", "{password: '${env:NEST}'}", []scenario.Need{{Env: "NEST"}}, "in the variable ", ""},
		{"a file", "{password: {file: " + nest + "}}", []scenario.Need{{File: nest}}, "in the file ", ""},
		{"a file by another path", "{password: {file: " + dir + "/x/../nest}}", []scenario.Need{{File: dir + "/x/../nest"}}, "", "file " + dir + "/x/../nest"},
		{"a file for the driver", "{ca: " + nest + "}", []scenario.Need{{File: nest}}, " " + nest, ""},
		{"another variable", "{password: '${env:OTHER}'}", []scenario.Need{{Env: "OTHER"}}, "", "env OTHER"},
		{"another file", "{password: {file: " + dir + "/other}}", []scenario.Need{{File: dir + "/other"}}, "", "file " + dir + "/other"},
		{"another file for the driver", "{ca: " + dir + "/other}", []scenario.Need{{File: dir + "/other"}}, "", "file " + dir + "/other"},
		{"a folder above", "{ca: " + dir + "}", []scenario.Need{{File: dir}}, "", "file " + dir},
		{"a name that only begins so", "{password: '${env:NEST2}'}", []scenario.Need{{Env: "NEST2"}}, "", "env NEST2"},
		{"a command", `{command: [child, "a,b"]}`, []scenario.Need{{Command: `child,a\,b`}}, " ", ""},
		{"its program alone", "{command: [child]}", []scenario.Need{{Command: "child"}}, "", "command child"},
		{"its program with other arguments", "{command: [child, a, b]}", []scenario.Need{{Command: "child,a,b"}}, "", "command child,a,b"},
		{"both", "{password: '${env:OTHER}', ca: /x}", []scenario.Need{{File: "/x"}, {Env: "OTHER"}}, "", "file /x, env OTHER"},
	} {
		run := elsewhere(t, drivers, "run-"+strings.ReplaceAll(tt.name, " ", "-"), "system: {driver: memory, options: "+tt.options+"}\nload: {rate: 100/s}\nwarmup: 0s\nmeasure: 100ms\nmessage: {size: 64B}\ndrain: 20s\n", tt.needs)
		mu.Lock()
		asked, got = nil, nil
		mu.Unlock()
		if err := w.May(t.Context(), []string{"a"}, func(string) protocol.Query { return protocol.Query{Driver: "memory", Needs: tt.needs} }); (err == nil) != (tt.refused == "") || err != nil && (!errors.Is(err, protocol.ErrNotAllowed) || !strings.Contains(err.Error(), "agent a: not allowed: "+tt.refused)) {
			t.Errorf("%s: asked, it says %v; want %q refused", tt.name, err, tt.refused)
		}
		_, err := w.Do(t.Context(), nil, run)
		mu.Lock()
		switch {
		case tt.refused != "":
			if !errors.Is(err, protocol.ErrNotAllowed) || !strings.Contains(err.Error(), tt.refused) || len(got) > 0 {
				t.Errorf("%s: %v, opened %q; want %q refused", tt.name, err, got, tt.refused)
			}
			if len(asked) > 0 {
				t.Errorf("%s: %q were looked up", tt.name, asked)
			}
		case err != nil || len(got) == 0 || got[0] != tt.want:
			t.Errorf("%s: %v, opened with %q; want %q", tt.name, err, got, tt.want)
		}
		mu.Unlock()
	}
}

// elsewhere makes a run as the coordinator of a fleet does, who has none of the secrets.
func elsewhere(t *testing.T, drivers *driver.Registry, id, yaml string, needs []scenario.Need) *Run {
	t.Helper()
	all, err := scenario.Resolve(scenario.Inputs{
		File: "test.yaml", Text: []byte("weir: 1\n" + yaml), Drivers: drivers, Dir: "/", Elsewhere: true,
		Env: func(name string) (string, bool) {
			t.Errorf("the coordinator looks up %s", name)
			return "", false
		},
		ReadFile: func(p string) ([]byte, error) {
			t.Errorf("the coordinator reads %s", p)
			return nil, os.ErrNotExist
		},
	})
	if err != nil {
		t.Fatalf("%v in:\n%s", err, yaml)
	}
	s := all[0]
	if got := s.Needs(); len(got) != len(needs) || len(got) > 0 && (got[0] != needs[0] || got[len(got)-1] != needs[len(needs)-1]) {
		t.Errorf("%s needs %+v; want %+v", id, got, needs)
	}
	return &Run{Config: s.Config(id, number), Scenario: s.YAML(), Placement: s.Placement}
}

// At a hub no valid token gives access to another's job; at an open server the job is sealed.
func TestUninvolvedAgentCannotReadJob(t *testing.T) {
	t.Parallel()
	const mark = "M4rkOfTheScenar10"
	at := must.Get(admission.Parse(server(t)))(t)
	for _, o := range []Options{{}, {Server: at}} {
		_, drivers := memoryDrivers(t)
		w := open(t, drivers, o)
		w.agent(t, "a")
		w.await(t, 1)
		subjects, jobs := []string{protocol.BeaconSubject, protocol.OrdersPrefix + ">", protocol.AboutSubject}, 0
		if o.Server.Host != "" {
			subjects, jobs = []string{">"}, 1
		}
		watching := w.address(t)
		nc, _ := dial(t, watching, "watcher")
		var mu sync.Mutex
		heard := map[string]int{}
		form := base64.StdEncoding.EncodeToString([]byte("000" + mark))[4:20]
		for _, subject := range subjects {
			must.Get(nc.Subscribe(subject, func(m *nats.Msg) {
				mu.Lock()
				defer mu.Unlock()
				if m.Subject == protocol.OrderSubject(w.Agents()[0].Instance, "job") {
					heard["job"]++
				}
				heard[m.Subject]++
				for _, b := range [][]byte{[]byte(mark), []byte(form), []byte("weir: 1")} {
					if bytes.Contains(m.Data, b) {
						t.Errorf("%s says %q", m.Subject, b)
					}
				}
			}))(t)
		}
		must.Do(t, nc.FlushTimeout(patience))
		r := runOf(t, drivers, "run", "name: "+mark+"\nload: {rate: 100/s}\nwarmup: 0s\nmeasure: 300ms"+common)
		if !bytes.Contains(r.Scenario, []byte(mark)) {
			t.Fatal("the scenario has no mark")
		}
		w.do(t, r)
		must.Until(t, "the orders to be heard", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return heard[protocol.OrdersPrefix+w.session] > 0 && heard["job"] >= jobs
		})
		mu.Lock()
		if jobs == 0 && heard["job"] > 0 {
			t.Error("another's job was heard at the hub")
		}
		mu.Unlock()
	}
}

// Refusals are logged a few times, and then counted.
func TestPeerCannotFloodCoordinatorLog(t *testing.T) {
	t.Parallel()
	_, drivers := memoryDrivers(t)
	w := open(t, drivers, Options{})
	nc, id := dial(t, w.address(t), "flood")
	const each = 4000
	for range each {
		for _, what := range []string{"challenge", "join"} {
			must.Do(t, nc.Publish(protocol.DoorSubject(w.session, id, what), []byte("{")))
		}
	}
	if _, err := nc.Request(protocol.DoorSubject(w.session, id, "challenge"), []byte("{"), patience); err != nil { // all before is handled
		t.Fatal(err)
	}
	must.Get(nc.Request(protocol.DoorSubject(w.session, id, "join"), []byte("{"), patience))(t)
	lines := 0
	for l := range strings.Lines(w.diary.String()) {
		if strings.Contains(l, "refused") {
			lines++
		}
	}
	if lines == 0 || lines > 8*hub.LogEachMost { // more than one window, on a slow host
		t.Errorf("%d lines about %d refusals", lines, 2*each)
	}
	w.limited.End()
	w.diary.Has(t, "challenge refused: more lines like this were left out", "from="+id, "lines=")
}

// It does not retry forever.
func TestAgentWithWrongSchemeExits(t *testing.T) {
	t.Parallel()
	_, drivers := memoryDrivers(t)
	w := open(t, drivers, Options{})
	for _, scheme := range []string{admission.SchemeNATS, admission.SchemeTLS} {
		a := &agent.Agent{Address: admission.Address{Scheme: scheme, Host: w.hub.Addr()}, Name: "a", Log: w.diary.Log(), Clock: w.agent(t, "ok-"+scheme).Clock}
		if err := a.Run(t.Context()); !errors.Is(err, admission.ErrScheme) {
			t.Errorf("%s://: %v; want %v", scheme, err, admission.ErrScheme)
		}
	}
}

// At a server where anyone may pose as a coordinator, an agent reports a few, without control sequences.
func TestForeignBeaconsCannotFloodAgentLog(t *testing.T) {
	t.Parallel()
	at := must.Get(admission.Parse(server(t)))(t)
	nc, _ := dial(t, at, "stranger")
	var notes fleettest.Diary
	w := &world{diary: &fleettest.Diary{}, agents: map[string]*running{}}
	a := w.agent(t, "a", func(a *agent.Agent) {
		a.Address = at
		a.Note = func(format string, args ...any) { _, _ = fmt.Fprintf(&notes, format+"\n", args...) }
	})
	defer func() {
		if err := a.stop(); err != nil {
			t.Error(err)
		}
	}()
	notes.Has(t, "connected to")
	const beacons = 500
	must.Until(t, "the agent to tell of strangers", func() bool {
		for i := range beacons { // one may come before the agent listens
			b := protocol.Encode(protocol.Beacon{Session: fmt.Sprint("s", i), Version: fmt.Sprint("v", i), Host: "h\x1b[2J"})
			must.Do(t, nc.Publish(protocol.BeaconSubject, b))
		}
		must.Do(t, nc.FlushTimeout(patience))
		return strings.Contains(notes.String(), "refused by")
	})
	if n := strings.Count(notes.String(), "refused by"); n > 8*hub.LogEachMost {
		t.Errorf("%d notes", n)
	}
	if strings.Contains(notes.String(), "\x1b") {
		t.Errorf("a note moves the cursor: %q", notes.String())
	}
}

// TestAnAgentWithoutTheDriverIsNamed before anything starts, and says where it has one.
func TestAnAgentWithoutTheDriverIsNamed(t *testing.T) {
	t.Parallel()
	drivers := lockedDrivers(t, func(*locked) {})
	w := open(t, drivers, Options{})
	w.agent(t, "a")
	w.agent(t, "b", func(a *agent.Agent) {
		a.Drivers, _ = driver.NewRegistry()
		a.Drivers.Lacks("weir-all: weir-all agent ...", driver.Absent{Name: "memory"})
	})
	w.await(t, 2)
	err := w.May(t.Context(), []string{"a", "b"}, func(string) protocol.Query { return protocol.Query{Driver: "memory"} })
	if want := `agent b: not supported: driver "memory" is in weir-all: weir-all agent ...`; fmt.Sprint(err) != want || !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("%v; want %s", err, want)
	}
}
