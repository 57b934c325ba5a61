package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/coordinator"
	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/result"
)

// schemaPaused names the format of a resumable run's file.
const schemaPaused = "weir.fleet-run/v1"

// ErrNotPaused says that there is no such run to resume.
var ErrNotPaused = errors.New("no such run to resume")

// A Paused is the state that another coordinator needs to resume a run. It is kept on disk during the run
// and removed at its end. It contains no secrets: options have references instead, and a server's
// credentials must be given again.
type Paused struct {
	Schema   string                `json:"schema"`
	Version  string                `json:"weir"`
	Session  string                `json:"session"`
	Listen   string                `json:"listen,omitempty"`
	Keep     bool                  `json:"keep"`             // the hub required tokens
	Server   string                `json:"server,omitempty"` // an existing server, without credentials
	Run      string                `json:"run"`
	Number   uint32                `json:"number"`
	Scenario []byte                `json:"scenario"`
	Files    protocol.Files        `json:"files,omitempty"`
	Address  []string              `json:"address,omitempty"`
	Options  map[string][]string   `json:"options,omitempty"`
	StartOn  string                `json:"start_on,omitempty"` // agent that started the system on its host
	Started  *result.Started       `json:"started,omitempty"`  // of that
	Folder   string                `json:"folder"`             // of the result
	Agents   []protocol.About      `json:"agents"`
	Starter  *protocol.About       `json:"starter,omitempty"` // the agent of StartOn
	There    *Epoch                `json:"there,omitempty"`   // on the clock of an agent with faults but no part
	Workers  []engine.Worker       `json:"shares"`
	Boot     string                `json:"boot_id"`  // of the coordinator's host
	EpochNS  int64                 `json:"epoch_ns"` // on its monotonic clock
	Epochs   []Epoch               `json:"epochs"`
	Gaps     []coordinator.Absence `json:"gaps,omitempty"` // earlier times without a coordinator

	seen time.Time // when its coordinator was last alive
}

// An Epoch is the run's epoch on an agent's monotonic clock, and the offset that was used to compute it.
type Epoch struct {
	NS       int64 `json:"ns"`
	OffsetNS int64 `json:"offset_ns"`
}

func pausedDir(dir string) string { return filepath.Join(dir, "runs") }

// ReadPaused reads the state of a run, by its id, from a coordinator's folder. Its error lists the runs in
// it.
func ReadPaused(dir, run string) (*Paused, error) {
	if strings.ContainsAny(run, "/\\") || run == "" {
		return nil, fmt.Errorf("%w: %q is not a run's id", ErrNotPaused, run)
	}
	path := filepath.Join(pausedDir(dir), run+".json")
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s (%s)", ErrNotPaused, run, pausedRuns(dir))
	}
	if err != nil {
		return nil, fmt.Errorf("reading the stored state of run %s: %w", run, err)
	}
	p := new(Paused)
	if err := protocol.Decode(b, 2*protocol.JobSize, p); err != nil {
		return nil, fmt.Errorf("reading the stored state of run %s: %w", run, err)
	}
	if i, err := os.Stat(path); err == nil {
		p.seen = i.ModTime()
	}
	switch {
	case p.Schema != schemaPaused:
		return nil, fmt.Errorf("the stored state of run %s is %q (%s)", run, p.Schema, schemaPaused)
	case len(p.Agents) == 0 || len(p.Workers) != len(p.Agents) || len(p.Epochs) != len(p.Agents) || p.EpochNS == 0:
		return nil, fmt.Errorf("the stored state of run %s: %w", run, protocol.ErrMalformed)
	case p.Boot != pace.BootID():
		return nil, fmt.Errorf("%w: this host was restarted since run %s began, and has another clock", ErrNotPaused, run)
	}
	return p, nil
}

// Resolve reads the run's scenario as its coordinator had it, with the resolved address.
func (p *Paused) Resolve(drivers *driver.Registry, env func(name string) (string, bool)) (*scenario.Scenario, error) {
	all, err := scenario.Resolve(scenario.Inputs{
		File: "scenario.yaml", Text: p.Scenario, Drivers: drivers, Env: env,
		ReadOption: scenario.ReadOption, Elsewhere: true, ReadFile: p.Files.ReadFile, Stat: p.Files.Stat, ReadDir: p.Files.ReadDir, Dir: "/",
	})
	if err != nil || len(all) != 1 {
		return nil, errors.Join(fmt.Errorf("the stored state of run %s holds %d runs", p.Run, len(all)), err)
	}
	if len(p.Address) > 0 {
		err = all[0].Connect(p.Address, p.Options)
	}
	return all[0], err
}

// Reclaim removes the files of the dead coordinator, which are all written again.
func (p *Paused) Reclaim() error {
	dir := p.Folder
	if _, err := os.Stat(filepath.Join(dir, result.FileResult)); err == nil {
		return fmt.Errorf("%s holds a result already (--out DIR names another folder)", dir)
	}
	for _, name := range []string{result.FileScenario, result.FileEnvironment, result.FileIntervals, result.FileEvents, result.FileHost, result.FileLive} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("making the result folder anew: %w (--out DIR names another)", err)
	}
	return nil
}

// pausedRuns lists the resumable runs.
func pausedRuns(dir string) string {
	entries, err := os.ReadDir(pausedDir(dir))
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok {
			names = append(names, name)
		}
	}
	if err != nil || len(names) == 0 {
		return "there is none"
	}
	return strings.Join(names, ", ")
}

// keep stores what another coordinator would need to resume the run.
func (d *drive) keep() error {
	p := &Paused{
		Schema: schemaPaused, Version: d.f.o.Version, Session: d.f.session, Listen: d.f.o.Listen, Keep: d.f.o.Keep != nil,
		Run: d.run.Config.RunID, Number: d.run.Config.Run, Scenario: d.run.Scenario, Files: d.run.Files, Address: d.run.Address,
		Options: d.run.Options, StartOn: d.run.StartOn, Started: d.run.Started, Folder: d.run.Folder, Agents: d.abouts, Workers: d.workers, Boot: pace.BootID(), Gaps: d.gaps,
	}
	if d.f.hub == nil {
		p.Listen, p.Server = "", d.f.o.Server.String()
	}
	if d.starter != nil {
		p.Starter = &d.starter.About
	}
	if d.trouble != nil {
		d.epochThere()
	}
	p.EpochNS, p.Epochs = d.c.EpochNS(), d.clocks.epochs()
	if n := len(d.abouts); len(p.Epochs) > n {
		p.There, p.Epochs = &p.Epochs[n], p.Epochs[:n]
	}
	b, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("storing what a resume needs: %w", err)
	}
	path := d.keptAt()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("storing what a resume needs: %w", err)
	}
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		return fmt.Errorf("storing what a resume needs: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("storing what a resume needs: %w", err)
	}
	return nil
}

// stamp touches keep's file, to show that this coordinator is alive.
func (d *drive) stamp() {
	now := time.Now()
	_ = os.Chtimes(d.keptAt(), now, now) // on error a resumed run shows a longer gap
}

// missed records how long a resumed run had no coordinator, since the previous one last touched the file.
func (d *drive) missed(p *Paused) {
	now := d.c.Now()
	gap := coordinator.Absence{From: min(now, max(0, int64(p.seen.Sub(d.c.Wall())))), To: now}
	d.gaps = append(slices.Clone(p.Gaps), gap)
	d.c.Tell(engine.Event{At: now, Kind: "coordinator-back", Text: fmt.Sprintf(
		"the run had no coordinator for %v, and was then resumed; its agents continued meanwhile", time.Duration(gap.To-gap.From).Round(100*time.Millisecond))})
}

func (d *drive) keptAt() string {
	return filepath.Join(pausedDir(d.f.o.Dir), d.run.Config.RunID+".json")
}

// forget removes keep's file.
func (d *drive) forget() {
	if err := os.Remove(d.keptAt()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.f.o.Log.Warn("the stored state of the run could not be removed", "why", err)
	}
}

// ResumeOptions returns a coordinator's options to resume a run. server is the existing server's address
// with its credentials, if the run used one. Certificate and tokens are in the folder keep.
func (p *Paused) ResumeOptions(o Options, keep string, server admission.Address) (_ Options, err error) {
	o.Session, o.Listen = p.Session, p.Listen
	if p.Keep {
		if o.Keep, err = admission.Open(keep, time.Now()); err != nil {
			return o, err
		}
	}
	if p.Server != "" {
		if server.Host == "" {
			return o, fmt.Errorf("run %s met at %s (--nats, with its credentials)", p.Run, p.Server)
		}
		o.Server = server
	}
	if !buildinfo.Same(p.Version, o.Version) {
		return o, fmt.Errorf("weir %[2]s began run %[1]s; this is weir %[3]s", p.Run, p.Version, o.Version)
	}
	return o, nil
}

// Resume resumes a run whose coordinator is gone: it reads all the agents' reports again, from before and
// since. run is as it was given to Do. Otherwise it works like Do.
func (f *Fleet) Resume(ctx context.Context, stop <-chan struct{}, run *Run, p *Paused) (*Done, error) {
	d := &drive{f: f, run: run, places: map[string]int{}, abouts: slices.Clone(p.Agents)}
	for i, a := range d.abouts {
		d.places[a.Name] = i
	}
	known := d.abouts
	if p.Starter != nil {
		d.starter = newStarter(*p.Starter, d.places)
		known = append(slices.Clone(known), *p.Starter)
	}
	f.mu.Lock()
	for _, a := range known {
		if f.peers[a.Name] == nil { // it joined the previous coordinator
			f.peers[a.Name] = &peer{About: a, heard: time.Now()}
		}
	}
	f.mu.Unlock()
	if err := d.prepare(p.Workers); err != nil {
		return nil, err
	}
	epochs := p.Epochs
	if p.There != nil {
		epochs = append(slices.Clone(epochs), *p.There)
	}
	d.clocks.setEpochs(epochs)
	d.c.Resume(p.EpochNS)
	d.missed(p)
	return d.do(ctx, stop, func() error { return nil })
}

// epochs returns the run's epoch on every agent's clock.
func (c *clocks) epochs() []Epoch {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []Epoch
	for _, w := range c.agents {
		all = append(all, Epoch{w.epoch, w.offset})
	}
	return all
}

// setEpochs sets what epochs returned.
func (c *clocks) setEpochs(es []Epoch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, e := range es[:min(len(es), len(c.agents))] {
		c.agents[i].epoch, c.agents[i].offset = e.NS, e.OffsetNS
	}
}
