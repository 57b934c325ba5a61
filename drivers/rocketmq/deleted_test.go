package rocketmq

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// updateConfig is the request that changes settings of a running broker.
const updateConfig = 25

// TestDeletedMessagesAreCounted lets a broker delete files with messages that no consumer has read. It
// first looks for such files a minute after its start.
func TestDeletedMessagesAreCounted(t *testing.T) {
	s := served.Up(t, Definition(), 1)
	open := trial.Declared(t, Definition(), s.Options)
	c := driver.Inside(open).(*conn)
	must.Do(t, c.everyMaster(t.Context(), func(ctx context.Context, l *line) error {
		var hours []string
		for h := range 24 {
			hours = append(hours, fmt.Sprintf("%02d", h))
		}
		_, _, err := l.ask(ctx, updateConfig, nil, []byte(reserved+"=0\ndeleteWhen="+strings.Join(hours, ";")+"\n"))
		return err
	}))
	p, f := trial.Producer(t, open, "d")
	const n, size = 1500, 64 << 10 // one file of 64 MiB is full
	for range n / 10 {
		trial.Publish(t, p, 10, size)
		for range 10 {
			must.Do(t, f.Next(t))
		}
	}
	var facts driver.Facts
	if !trial.Eventually(func() bool {
		facts = must.Get(open.Facts(t.Context()))(t)
		return len(facts.Discarded) == 1 && facts.Discarded[0].Messages > 0
	}) {
		t.Fatalf("%+v; want messages of a file", facts.Discarded)
	}
	if d := facts.Discarded[0].Messages; d < 900 || d > 1100 {
		t.Errorf("%d messages deleted; want those of a file, about 1,000", d)
	}
	if len(facts.Discards) != 1 || !strings.Contains(facts.Discards[0], "after 0 h, read or not (fileReservedTime)") {
		t.Errorf("%q", facts.Discards)
	}
}
