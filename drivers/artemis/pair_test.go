package artemis

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// TestABackupTakesOver kills the active server of a pair, and then queries its backup.
func TestABackupTakesOver(t *testing.T) {
	s := served.Up(t, Definition(), 2)
	c := trial.Declared(t, Definition(), s.Options)
	facts := func() driver.Facts {
		f := trial.Facts(t, c)
		return f
	}
	both := driver.Confirms{Guarantee: driver.Replicated, Copies: driver.CopiesAll}
	if f := facts(); f.Confirms != both || f.Nodes != 2 || !slices.Equal(f.Leaders, s.Address[:1]) {
		t.Fatalf("a pair: %+v; want %+v, led by %s", f, both, s.Address[0])
	}
	two := driver.Destination{Name: "two", Partitions: 1, Replicas: 2}
	if err := c.Declare(t.Context(), two); err != nil {
		t.Errorf("two replicas in a pair: %v", err)
	}
	fleeting := trial.Declared(t, Definition(), s.Options, "durable", "no")
	if f, err := fleeting.Facts(t.Context()); err != nil || f.Confirms != (driver.Confirms{Guarantee: driver.Received}) {
		t.Errorf("messages that are not durable: %+v, %v", f, err)
	}
	p, f := trial.Producer(t, c, "d")
	const n = 50
	if got := f.Confirmed(t, p, n); got != n {
		t.Fatalf("%d of %d confirmed", got, n)
	}
	must.Do(t, syscall.Kill(s.Pids[0], syscall.SIGKILL))
	if !trial.Eventually(func() bool { return f.Confirmed(t, p, 1) == 1 }) {
		t.Fatal("the producer does not get to the backup")
	}
	if got := trial.Backlog(t, c); got < n+1 {
		t.Errorf("the backup has %d messages of the %d that were confirmed", got, n+1)
	}
	alone := driver.Confirms{Guarantee: driver.Received, Stable: driver.StableFsync}
	if f := facts(); f.Confirms != alone || f.Nodes != 1 || !slices.Equal(f.Leaders, s.Address[1:]) {
		t.Errorf("a backup that took over: %+v; want %+v, led by %s", f, alone, s.Address[1])
	}
	if err := c.Declare(t.Context(), two); !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "2 replicas: the server has no backup now") {
		t.Errorf("two replicas without a backup: %v", err)
	}
}

// TestReplicasNeedAPair requests more copies than there are servers.
func TestReplicasNeedAPair(t *testing.T) {
	one := trial.Declared(t, Definition(), shared.Up(t, 1).Options)
	err := one.Declare(t.Context(), driver.Destination{Name: "two", Partitions: 1, Replicas: 2})
	if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "no replication (ha-policy)") {
		t.Errorf("two replicas on one server: %v", err)
	}
}
