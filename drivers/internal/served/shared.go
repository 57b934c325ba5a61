//go:build unix

package served

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/tested"
	"github.com/weirmq/weir/internal/broker"
)

// Shared keeps one system per (recipe, nodes, settings) requested by a binary's tests, until the
// last test has ended. It is for tests that create their own destinations and leave the servers as
// they found them; they may stall and resume servers, restart them, and kill them if they restart
// them. A test that configures servers starts its own with the function Up.
type Shared struct {
	def     driver.Definition
	mu      sync.Mutex
	systems map[string]*System
}

// NewShared returns a Shared without systems.
func NewShared(def driver.Definition) *Shared {
	return &Shared{def: def, systems: map[string]*System{}}
}

// Up returns the system, which it starts for the first test that requests it. The caller owns the
// returned Options. It skips or fails the test like the function Up.
func (s *Shared) Up(t testing.TB, nodes int, with ...With) *System {
	t.Helper()
	var w With
	if len(with) > 0 {
		w = with[0]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprintf("%q %d %q", w.Recipe, nodes, w.Settings) // fmt sorts the keys of maps
	kept := s.systems[key]
	if kept != nil {
		select {
		case <-kept.running.Done(): // a test that killed it did not restart it
			kept = nil
		default:
		}
	}
	if kept == nil {
		kept = start(t, s.def, nodes, w)
		s.systems[key] = kept
	}
	t.Setenv(tested.VariableRecipe, kept.recipe) // like the function Up
	kept.take()                                  // a test may have restarted it
	mine := *kept
	mine.Options = maps.Clone(kept.Options)
	return &mine
}

// Main is TestMain for the tests of a driver: it calls the function Main, runs the tests as Around
// does, and then looks for goroutines that are left.
func (s *Shared) Main(m *testing.M, options ...goleak.Option) {
	Main(s.def)
	goleak.VerifyTestMain(s.Around(m), options...)
}

// Around wraps m: Run of the result runs the tests, stops the systems, and returns the exit code,
// which is not 0 if a system did not stop.
func (s *Shared) Around(m *testing.M) *Around { return &Around{m, s} }

// Around is what Shared.Around returns.
type Around struct {
	tests  *testing.M
	shared *Shared
}

// Run runs the tests and stops the systems, and waits for both.
func (a *Around) Run() int {
	code := a.tests.Run()
	var all sync.WaitGroup
	failed := make(chan string, len(a.shared.systems))
	for what, system := range a.shared.systems {
		all.Go(func() {
			if err := system.stop(); err != nil {
				failed <- fmt.Sprintf("stopping the shared system %s: %v", what, err)
			}
		})
	}
	all.Wait()
	close(failed)
	for text := range failed {
		fmt.Fprintln(os.Stderr, text)
		code = max(code, 1)
	}
	return code
}

// start starts a system and waits until it answers. Nothing stops it.
func start(t testing.TB, def driver.Definition, nodes int, w With) *System {
	t.Helper()
	t.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise each process with the race detector exits 1 s late
	r, _ := install(t, def, w.Recipe, nodes)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	running, err := broker.StartSystem(ctx, broker.Serving{
		Self: self, Definition: def, Recipe: r, Nodes: nodes, Settings: w.Settings, Cache: cache(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	note(t, Line{Recipe: r.Name, Nodes: nodes, Version: strings.ReplaceAll(version(r, running), " ", "_")})
	s := &System{recipe: r.Name, running: running}
	s.take()
	return s
}
