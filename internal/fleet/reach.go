package fleet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/micro"

	"github.com/weirmq/weir/internal/conduct"
	"github.com/weirmq/weir/internal/fleet/join"
	"github.com/weirmq/weir/internal/scenario"
)

// A Reach says which variables of its environment and which files of its host an agent
// lets scenarios refer to. The zero value lets them refer to none.
type Reach struct {
	All   bool     // of every scenario: whoever gives the jobs is this agent's own user
	Env   []string // names of variables
	Files []string // absolute paths
}

// has reports whether a need is within reach.
func (r *Reach) has(n scenario.Need) bool {
	if r.All {
		return true
	}
	if n.Env != "" {
		return slices.Contains(r.Env, n.Env)
	}
	// What the check reads as a path's meaning must be what opening it finds: a link
	// before .. leads elsewhere.
	if n.File != filepath.Clean(n.File) || strings.Contains(n.File, "..") {
		return false
	}
	path, err := filepath.Abs(n.File)
	return err == nil && slices.Contains(r.Files, path)
}

// refuse is the error of what is out of reach; nil of nothing.
func refuse(needs []scenario.Need) error {
	if len(needs) == 0 {
		return nil
	}
	var what, flags []string
	for _, n := range needs {
		if n.Env != "" {
			what, flags = append(what, "env "+n.Env), append(flags, "--allow-env "+n.Env)
			continue
		}
		what, flags = append(what, "file "+n.File), append(flags, "--allow-file "+n.File)
	}
	return fmt.Errorf("%w: %s: start the agent with %s", ErrNotAllowed, strings.Join(what, ", "), strings.Join(flags, " "))
}

// theScenario reads what a coordinator has an agent do. What it refers to is looked up
// on this host, within the agent's reach; without is to leave its secrets unknown,
// where only its system is started.
func theScenario(a *Agent, text []byte, files Files, without bool) (*scenario.Scenario, error) {
	var refused []scenario.Need
	runs, err := scenario.Resolve(scenario.Inputs{
		File: "scenario.yaml", Text: text, Drivers: a.Drivers, Env: a.Env, ReadOption: scenario.ReadOption, Elsewhere: without,
		ReadFile: files.ReadFile, Stat: files.Stat, ReadDir: files.ReadDir, Dir: "/",
		Permit: func(n scenario.Need) error {
			if a.Reach.has(n) {
				return nil
			}
			refused = append(refused, n)
			return ErrNotAllowed
		},
	})
	if err := refuse(refused); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("reading the scenario: %w", err)
	}
	if len(runs) != 1 {
		return nil, fmt.Errorf("%w: a scenario of %d runs", ErrMalformed, len(runs))
	}
	return runs[0], nil
}

// A query asks an agent whether what a scenario refers to is within its reach.
type query struct {
	Needs []scenario.Need `json:"needs"`
}

// may answers a query.
func (a *Agent) may(r micro.Request) {
	var q query
	err := a.open(r.Data(), &q)
	if err == nil {
		err = refuse(slices.DeleteFunc(q.Needs, func(n scenario.Need) bool { return a.Reach.has(n) }))
	}
	var got answer
	if err != nil {
		got.Error, got.Kind = err.Error(), kindOf(err)
		a.limited.Warn("a scenario is refused", "", "why", err)
	}
	reply(r, got)
}

// May asks agents that joined whether what a scenario refers to is within their reach.
// Where it is not the error is ErrNotAllowed and names all of it. An agent checks each
// job by itself too: this is for knowing it before anything is touched.
func (f *Fleet) May(ctx context.Context, agents []string, needs []scenario.Need) error {
	if len(needs) == 0 {
		return nil
	}
	b := encode(&query{needs})
	errs := make([]error, len(agents))
	var all sync.WaitGroup
	for i, name := range agents {
		all.Go(func() {
			if err := f.ask(ctx, name, b); err != nil {
				errs[i] = fmt.Errorf("agent %s: %w", name, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// ask puts a query to an agent, more than once where it does not answer.
func (f *Fleet) ask(ctx context.Context, agent string, b []byte) error {
	f.mu.Lock()
	p := f.peers[agent]
	f.mu.Unlock()
	if p == nil {
		return fmt.Errorf("%w: it has not joined", conduct.ErrAgent)
	}
	sealed, err := join.Seal(b, p.Key)
	if err != nil {
		return err
	}
	for range 3 {
		asking, over := context.WithTimeout(ctx, askLimit)
		m, failed := f.nc.RequestWithContext(asking, orderSubject(p.Instance, "may"), sealed)
		over()
		if err = failed; err != nil {
			continue
		}
		var a answer
		if err := decode(m.Data, smallSize, &a); err != nil {
			return err
		}
		return errorOf(shown(a.Error), a.Kind)
	}
	return fmt.Errorf("%w: it does not answer what it allows: %w", conduct.ErrAgent, err)
}
