package trial

import (
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/weirmq/weir/driver"
)

// A Held is the Log of a consumer that blocks in Deliver until Release.
type Held struct {
	*Log
	Release func() // unblocks it; once is enough
	End     func() // stops the consumer, as the end of the test does
}

// Hold runs a consumer of the destination "d" that settles nothing, until End or the end of the
// test.
func Hold(t testing.TB, c driver.Conn, subscription string, index int) *Held {
	t.Helper()
	h, gate := &Held{Log: NewLog()}, make(chan struct{})
	h.Release = sync.OnceFunc(func() { close(gate) })
	h.OnDeliver = func([]driver.Delivery) error { <-gate; return nil }
	stop := h.Consume(t, c, driver.ConsumerSpec{Subscription: subscription, Index: index, Settle: driver.SettleNone})
	h.End = sync.OnceFunc(func() {
		h.Release()
		stop()
	})
	t.Cleanup(h.End)
	return h
}

// Count returns the number of delivered messages.
func (l *Log) Count() int {
	l.Lock()
	defer l.Unlock()
	return len(l.Got)
}

// Publish sends n messages of size bytes to the destination "d".
func Publish(t testing.TB, p driver.Producer, n, size int) {
	for range n {
		p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: make([]byte, size)})
	}
}

// ModuleVersion checks that a driver's stated module version matches go.mod.
func ModuleVersion(t testing.TB, module, stated string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}}", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(out)); got != stated {
		t.Errorf("go.mod has %s, the driver says %s", got, stated)
	}
}
