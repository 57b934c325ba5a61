package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

func TestUnusableMetricsAddressIsRejected(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	for at, want := range map[string]string{l.Addr().String(): "address already in use", "http": "PORT, :PORT or HOST:PORT"} {
		dir := t.TempDir()
		code, _, stderr := do(t, World{Dir: dir}, "run", "--driver", "chan", "--metrics", at, "--out", "r")
		if _, err := os.Stat(filepath.Join(dir, "r")); code != int(Usage) || err == nil || !strings.Contains(stderr.String(), "--metrics: ") || !strings.Contains(stderr.String(), want) {
			t.Errorf("--metrics %s: exit code %d, folder %v; want 2, none, and %q:\n%s", at, code, err, want, stderr)
		}
	}
}

// get returns the body of a page, "" where there is none.
func get(t *testing.T, at string) string {
	t.Helper()
	q := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, at, http.NoBody))(t)
	r, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(q)
	if err != nil {
		return ""
	}
	defer r.Body.Close()
	b, _ := io.ReadAll(r.Body)
	return string(b)
}

// dashboardAsks are the expressions of the dashboard for Grafana, with Grafana's variables
// filled in.
func dashboardAsks(t *testing.T) []string {
	raw, err := os.ReadFile("../../deploy/grafana/weir.json")
	if err != nil {
		t.Error(err)
	}
	var d struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Error(err)
	}
	var all []string
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			all = append(all, strings.NewReplacer("$run", ".*", "$__rate_interval", "5s").Replace(q.Expr))
		}
	}
	if len(all) == 0 {
		t.Error("the dashboard asks for nothing")
	}
	return all
}

// With a push per second and one at the end. A missing collector is reported, and does no harm.
func TestARunIsPushedToOpenTelemetry(t *testing.T) {
	var pushes atomic.Int32
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		if b, err := io.ReadAll(q.Body); err == nil && bytes.Contains(b, []byte("weir_messages_sent_total")) && q.URL.Path == "/v1/metrics" {
			pushes.Add(1)
		}
	}))
	at := collector.URL
	run := func(name string) (int, string) {
		code, _, stderr := do(t, World{Dir: t.TempDir()}, "run", "--driver", "chan", "--rate", "100/s", "--warmup", "100ms", "--measure", "1200ms", "--quiet", "--otlp", at, "--out", name)
		return code, stderr.String()
	}
	if code, said := run("there"); code != int(OK) && code != int(Invalid) || pushes.Load() < 1 || strings.Contains(said, "--otlp") {
		t.Errorf("exit code %d, %d pushes; want some:\n%s", code, pushes.Load(), said)
	}
	collector.Close()
	code, said := run("away")
	if code != int(OK) && code != int(Invalid) || strings.Count(said, "a push failed, and the run continues") != 1 || !strings.Contains(said, "pushes failed; the result folder has all figures") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	for bad, want := range map[string]string{"127.0.0.1:4318": "is not a URL of OTLP over HTTP", "http://u:secret@a": "has a user"} {
		code, _, stderr := do(t, World{Dir: t.TempDir()}, "run", "--driver", "chan", "--otlp", bad)
		if said := stderr.String(); code != int(Usage) || !strings.Contains(said, "--otlp: "+want) || strings.Contains(said, "secret") {
			t.Errorf("--otlp %s: exit code %d:\n%s", bad, code, said)
		}
	}
}

// Uses Debian's package prometheus.
func TestARealPrometheusScrapesARun(t *testing.T) {
	needs.Time(t)
	t.Parallel()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		needs.Host(t, "prometheus", err)
	}
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	at := l.Addr().String()
	must.Do(t, l.Close())
	dir, answer := t.TempDir(), ""
	stderr, ended := &watch{}, make(chan struct{})
	stderr.when("/metrics", func() {
		target := regexp.MustCompile(`http://(\S+)/metrics`).FindStringSubmatch(stderr.all.String())[1]
		go func() {
			defer close(ended)
			config := fmt.Sprintf("scrape_configs: [{job_name: weir, scrape_interval: 1s, static_configs: [{targets: ['%s']}]}]", target)
			if err := os.WriteFile(filepath.Join(dir, "p.yml"), []byte(config), 0o600); err != nil {
				t.Error(err)
				return
			}
			p := exec.CommandContext(t.Context(), program, "--config.file="+filepath.Join(dir, "p.yml"), "--storage.tsdb.path="+filepath.Join(dir, "tsdb"),
				"--web.listen-address="+at, "--enable-feature=native-histograms")
			said := &watch{}
			p.Stdout, p.Stderr = said, said
			if err := p.Start(); err != nil {
				t.Error(err)
				return
			}
			const ask = `histogram_quantile(0.5, weir_message_duration_seconds{distribution="e2e.response",phase="measure",run="r"})`
			for range 80 {
				if answer = get(t, "http://"+at+"/api/v1/query?query="+url.QueryEscape(ask)); strings.Contains(answer, "value") {
					break
				}
				time.Sleep(100 * time.Millisecond)
			}
			for _, expr := range dashboardAsks(t) {
				if got := get(t, "http://"+at+"/api/v1/query?query="+url.QueryEscape(expr)); !strings.Contains(got, `"status":"success"`) {
					t.Errorf("Prometheus does not evaluate %s: %s", expr, got)
				}
			}
			_ = p.Process.Kill()
			_ = p.Wait()
			if !strings.Contains(answer, "value") {
				t.Errorf("Prometheus has no median: %s\n%s", answer, said)
			}
		}()
	})
	code, _, _ := do(t, World{Dir: dir, Stderr: stderr}, "run", "--driver", "chan", "--name", "r", "--metrics", ":0", "--rate", "500/s", "--warmup", "100ms", "--measure", "9s", "--out", "r")
	<-ended
	if code != int(OK) && code != int(Invalid) {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	var got struct {
		Data struct {
			Result []struct{ Value []any }
		}
	}
	if err := json.Unmarshal([]byte(answer), &got); err != nil || len(got.Data.Result) != 1 {
		t.Fatalf("%v: %s", err, answer)
	}
	var seconds float64
	if _, err := fmt.Sscan(got.Data.Result[0].Value[1].(string), &seconds); err != nil || seconds <= 0 || seconds > 1 {
		t.Errorf("the median is %v s (%v): %s", seconds, err, answer)
	}
}
