package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/natsd/natsdtest"
	"github.com/weirmq/weir/result"
)

// A run sends to an existing stream, and a second run receives and accounts for it, once completely and
// once after messages were deleted.
func TestLossBetweenTwoRuns(t *testing.T) {
	t.Parallel()
	address := natsdtest.Start(t, func(o *server.Options) { o.JetStream, o.StoreDir = true, t.TempDir() }).ClientURL()
	nc := must.Get(nats.Connect(address))(t)
	defer nc.Close()
	js := must.Get(jetstream.New(nc))(t)
	stream := must.Get(js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "orders", Subjects: []string{"orders"}}))(t)
	must.Get(js.Publish(t.Context(), "orders", []byte("of somebody else")))(t)
	dir := t.TempDir()
	run := func(out string, args ...string) (int, *result.Result, string) {
		code, stdout, stderr := do(t, World{Dir: dir, Drivers: all.Definitions()}, append([]string{"run", "--driver", "jetstream", "--address", address, "--out", out}, args...)...)
		s, err := result.Read(filepath.Join(dir, out))
		if err != nil {
			t.Fatalf("%v\n%s%s", err, stdout, stderr)
		}
		return code, s.Result, stdout.String() + stderr.String()
	}
	_, sent, _ := run("sent", "--mode", "produce", "--topology.names", "orders", "--rate", "1000/s", "--warmup", "200ms", "--measure", "800ms", "--producers", "2")
	total := sent.MessagesAll.Sent
	if total != 1000 || len(sent.Streams) != 2 {
		t.Fatalf("sent %d messages on %d streams", total, len(sent.Streams))
	}
	for _, tt := range []struct {
		out  string
		lost []uint64 // by the stream's sequences, of which the first is not of the run
	}{{"whole", nil}, {"cut", []uint64{2, 3, 500, 1001}}} {
		for _, seq := range tt.lost {
			must.Do(t, stream.DeleteMsg(t.Context(), seq))
		}
		code, got, said := run(tt.out, "--mode", "consume", "--of", "sent", "--slo", "lost == 0")
		lost := uint64(len(tt.lost))
		m := got.MessagesAll
		if m.Lost != lost || m.Delivered != total-lost || m.Confirmed != total || m.Foreign != 1 || m.Duplicated+m.Reordered+m.Corrupted+m.Pending > 0 {
			t.Errorf("%s: %+v", tt.out, m)
		}
		if of := got.OfRun; of == nil || !of.Booked || of.Number != sent.Run.Number || of.Received != total-lost {
			t.Errorf("%s: of_run is %+v; want run %d", tt.out, of, sent.Run.Number)
		}
		if (lost > 0) != (code == int(Lost)) || (lost > 0) != strings.Contains(said, "lost 4, of 1,000 sent") {
			t.Errorf("%s: exit code %d\n%s", tt.out, code, said)
		}
		if got.Latency.E2E.Response != nil || got.Latency.E2E.Service != nil || got.Throughput.SendS != 0 {
			t.Errorf("%s: it has latencies, or a time in which it sent", tt.out)
		}
		for _, c := range got.Verdict.Checks {
			if (c.Name == "books" || c.Name == "run") && c.Status != result.Valid {
				t.Errorf("%s: %s is %s: %s", tt.out, c.Name, c.Status, c.Value)
			}
		}
	}
	if code, stdout, stderr := do(t, World{Dir: dir, Drivers: all.Definitions()}, "run", "--driver", "jetstream", "--address", address, "--mode", "consume", "--of", "cut"); code != int(Usage) {
		t.Errorf("of a run that received: exit code %d\n%s%s", code, stdout, stderr)
	}
	if _, err := js.Stream(t.Context(), "orders"); err != nil {
		t.Errorf("the stream is gone: %v", err)
	}
}
