package liftbridge

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
)

func TestGuaranteesAreTheServers(t *testing.T) {
	served.Guarantees(t, Definition(), shared, "")
}

// TestServerIsKilled checks that all confirmed messages arrive, and that producer and consumer
// continue.
func TestServerIsKilled(t *testing.T) {
	s := served.Up(t, Definition(), 1)
	c, log := trial.Declared(t, Definition(), s.Options, "timeout", "1s"), trial.NewLog()
	stop := log.Consume(t, c, driver.ConsumerSpec{Settle: driver.SettleNone})
	p, f := trial.Producer(t, c, "d")
	confirmed := f.Confirmed(t, p, 100)
	log.Until(t, "the first messages", func() bool { return len(log.Got) == confirmed })
	confirmed += f.Confirmed(t, p, 1000)
	if err := s.KillAndRestart(); err != nil {
		t.Fatal(err)
	}
	if !trial.Eventually(func() bool { return f.Confirmed(t, p, 1) == 1 }) {
		t.Fatal("the producer did not go on")
	}
	confirmed += 1 + f.Confirmed(t, p, 100)
	log.Until(t, "what was confirmed", func() bool { return len(log.Got) >= confirmed && len(log.Faults) > 0 })
	if n := trial.Backlog(t, c); n != 0 {
		t.Errorf("backlog of %d", n)
	}
	stop()
}

// TestLeaderDies kills the leader of three servers.
func TestLeaderDies(t *testing.T) {
	s := served.Up(t, Definition(), 3, served.With{Settings: map[string]string{
		"max-idle-wait": "1s", "max-lag-time": "2s", "max-leader-timeout": "2s",
	}})
	c, err := trial.Open(t, Definition(), driver.Run{}, s.Options, "acks", "all", "min-insync", "2", "timeout", "2s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	d := driver.Destination{Name: "d", Partitions: 1, Replicas: 3}
	if err := c.Declare(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	log := trial.NewLog()
	log.Consume(t, c, driver.ConsumerSpec{Settle: driver.SettleNone})
	p, f := trial.Producer(t, c, "d")
	confirmed := f.Confirmed(t, p, 100)
	var facts driver.Facts
	if !trial.Eventually(func() bool {
		facts, err = c.Facts(t.Context())
		return err == nil && facts.Nodes == 3 && len(facts.Leaders) == 1
	}) {
		t.Fatalf("%+v, %v", facts, err)
	}
	if err := syscall.Kill(s.Pids[slices.Index(s.Address, facts.Leaders[0])], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if !trial.Eventually(func() bool { return f.Confirmed(t, p, 1) == 1 }) {
		t.Fatal("the producer did not go on")
	}
	confirmed += 1 + f.Confirmed(t, p, 100)
	log.Until(t, "what was confirmed", func() bool { return len(log.Got) >= confirmed })
}

func TestMissingStream(t *testing.T) {
	s := shared.Up(t, 1)
	c, err := trial.Open(t, Definition(), driver.Run{Existing: true}, s.Options)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"missing"}}, make(trial.Fates, 1))
	_, other := c.Consumer(t.Context(), driver.ConsumerSpec{Destinations: []string{"missing"}, Settle: driver.SettleNone})
	if !errors.Is(err, driver.ErrUnsupported) || !errors.Is(other, driver.ErrUnsupported) {
		t.Errorf("%v; %v", err, other)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
