//go:build unix

package broker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/weirmq/weir/internal/guard"
	"github.com/weirmq/weir/internal/netpartition"
)

// announcement is the line that the supervisor prints when the system answers.
type announcement struct {
	Address   []string            `json:"address"`
	Options   map[string][]string `json:"options,omitempty"`
	Processes []Process           `json:"processes"`
	Version   string              `json:"version,omitempty"`
	Disks     []int               `json:"disks,omitempty"` // processes that serve slowable disks
}

// settles is how long the supervisor may take, beyond the recipe's grace for ending servers, to reap
// those that it killed.
const settles = 3 * time.Second

// StartSystem starts the real servers of a recipe and returns once they answer. The error wraps
// ErrStart and carries the cause and the last output of the server. The programs must be installed
// (Ensure). ctx bounds the start only, in addition to the recipe's own limit. The system runs until
// Stop, or until this process is gone.
func StartSystem(ctx context.Context, s Serving) (*Running, error) {
	if err := cmp.Or(s.Check(), s.Fits()); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStart, err)
	}
	log := s.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	tell := telling(s.OnEvent, log)
	name := s.Recipe.Name
	dir, err := os.MkdirTemp("", "weir-"+name+"-")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStart, err)
	}
	args := []string{s.Self, "internal", "system", s.Definition.Name, s.Recipe.Ref(), "--dir", dir, "--cache", s.Cache, "--nodes", strconv.Itoa(max(s.Nodes, 1))}
	if s.Bind != "" {
		args = append(args, "--bind", s.Bind)
	}
	if s.Disks {
		args = append(args, "--disks")
	}
	if s.Slow {
		args = append(args, "--slow")
	}
	groups := ""
	if s.Cuts {
		if groups, err = netpartition.Path(filepath.Base(dir)); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrStart, errors.Join(err, os.RemoveAll(dir)))
		}
		args = append(args, "--groups", groups)
	}
	for _, p := range s.Places {
		args = append(args, "--place", p.Address+"="+p.Space)
	}
	for _, k := range slices.Sorted(maps.Keys(s.Settings)) {
		args = append(args, "--set", k+"="+s.Settings[k])
	}
	r, line, err := launch(ctx, s.Self, s.Within, guard.Spec{
		Args: args, Env: environment(os.Environ()), Dir: dir, RemoveDir: true, Orderly: true, Group: groups, Grace: s.Recipe.grace() + settles,
	}, name, log, tell)
	if err != nil {
		return nil, err
	}
	go r.watch(name, true, tell)
	err = r.take(line)
	if err == nil && s.Cuts {
		if r.cutter, err = netpartition.New(groups, max(s.Nodes, 1)); err != nil {
			err = fmt.Errorf("%w: %w", ErrStart, err)
		}
	}
	if err != nil {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), waitLimit)
		defer cancel()
		return nil, errors.Join(err, r.Stop(stop))
	}
	return r, nil
}

// take applies what the supervisor announced.
func (r *Running) take(line string) error {
	var a announcement
	if err := json.Unmarshal([]byte(line), &a); err != nil {
		return fmt.Errorf("%w: reading its announcement: %w", ErrStart, err)
	}
	r.Address, r.Options, r.Processes, r.Version, r.Disks = a.Address, a.Options, a.Processes, a.Version, a.Disks
	r.Pids = nil
	for _, p := range a.Processes {
		r.Pids = append(r.Pids, p.Pids...)
	}
	return nil
}
