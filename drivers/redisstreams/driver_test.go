package redisstreams

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/redistest"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

func TestMain(m *testing.M) {
	served.Main(Definition(), redistest.Definition())
	goleak.VerifyTestMain(m)
}

// quiet is short: over loopback, an unexpected message would arrive within microseconds.
const quiet = 60 * time.Millisecond

// Sequential: each run checks for leaked goroutines.
func TestConformance(t *testing.T) {
	for _, run := range []struct {
		name    string
		nodes   int
		with    served.With
		options map[string][]string
	}{
		{name: "memory", nodes: 1},
		{
			name: "append-only file synced", nodes: 1,
			with: served.With{Settings: map[string]string{"appendonly": "yes", "appendfsync": "always"}},
		},
		{
			name: "three nodes, replicated", nodes: 3,
			with:    served.With{Settings: map[string]string{"appendonly": "yes"}},
			options: map[string][]string{"wait-replicas": {"2"}, "max-len": {"100000"}},
		},
		{
			name: "Valkey, waiting for the append-only file", nodes: 1,
			with:    served.With{Recipe: "valkey", Settings: map[string]string{"appendonly": "yes", "appendfsync": "always"}},
			options: map[string][]string{"wait-aof": {"true"}},
		},
		{
			name: "cluster of three masters and their replicas, replicated", nodes: 6,
			with:    served.With{Recipe: "redis-cluster"},
			options: map[string][]string{"wait-replicas": {"1"}},
		},
		{
			name: "cluster of three masters with two replicas each, replicated", nodes: 9,
			with:    served.With{Recipe: "redis-cluster"},
			options: map[string][]string{"wait-replicas": {"2"}},
		},
	} {
		t.Run(run.name, func(t *testing.T) {
			s := served.Up(t, Definition(), run.nodes, run.with)
			if run.nodes > 3 {
				t.Run("is formed", func(t *testing.T) { formsACluster(t, s, run.nodes) })
			}
			// Messages settled at once must not be claimed meanwhile, on a busy host.
			options := map[string][]string{"claim-after": {"2s"}}
			maps.Copy(options, s.Options)
			maps.Copy(options, run.options)
			def := Definition()
			cfg := must.Get(trial.Configure(def, options))(t)
			var kill func() func() error
			if run.nodes == 1 && run.with.Settings["appendonly"] == "yes" { // otherwise the streams go with the server
				kill = s.Kill
			}
			drivertest.Run(t, def, drivertest.Harness{
				Quiet: quiet, Options: options, At: s.At, Cut: s.Restart, Kill: kill, Stall: s.Stall, Yields: drivertest.Prefetch, Allocs: 52, Expect: 35,
				Offset: func(run, destination string, n int) (string, error) {
					all, err := entriesOf(t, cfg, run, destination, n+1)
					if err == nil && len(all) <= n {
						err = fmt.Errorf("there are %d entries", len(all))
					}
					if err != nil {
						return "", err
					}
					return all[n].ID, nil
				},
				// Destinations have no replicas of their own, regardless of the number of servers.
				Nodes: 1,
			})
		})
	}
}

// entriesOf returns the first n entries of a single-partition destination.
func entriesOf(t *testing.T, cfg driver.Config, run, destination string, n int) ([]redis.XMessage, error) {
	t.Helper()
	opened, err := cfg.Open(within(t), driver.Run{ID: run})
	if err != nil {
		return nil, err
	}
	c := opened.(*conn)
	defer func() { _ = c.Close(within(t)) }()
	keys, err := c.streams(within(t), destination)
	if err != nil {
		return nil, err
	}
	link, err := c.at(within(t), keys[0])
	if err != nil {
		return nil, err
	}
	return link.XRangeN(within(t), keys[0], "-", "+", int64(n)).Result()
}
