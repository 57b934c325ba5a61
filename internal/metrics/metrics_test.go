package metrics

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/prometheus/common/expfmt"
	"go.uber.org/goleak"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/measure"
)

func TestAddresses(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"9464": "127.0.0.1:9464", ":9464": "127.0.0.1:9464", "0": "127.0.0.1:0", "0.0.0.0:1": "0.0.0.0:1", "[::1]:9464": "[::1]:9464", "localhost:9": "localhost:9",
	} {
		if got, err := Address(in); err != nil || got != want {
			t.Errorf("Address(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
	for _, in := range []string{"", ":", "http", "65536", ":-1", "::1", "http://a:1", "a:b"} {
		if got, err := Address(in); err == nil || !strings.Contains(err.Error(), "HOST:PORT") {
			t.Errorf("Address(%q) = %q, %v; want an error that says what is allowed", in, got, err)
		}
	}
}

// filled are figures of a run in which everything was counted.
func filled() *Figures {
	s := &Figures{}
	s.Begin("r", 1, "chan", Plan{WarmUp: 2e9, Before: func(ns int64) uint64 { return uint64(ns / 1e9 * 10) }})
	s.Phase("measure")
	iv := &measure.Interval{To: 5e9, Backlog: measure.Backlog{{Missing: 4, Passed: 1}}, Window: measure.Window{SentBytes: 10, ReceivedBytes: 20}}
	iv.Counters[measure.Measure] = measure.Counters{Scheduled: 6, Sent: 5, Confirmed: 4, Received: 2, Failed: 1, Dropped: 1}
	for k := range iv.Kinds {
		for _, v := range []int64{0, 1, 1000, 1_000_000, 1_000_001, 2_000_000_000} {
			iv.Kinds[k][measure.Measure].Add(v, 2)
		}
	}
	s.Interval(iv)
	s.Interval(iv)
	return s
}

func TestNativeHistogramBucketsContainTheirValues(t *testing.T) {
	t.Parallel()
	var c measure.Counts
	values := []int64{0, 0, 1000, 1_000_000, 1_500_000, 2_000_000_000}
	for _, v := range values {
		c.Add(v, 3)
	}
	h := histogram(&c)
	if h.GetSampleCount() != 18 || h.GetZeroCount() != 6 {
		t.Fatalf("count %d, zeros %d; want 18 and 6", h.GetSampleCount(), h.GetZeroCount())
	}
	if got, want := h.GetSampleSum(), 3*(0.000001+0.001+0.0015+2); math.Abs(got-want) > want/500 {
		t.Errorf("sum %v; want %v", got, want)
	}
	// Read as a Prometheus server reads it.
	var index int32
	var delta, total int64
	n, found := 0, values[2:]
	for _, s := range h.GetPositiveSpan() {
		index += s.GetOffset()
		for range s.GetLength() {
			delta += h.GetPositiveDelta()[n]
			low, high := math.Exp2(float64(index-1)/32), math.Exp2(float64(index)/32)
			if v := float64(found[n]) / 1e9; v <= low*0.998 || v > high*1.002 || delta != 3 {
				t.Errorf("bucket %d (%v, %v] holds %d; want 3 of %v", index, low, high, delta, v)
			}
			total += delta
			n++
			index++
		}
	}
	if n != 4 || total != 12 || len(h.GetPositiveDelta()) != n {
		t.Errorf("%d buckets with %d values; want 4 with 12", n, total)
	}
	var before uint64
	for _, b := range h.GetBucket() {
		if b.GetCumulativeCount() < before {
			t.Errorf("classic bucket %v holds less than the one before", b.GetUpperBound())
		}
		before = b.GetCumulativeCount()
	}
	if before != 18 {
		t.Errorf("the last classic bucket holds %d; want 18", before)
	}
}

func TestPrometheusParsesTheExposition(t *testing.T) {
	t.Parallel()
	s := filled()
	families := must.Get(s.Gather())(t)
	var text bytes.Buffer
	for _, f := range families {
		must.Get(expfmt.MetricFamilyToText(&text, f))(t)
	}
	for _, want := range []string{
		`weir_messages_sent_total{driver="chan",number="1",phase="measure",run="r"} 10`,
		`weir_messages_planned_total{driver="chan",number="1",phase="warmup",run="r"} 20`,
		`weir_messages_planned_total{driver="chan",number="1",phase="measure",run="r"} 30`,
		`weir_backlog_messages{driver="chan",number="1",run="r"} 3`,
		`weir_payload_received_bytes_total{driver="chan",number="1",run="r"} 40`,
		`weir_phase_info{driver="chan",number="1",phase="measure",run="r"} 1`,
		`weir_message_duration_seconds_count{distribution="e2e.response",driver="chan",number="1",phase="measure",run="r"} 24`,
	} {
		if !strings.Contains(text.String(), want+"\n") {
			t.Errorf("the exposition lacks %s:\n%s", want, &text)
		}
	}
	s.Begin("next", 2, "chan", Plan{})
	if families, _ = s.Gather(); strings.Contains(families[1].String(), "10") {
		t.Errorf("the next run begins with the figures of the one before: %s", families[1])
	}
}

// TestTheDashboardIsOneForGrafana: it decodes strictly with Grafana's own definitions of
// dashboards, panels and queries of Prometheus, and asks for all metrics that exist.
func TestTheDashboardIsOneForGrafana(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	raw := must.Get(os.ReadFile("../../deploy/grafana/weir.json"))(t)
	// It returns a list of faults as an error, which is not nil when the list is empty, and
	// then leaves the panels out.
	if err := new(dashboard.Dashboard).UnmarshalJSONStrict(raw); err != nil && err.Error() != "" { //nolint:staticcheck // the first schema, which every Grafana imports
		t.Fatal(err)
	}
	var d dashboard.Dashboard //nolint:staticcheck // as above
	must.Do(t, json.Unmarshal(raw, &d))
	must.Do(t, d.Validate())
	families := must.Get(filled().Gather())(t)
	exist := map[string]bool{}
	for _, f := range families {
		exist[f.GetName()] = true
	}
	ids := map[uint32]bool{}
	for _, one := range d.Panels {
		p := one.Panel
		if p == nil || p.Id == nil || ids[*p.Id] || len(p.Targets) == 0 || p.GridPos.X+p.GridPos.W > 24 || p.GridPos.H == 0 {
			t.Errorf("a panel does not fit: %+v", p)
			continue
		}
		ids[*p.Id] = true
		for _, q := range p.Targets {
			if _, is := q.(*prometheus.Dataquery); !is {
				t.Errorf("panel %d has a query that is not one for Prometheus: %T", *p.Id, q)
			}
		}
	}
	if len(ids) == 0 {
		t.Error("the dashboard has no panels")
	}
	names := regexp.MustCompile(`weir_\w+`).FindAllString(string(raw), -1)
	asked := map[string]bool{}
	for _, n := range names {
		asked[n] = true
		if !exist[n] {
			t.Errorf("the dashboard asks for %s, which does not exist", n)
		}
	}
	for n := range exist {
		if !asked[n] && n != "weir_phase_info" {
			t.Errorf("the dashboard does not show %s", n)
		}
	}
}

func TestAnAddressInUseIsRefused(t *testing.T) {
	defer goleak.VerifyNone(t)
	s := must.Get(Listen(t.Context(), "127.0.0.1:0", &Figures{}))(t)
	if second, err := Listen(t.Context(), s.at, &Figures{}); err == nil {
		t.Errorf("two servers at %s", s.at)
		_ = second.Close()
	}
	must.Do(t, s.Close())
}
