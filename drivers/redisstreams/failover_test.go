package redisstreams

import (
	"context"
	"strconv"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/redistest"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// TestTheNextMasterIsFound lets another server replace the master, which is gone or continues as a
// replica. A client that kept to it would see an endless outage.
func TestTheNextMasterIsFound(t *testing.T) {
	killed := func(t *testing.T, first, _ *redistest.Server) {
		trial.Must(t, first.Kill)
	}
	demoted := func(t *testing.T, first, second *redistest.Server) {
		must.Do(t, raw(t, first.Address).ReplicaOf(within(t), "127.0.0.1", strconv.Itoa(second.Port)).Err())
	}
	single := func(p driver.Producer, m *driver.Message) { p.Publish(context.Background(), m) }
	batch := func(p driver.Producer, m *driver.Message) {
		p.(driver.BatchProducer).PublishBatch(context.Background(), []*driver.Message{m})
	}
	for _, x := range []struct {
		name    string
		replace func(t *testing.T, first, second *redistest.Server)
		publish func(driver.Producer, *driver.Message)
	}{
		{"killed", killed, single},
		{"demoted", demoted, single},
		{"killed, batches", killed, batch},
		{"demoted, batches", demoted, batch},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel() // each waits for seconds, on its own servers
			first := redistest.Start(t)
			second := redistest.Start(t, "--replicaof", "127.0.0.1", strconv.Itoa(first.Port))
			c := driver.Inside(trial.Opened(t, Definition(), driver.Run{ID: "r"}, trial.At([]string{first.Address, second.Address}, nil))).(*conn)
			declare(t, c)
			f, s := trial.NewLog(), trial.NewLog()
			stop := consume(t, c, driver.ConsumerSpec{}, s)
			p := produce(t, c, f)
			send := func(label string, enough func() bool) {
				t.Helper()
				n := 0
				eventually(t, label, func() bool {
					m := &driver.Message{Destination: "d", Payload: []byte(label + strconv.Itoa(n))}
					n++
					x.publish(p, m)
					_ = p.Flush(within(t))
					return enough()
				})
			}
			send("before", func() bool { return len(f.Confirmed()) >= 10 })
			eventually(t, "the replica has them", func() bool {
				n, err := raw(t, second.Address).XLen(within(t), "weir:r:d").Result()
				return err == nil && int(n) >= 10
			})
			must.Do(t, raw(t, second.Address).ReplicaOf(within(t), "NO", "ONE").Err())
			x.replace(t, first, second)
			had := len(f.Confirmed())
			send("after", func() bool { return len(f.Confirmed()) >= had+10 })
			eventually(t, "all that was confirmed", func() bool { return len(s.Distinct()) >= had+10 })
			if err := stop(); err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
}
