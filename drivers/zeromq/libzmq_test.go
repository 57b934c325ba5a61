//go:build libzmq

package zeromq

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/drivers/internal/trial"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	for _, test := range []struct{ pattern, transport, bind string }{
		{"pipeline", "ipc", "consumers"},
		{"pipeline", "tcp", "consumers"},
		{"pubsub", "ipc", "consumers"},
		{"pubsub", "tcp", "producers"},
	} {
		t.Run(test.pattern+", "+test.transport+", "+test.bind+" bind", func(t *testing.T) {
			options := map[string][]string{"pattern": {test.pattern}, "transport": {test.transport}, "bind": {test.bind}, "hwm": {"4096"}}
			def := Definition()
			if test.pattern == "pipeline" {
				def.New = func() driver.Config { return &attended{Config: *Definition().New().(*Config)} }
			}
			drivertest.Run(t, def, drivertest.Harness{Quiet: 50 * time.Millisecond, Options: options, Expect: 24})
		})
	}
}

func TestUnobservableOptionsAreRejected(t *testing.T) {
	for _, options := range [][]string{{"transport", "inproc"}, {"bind", "producers"}, {"hwm", "0"}} {
		var e *driver.OptionError
		if _, err := trial.Open(t, Definition(), driver.Run{ID: "r"}, nil, options...); !errors.As(err, &e) || e.Name != options[0] {
			t.Errorf("%v: %v", options, err)
		}
	}
}

// TestBinaryReportsItsLibrary: the C library reports its own version.
func TestBinaryReportsItsLibrary(t *testing.T) {
	f, err := trial.Declared(t, Definition(), nil).Facts(t.Context())
	if err != nil || f.Name != "libzmq" || !strings.HasPrefix(f.Version, "4.") || f.Confirms.Guarantee != driver.Buffered {
		t.Errorf("%+v, %v", f, err)
	}
	if d := Definition(); d.Client != "github.com/pebbe/zmq4" {
		t.Errorf("the client is %s", d.Client)
	}
}

// TestSlowConsumerBlocksItsPipeline: a full queue blocks, and nothing is lost.
func TestSlowConsumerBlocksItsPipeline(t *testing.T) {
	c := trial.Declared(t, Definition(), nil, "hwm", "4")
	s := trial.Hold(t, c, "s", 0)
	p, f := trial.Producer(t, c, "d")
	const n = 500
	trial.Publish(t, p, n, 64<<10)
	time.Sleep(500 * time.Millisecond)
	if len(f) == n {
		t.Error("all of 32 MB are confirmed, and the consumer has taken nothing")
	}
	s.Release()
	if !trial.Eventually(func() bool { return s.Count() == n && len(f) == n && trial.BacklogOf(t, c, "s") == 0 }) {
		t.Errorf("of %d messages %d are confirmed and %d delivered, the backlog is %d", n, len(f), s.Count(), trial.BacklogOf(t, c, "s"))
	}
}
