package cli

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	otlp "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/weirmq/weir/internal/latch"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/result"
)

// A fleet needs one endpoint: its coordinator has what all agents did.
func TestFleetMetricsSumAllAgents(t *testing.T) {
	needs.Time(t)
	var last atomic.Value
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		push := new(otlp.ExportMetricsServiceRequest)
		if b, err := io.ReadAll(q.Body); err == nil && proto.Unmarshal(b, push) == nil {
			last.Store(push)
		}
	}))
	defer collector.Close()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	at := l.Addr().String()
	l.Close()
	weir, dir := filepath.Join(withWeir(t), "weir"), t.TempDir()
	env := []string{"WEIR_FLEET_DIR=" + filepath.Join(dir, "fleet")}
	run := launched(t, weir, "run", dir, nil, env, "run", "--fleet", "2", "--fleet-wait", "90s", "--listen", at, "--driver", "noop", "--producers", "2",
		"--rate", "200/s", "--warmup", "500ms", "--measure", "2s", "--metrics", "0", "--otlp", collector.URL, "--out", "r")
	for _, name := range []string{"a", "b"} {
		launched(t, weir, name, dir, nil, env, "agent", "--join", "weir://"+at, "--name", name)
	}
	run.until(t, "weir: metrics at ")
	_, rest, _ := strings.Cut(run.stderr.String(), "weir: metrics at ")
	url, _, _ := strings.Cut(rest, "\n")
	var scraped string
	for !latch.Closed(run.ended) {
		if text := get(t, url); strings.Contains(text, "weir_messages_sent_total") {
			scraped = text
		}
		time.Sleep(100 * time.Millisecond)
	}
	if !strings.Contains(scraped, `phase="measure"`) {
		t.Errorf("Prometheus sees %q", scraped)
	}
	saved, err := result.Read(filepath.Join(dir, "r"))
	if err != nil {
		t.Fatalf("%v: %s", err, &run.stderr)
	}
	push, ok := last.Load().(*otlp.ExportMetricsServiceRequest)
	if !ok {
		t.Fatal("nothing was pushed")
	}
	var sent float64
	for _, m := range push.GetResourceMetrics()[0].GetScopeMetrics()[0].GetMetrics() {
		if m.GetName() == "weir_messages_sent_total" {
			for _, d := range m.GetSum().GetDataPoints() {
				sent += d.GetAsDouble()
			}
		}
	}
	if want := saved.Result.MessagesAll.Sent; uint64(sent) != want || want != 500 {
		t.Errorf("%v sent, by the last push, and %d by the result; want 500", sent, want)
	}
}
