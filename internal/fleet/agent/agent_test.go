package agent

import (
	"flag"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/fleet/hub"
	"github.com/weirmq/weir/internal/must"
)

// How an agent and a coordinator do a run together is tested beside the coordinator.
func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "8") // these tests wait, most of the time
	goleak.VerifyTestMain(m)
}

// patience bounds waits of these tests.
const patience = time.Minute

// dial connects a process, and says by which ID.
func dial(t *testing.T, a admission.Address) (nc *nats.Conn, id string) {
	t.Helper()
	self := must.Get(admission.NewSelf())(t)
	nc = must.Get(hub.Dial(t.Context(), a, self, "agent", nil))(t)
	t.Cleanup(nc.Close)
	return nc, self.ID()
}
