//go:build unix

package kafka

import (
	"context"
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/kafkaconn"
	"github.com/weirmq/weir/drivers/internal/served"
)

// shared is the broker of all tests that do not configure it differently.
var shared = served.NewShared(Definition())

func TestMain(m *testing.M) {
	served.Main(Definition(), hosted())
	goleak.VerifyTestMain(shared.Around(m))
}

// Sequential: each run checks for leaked goroutines.
func TestConformance(t *testing.T) {
	t.Run("one broker", func(t *testing.T) {
		s := shared.Up(t, 1)
		drivertest.Run(t, Definition(), drivertest.Harness{Options: s.Options, At: s.At, Cut: s.Restart, Stall: s.Stall, Yields: drivertest.Prefetch, Offset: offset, Expect: 33})
	})
	t.Run("transactions", func(t *testing.T) {
		s := shared.Up(t, 1)
		options := maps.Clone(s.Options)
		options["transaction"] = []string{"100"}
		drivertest.Run(t, Definition(), drivertest.Harness{
			Options: options, At: s.At, Cut: s.Restart, Stall: s.Stall, Yields: drivertest.Prefetch, Expect: 32,
			Offset: func(run, destination string, n int) (string, error) { return amongEnds(s, run, destination, n) },
		})
	})
	t.Run("three brokers", func(t *testing.T) {
		s := served.Up(t, Definition(), 3)
		drivertest.Run(t, Definition(), drivertest.Harness{
			Options: s.Options, At: s.At, Nodes: 3, Offset: offset, Yields: drivertest.Prefetch, Expect: 31,
			Waive: map[string]string{
				"LostConnectionReported": "the run on one broker covers it, in a third of the time",
				"BacklogIsAsked":         "the run on one broker covers it",
			},
		})
		replays(t, s)
	})
}

// offset returns the offset of the n-th message in a new topic.
func offset(_, _ string, n int) (string, error) { return strconv.Itoa(n), nil }

// amongEnds returns the offset of the n-th message in a topic that also contains transaction
// markers.
func amongEnds(s *served.System, run, destination string, n int) (string, error) {
	topic, err := kafkaconn.Topic(driver.Run{ID: run}, destination)
	if err != nil {
		return "", err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Address...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		return "", err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		for it := client.PollFetches(ctx).RecordIter(); !it.Done(); n-- {
			if r := it.Next(); n == 0 {
				return strconv.FormatInt(r.Offset, 10), nil
			}
		}
	}
	return "", ctx.Err()
}
