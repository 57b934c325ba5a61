package agent

import (
	"bytes"
	"flag"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/fleet/hub"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/measure"
)

// How an agent and a coordinator do a run together is tested beside the coordinator.
func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "8") // these tests wait, most of the time
	goleak.VerifyTestMain(m)
}

// patience bounds every wait of these tests.
const patience = 60 * time.Second

// until waits for something to be so.
func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

// keepOf makes a keep for a test.
func keepOf(t *testing.T) *admission.Keep {
	t.Helper()
	return must.Get(admission.Open(t.TempDir(), time.Now()))(t)
}

// dial connects a process, and says by which ID.
func dial(t *testing.T, a admission.Address) (nc *nats.Conn, id string) {
	t.Helper()
	self := must.Get(admission.NewSelf())(t)
	nc = must.Get(hub.Dial(t.Context(), a, self, "agent", nil))(t)
	t.Cleanup(nc.Close)
	return nc, self.ID()
}

// same checks that two distributions have the same counts in the same buckets.
func same(t *testing.T, what string, got, want *measure.Counts) {
	t.Helper()
	a := must.Get(got.AppendBinary(nil))(t)
	b := must.Get(want.AppendBinary(nil))(t)
	if !bytes.Equal(a, b) {
		t.Errorf("%s: %d values up to %d, want %d up to %d, in the same buckets", what, got.Total(), got.Max(), want.Total(), want.Max())
	}
}
