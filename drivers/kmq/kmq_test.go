//go:build unix

package kmq

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/kafkaconn"
	"github.com/weirmq/weir/drivers/internal/kafkatest"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

func open(t testing.TB, address []string, run driver.Run, options map[string]string, ds ...driver.Destination) *conn {
	t.Helper()
	return driver.Inside(kafkatest.Open(t, Definition(), address, run, options, ds...)).(*conn)
}

// comesAgain rejects some messages once, and checks that only they are redelivered, flagged.
func comesAgain(t *testing.T, s *served.System, replicas int) {
	for _, settle := range []driver.Settle{driver.SettleEach, driver.SettleBatch} {
		t.Run("refused, settle "+settle.String(), func(t *testing.T) {
			c := open(t, s.Address, driver.Run{ID: "again"}, map[string]string{"redeliver-after": "5s"},
				driver.Destination{Name: "d", Partitions: 3, Replicas: replicas})
			g := trial.NewLog()
			refused := map[string]int{}
			g.Refuse = func(d driver.Delivery) bool {
				if text := string(d.Payload); text < "000010" && refused[text] < 2 {
					refused[text]++
					return true
				}
				return false
			}
			spec := driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}, Settle: settle, Prefetch: 1}
			g.Consume(t, c, spec)
			kafkatest.Publish(t, c, "d", 0, 40, func(i int) []byte { return fmt.Appendf(nil, "%d", i) })
			kafkatest.Eventually(t, "all", func() bool { return g.All(func(g *trial.Log) bool { return g.Settlements >= 40 }) })
			kafkatest.Eventually(t, "nothing left", func() bool {
				n := must.Get(c.Backlog(t.Context(), "s", spec.Destinations))(t)
				return n == 0
			})
			g.Lock()
			defer g.Unlock()
			seen := map[string]int{}
			for i, text := range g.Got {
				if seen[text]++; g.Deliveries[i].Redelivered != (text < "000010") {
					t.Errorf("%s is flagged as redelivered: %v", text, g.Deliveries[i].Redelivered)
				}
			}
			if len(seen) != 40 || len(g.Got) != 40 {
				t.Errorf("%d of 40 messages came, in %d deliveries", len(seen), len(g.Got))
			}
			if len(g.Faults) > 0 {
				t.Errorf("faults: %v", g.Faults)
			}
		})
	}
}

// theLarge rejects messages once, one of them larger than the client's default batch.
func theLarge(t *testing.T, s *served.System) {
	const most = kafkaconn.MaxPayload
	c := open(t, s.Address, driver.Run{ID: "large"}, map[string]string{"redeliver-after": "1s"}, driver.Destination{Name: "d"})
	g := trial.NewLog()
	refused := map[int]bool{}
	g.Refuse = func(d driver.Delivery) bool {
		again := refused[len(d.Payload)]
		refused[len(d.Payload)] = true
		return !again
	}
	g.Consume(t, c, driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}, Prefetch: 1})
	f := &kafkatest.Fates{}
	p := must.Get(c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"d"}, InFlight: 3, Largest: most}, f))(t)
	for _, size := range []int{2 << 20, most - 1, most} {
		p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: bytes.Repeat([]byte("x"), size)})
	}
	must.Do(t, errors.Join(p.Flush(t.Context()), p.Close(t.Context()), f.Wrong(3)))
	kafkatest.Eventually(t, "all", func() bool { return g.All(func(g *trial.Log) bool { return g.Settlements >= 3 || len(g.Faults) > 0 }) })
	g.Lock()
	defer g.Unlock()
	if len(g.Faults) > 0 {
		t.Errorf("faults: %v", g.Faults)
	}
	for i := range g.Deliveries {
		if !g.Deliveries[i].Redelivered {
			t.Errorf("delivery %d is not flagged as redelivered", i)
		}
	}
}
