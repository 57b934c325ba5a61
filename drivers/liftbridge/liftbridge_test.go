package liftbridge

import (
	"slices"
	"syscall"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
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
	trial.Must(t, s.KillAndRestart)
	if !trial.Eventually(func() bool { return f.Confirmed(t, p, 1) == 1 }) {
		t.Fatal("the producer did not continue")
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
	c := trial.Opened(t, Definition(), driver.Run{}, s.Options, "acks", "all", "min-insync", "2", "timeout", "2s")
	d := driver.Destination{Name: "d", Partitions: 1, Replicas: 3}
	trial.Declare(t, c, d)
	log := trial.NewLog()
	log.Consume(t, c, driver.ConsumerSpec{Settle: driver.SettleNone})
	p, f := trial.Producer(t, c, "d")
	confirmed := f.Confirmed(t, p, 100)
	var facts driver.Facts
	var err error
	if !trial.Eventually(func() bool {
		facts, err = c.Facts(t.Context())
		return err == nil && facts.Nodes == 3 && len(facts.Leaders) == 1
	}) {
		t.Fatalf("%+v, %v", facts, err)
	}
	must.Do(t, syscall.Kill(s.Pids[slices.Index(s.Address, facts.Leaders[0])], syscall.SIGKILL))
	if !trial.Eventually(func() bool { return f.Confirmed(t, p, 1) == 1 }) {
		t.Fatal("the producer did not continue")
	}
	confirmed += 1 + f.Confirmed(t, p, 100)
	log.Until(t, "what was confirmed", func() bool { return len(log.Got) >= confirmed })
}
