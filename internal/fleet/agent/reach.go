package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/micro"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/fleet/protocol"
	"github.com/weirmq/weir/internal/scenario"
)

// A Reach says which environment variables and files of its host an agent lets scenarios refer to. The zero
// value allows none.
type Reach struct {
	All   bool     // anything: the agent's own user gives the jobs
	Env   []string // names of variables
	Files []string // absolute paths
	Run   []string // commands, in the form of scenario.Need
}

// variable matches the name of an environment variable.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// NewReach returns the reach of an agent with these values of --allow-env, --allow-file and
// --allow-command. path makes a path of its user's absolute.
func NewReach(env, files, commands []string, path func(string) string) (r Reach, err error) {
	for _, name := range env {
		if !variable.MatchString(name) {
			return r, fmt.Errorf("--allow-env: %q is not a name of a variable (letters, digits and _)", name)
		}
	}
	for _, file := range files {
		if file == "" {
			return r, errors.New("--allow-file: holds an empty path (paths, with a comma between them)")
		}
		whole, err := filepath.Abs(path(file))
		if err != nil {
			return r, fmt.Errorf("--allow-file: %w", err)
		}
		r.Files = append(r.Files, whole)
	}
	if slices.Contains(commands, "") {
		return r, errors.New("--allow-command: is empty (the words of a command, with a comma between them)")
	}
	r.Env, r.Run = env, commands
	return r, nil
}

// has reports whether a need is within reach.
func (r *Reach) has(n scenario.Need) bool {
	if r.All {
		return true
	}
	if n.Env != "" {
		return slices.Contains(r.Env, n.Env)
	}
	if n.Command != "" {
		return slices.Contains(r.Run, n.Command)
	}
	// The checked path must be the one that is opened: a link before .. leads elsewhere.
	if n.File != filepath.Clean(n.File) || strings.Contains(n.File, "..") {
		return false
	}
	path, err := filepath.Abs(n.File)
	return err == nil && slices.Contains(r.Files, path)
}

// refuse returns an error for needs that are out of reach; nil if there are none.
func refuse(needs []scenario.Need) error {
	if len(needs) == 0 {
		return nil
	}
	var what, flags []string
	for _, n := range needs {
		switch {
		case n.Env != "":
			what, flags = append(what, "env "+n.Env), append(flags, "--allow-env "+n.Env)
		case n.Command != "":
			what, flags = append(what, "command "+n.Command), append(flags, "--allow-command "+n.Command)
		default:
			what, flags = append(what, "file "+n.File), append(flags, "--allow-file "+n.File)
		}
	}
	return fmt.Errorf("%w: %s: start the agent with %s", protocol.ErrNotAllowed, strings.Join(what, ", "), strings.Join(flags, " "))
}

// theScenario parses the scenario of a job. References are resolved on this host, within the agent's reach;
// without leaves secrets unresolved, if only its system is started.
func theScenario(a *Agent, text []byte, files protocol.Files, without bool) (*scenario.Scenario, error) {
	var refused []scenario.Need
	runs, err := scenario.Resolve(scenario.Inputs{
		File: "scenario.yaml", Text: text, Drivers: a.Drivers, Env: a.Env, ReadOption: scenario.ReadOption, Elsewhere: without,
		ReadFile: files.ReadFile, Stat: files.Stat, ReadDir: files.ReadDir, Dir: "/",
		Permit: func(n scenario.Need) error {
			if a.Reach.has(n) {
				return nil
			}
			refused = append(refused, n)
			return protocol.ErrNotAllowed
		},
	})
	if err := refuse(refused); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("reading the scenario: %w", err)
	}
	if len(runs) != 1 {
		return nil, fmt.Errorf("%w: a scenario of %d runs", protocol.ErrMalformed, len(runs))
	}
	return runs[0], nil
}

// may handles a query.
func (a *Agent) may(r micro.Request) {
	var q protocol.Query
	err := a.open(r.Data(), &q)
	if err == nil {
		if _, missing := a.Drivers.Lookup(q.Driver); missing != nil {
			err = fmt.Errorf("%w: %w", driver.ErrUnsupported, missing)
		}
	}
	if err == nil {
		err = refuse(slices.DeleteFunc(q.Needs, func(n scenario.Need) bool { return a.Reach.has(n) }))
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), protocol.TryLimit)
		defer cancel()
		err = a.able(ctx, q.Faults)
	}
	var got protocol.Answer
	if err != nil {
		got.Error, got.Kind = err.Error(), protocol.KindOf(err)
		a.limited.Warn("a scenario is refused", "", "why", err)
	}
	reply(r, got)
}
