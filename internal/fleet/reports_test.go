package fleet

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weirmq/weir/internal/fleet/fleettest"
	"github.com/weirmq/weir/internal/must"
)

// What a killed coordinator left is kept for a week.
func TestOldCoordinatorStreamsAreRemoved(t *testing.T) {
	t.Parallel()
	dir, keep := t.TempDir(), fleettest.Keep(t)
	first := must.Get(Open(t.Context(), Options{Keep: keep, Dir: dir, Version: ownVersion}))(t)
	first.cancel()
	first.side.Wait()
	first.disconnect()
	second := must.Get(Open(t.Context(), Options{Keep: keep, Dir: dir, Version: ownVersion}))(t)
	defer second.Close()
	if _, err := second.js.Stream(t.Context(), streamPrefix+first.session); err != nil {
		t.Errorf("the stream of the first, just now: %v", err)
	}
	second.clear(t.Context(), time.Now().Add(reportsKept+time.Minute))
	if _, err := second.js.Stream(t.Context(), streamPrefix+first.session); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("the stream of the first, after a week: %v", err)
	}
	if _, err := second.js.Stream(t.Context(), streamPrefix+second.session); err != nil {
		t.Errorf("its own, after a week: %v", err)
	}
}
