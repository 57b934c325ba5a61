//go:build unix

package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/guard"
)

// A Serving says what to start by a recipe.
type Serving struct {
	Self       string            // weir's own binary (os.Executable), whose main calls guard.Main
	Definition driver.Definition // of the driver that asks whether the system answers
	Recipe     *Recipe           // one of the definition's
	Nodes      int               // 0 is 1
	Settings   map[string]string // of the recipe; no secrets: they are arguments
	Cache      string            // as CacheDir has it; the programs are there (Ensure)
	Log        *slog.Logger      // takes what goes wrong; nil: nobody
}

// announcement is what the supervising process prints when the system answers.
type announcement struct {
	Address   []string            `json:"address"`
	Options   map[string][]string `json:"options,omitempty"`
	Processes []Process           `json:"processes"`
	Version   string              `json:"version,omitempty"`
}

// Check refuses, with driver.ErrUnsupported, what the recipe does not have: a
// number of nodes, a setting, a value of one.
func (s *Serving) Check() error {
	r := s.Recipe
	if n := max(s.Nodes, 1); !slices.Contains(r.Nodes, n) {
		var have []string
		for _, n := range r.Nodes {
			have = append(have, strconv.Itoa(n))
		}
		return fmt.Errorf("%w: %s makes no system of %d nodes (%s)", driver.ErrUnsupported, r.Name, n, strings.Join(have, ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Settings)) {
		if err := r.CheckSetting(name, s.Settings[name]); err != nil {
			return err
		}
	}
	return nil
}

// StartSystem starts real servers by their recipe and returns when they answer,
// or with ErrStart, which carries what went wrong and what the server said last.
// The programs must be installed (Ensure). ctx bounds the start only, beside the
// recipe's own limit. The system runs until Stop, or until this process is gone.
func StartSystem(ctx context.Context, s Serving) (*Running, error) {
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStart, err)
	}
	log := s.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	name := s.Recipe.Name
	dir, err := os.MkdirTemp("", "weir-"+name+"-")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStart, err)
	}
	args := []string{s.Self, "internal", "system", s.Definition.Name, name, "--dir", dir, "--cache", s.Cache, "--nodes", strconv.Itoa(max(s.Nodes, 1))}
	for _, k := range slices.Sorted(maps.Keys(s.Settings)) {
		args = append(args, "--set", k+"="+s.Settings[k])
	}
	r, line, err := launch(ctx, s.Self, guard.Spec{
		Args: args, Env: environment(os.Environ()), Dir: dir, RemoveDir: true, Grace: s.Recipe.grace(),
	}, name, log)
	if err != nil {
		return nil, err
	}
	if err := r.take(line); err != nil {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), waitLimit)
		defer cancel()
		return nil, errors.Join(err, r.Stop(stop))
	}
	return r, nil
}

// take takes over what the supervising process announced.
func (r *Running) take(line string) error {
	var a announcement
	if err := json.Unmarshal([]byte(line), &a); err != nil {
		return fmt.Errorf("%w: reading its announcement: %w", ErrStart, err)
	}
	r.Address, r.Options, r.Processes, r.Version = a.Address, a.Options, a.Processes, a.Version
	r.Pids = nil
	for _, p := range a.Processes {
		r.Pids = append(r.Pids, p.Pids...)
	}
	return nil
}
