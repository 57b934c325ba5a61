//go:build unix

package kafka

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/kafkaconn"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// TestAPartitionWithoutLeaderSaysSo kills one of three brokers, and with it the only replica of a
// partition, while a producer is open and before others are.
func TestAPartitionWithoutLeaderSaysSo(t *testing.T) {
	s := served.Up(t, Definition(), 3)
	c, blocked := trial.Blocking(t, Definition(), s.Options)
	d := driver.Destination{Name: "three", Partitions: 3, Replicas: 1}
	trial.Declare(t, c, d)
	p, f := trial.Producer(t, c, d.Name)
	must.Do(t, syscall.Kill(s.Pids[1], syscall.SIGKILL))
	// The other partitions continue to confirm messages.
	sent, confirmed := 0, 0
	const missing = "no leader (LEADER_NOT_AVAILABLE)" // not only that the broker is away
	if !trial.Eventually(func() bool {
		p.Publish(t.Context(), &driver.Message{Destination: d.Name, Key: fmt.Append(nil, sent%20), Payload: []byte("x")})
		sent++
		for len(f) > 0 {
			if <-f == nil {
				confirmed++
			}
		}
		return strings.Contains(blocked(), missing)
	}) {
		t.Errorf("a producer that is open: %q", blocked())
	}
	if confirmed == 0 || confirmed >= sent {
		t.Errorf("%d of %d confirmed; want those of two partitions", confirmed, sent)
	}
	topic := must.Get(kafkaconn.Topic(driver.Inside(c).(*conn).Run, d.Name))(t)
	others := trial.Opened(t, Definition(), driver.Run{Existing: true}, s.Options)
	_, consumer := others.Consumer(t.Context(), driver.ConsumerSpec{Subscription: "s", Destinations: []string{topic}, Settle: driver.SettleBatch})
	_, producer := others.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{topic}}, f)
	for what, err := range map[string]error{"consumer": consumer, "producer": producer} {
		if !errors.Is(err, driver.ErrBlocked) || !strings.Contains(err.Error(), topic+": "+missing) {
			t.Errorf("another %s: %v", what, err)
		}
	}
}
