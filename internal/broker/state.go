//go:build unix

package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/flock"
)

// schemaKept is the format name of a kept system's state.
const schemaKept = "weir.kept/v1"

// ErrKept is returned when a system of that name is already up.
var ErrKept = errors.New("is already up")

// A Kept is a system that stays up after the weir that started it has ended.
type Kept struct {
	Schema    string              `json:"schema"`
	Name      string              `json:"name"`   // of the recipe
	Driver    string              `json:"driver"` // used to check that it answers
	Nodes     int                 `json:"nodes"`
	Settings  map[string]string   `json:"settings,omitempty"`
	Address   []string            `json:"address"`
	Options   map[string][]string `json:"options,omitempty"` // further options for a driver
	Processes []Process           `json:"processes"`
	Version   string              `json:"version,omitempty"` // installed version, as far as the source reports it
	Dir       string              `json:"dir"`               // holds everything the system writes
	Log       string              `json:"log"`               // log of the weir process that keeps it
	Keeper    int                 `json:"keeper"`            // pid of that process
	Since     time.Time           `json:"since"`
	Ended     string              `json:"ended,omitempty"` // why it ended by itself; "" while it runs

	Up bool `json:"up"` // whether its keeper is alive
}

// places are the files of a kept system.
type places struct{ state, lock, log string }

// placesOf returns the file paths for a name in the cache.
func placesOf(cache, name string) places {
	base := filepath.Join(cache, "running", name)
	return places{base + ".json", base + ".lock", base + ".log"}
}

// hold takes the lock of a name. The keeper holds it as long as it lives, so that a reused process ID
// cannot mislead. The error wraps flock.ErrHeld if another process has the lock.
func (p places) hold() (*os.File, error) { return flock.Try(p.lock) }

// held reports whether a keeper has the lock.
func (p places) held() bool {
	if _, err := os.Stat(p.lock); err != nil {
		return false
	}
	f, err := p.hold()
	if err == nil {
		_ = f.Close()
	}
	return errors.Is(err, flock.ErrHeld)
}

// write replaces the state file.
func (p places) write(k *Kept) error {
	b, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.state+".tmp", append(b, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(p.state+".tmp", p.state)
}

// clear removes the files.
func (p places) clear() error {
	var errs []error
	for _, f := range []string{p.state, p.state + ".tmp", p.log, p.lock} {
		if err := os.Remove(f); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// KeptNamed returns the kept system of the recipe with that name, or nil if there is none. If its
// keeper was killed, Up is false and its servers are gone.
func KeptNamed(cache, name string) (*Kept, error) {
	p := placesOf(cache, name)
	b, err := os.ReadFile(p.state)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what is up: %w", err)
	}
	k := &Kept{}
	if err := json.Unmarshal(b, k); err != nil || k.Schema != schemaKept || k.Name != name {
		return nil, fmt.Errorf("weir did not write %s (remove it)", p.state)
	}
	k.Up = k.Ended == "" && p.held()
	return k, nil
}

// AllKept returns the kept systems, sorted by name.
func AllKept(cache string) ([]*Kept, error) {
	files, err := filepath.Glob(filepath.Join(cache, "running", "*.json"))
	if err != nil {
		return nil, fmt.Errorf("reading what is up: %w", err)
	}
	slices.Sort(files)
	var out []*Kept
	for _, f := range files {
		k, err := KeptNamed(cache, strings.TrimSuffix(filepath.Base(f), ".json"))
		if err != nil {
			return nil, err
		}
		if k != nil {
			out = append(out, k)
		}
	}
	return out, nil
}
