package export

import (
	"io"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/weirmq/weir/result"
)

// openMetrics writes gauges with Prometheus's names and base units: seconds and bytes. Lower bounds of
// latencies have a family of their own, since a query that aggregates over a label would mix them with
// values. Runs of one name are distinguished by folder.
func openMetrics(w io.Writer, runs []Run) error {
	latency := family("weir_latency_seconds", "Latency of the measured window by distribution; percentile 100 is the maximum.")
	bound := family("weir_latency_at_least_seconds", "Lower bound of a latency of the measured window that is not known, because messages failed or never came.")
	rate := family("weir_messages_per_second", "Messages of the measured window per second.")
	bytes := family("weir_payload_bytes_per_second", "Payload of the measured window per second.")
	messages := family("weir_messages", "Messages of the measured window by what became of them.")
	verdict := family("weir_verdict", "1 for the verdict of the run.")
	objective := family("weir_objective_met", "1 where the objective is met, 0 where it is missed; absent where it is not decided.")
	seen := map[[2]string]bool{}
	for _, r := range runs {
		x := r.Result
		if key := [2]string{r.name(), r.Dir}; seen[key] {
			continue // a folder named twice
		} else {
			seen[key] = true
		}
		of := func(f *dto.MetricFamily, v float64, labels ...string) {
			add(f, v, append([]string{"run", r.name(), "folder", r.Dir, "driver", x.System.Driver}, labels...)...)
		}
		for _, f := range shown(x) {
			v, atLeast := f.Value.Least()
			switch {
			case f.P > 0 && atLeast:
				of(bound, v/1e9, "distribution", f.Of, "percentile", number(f.P))
			case f.P > 0:
				of(latency, v/1e9, "distribution", f.Of, "percentile", number(f.P))
			case f.Unit == unitPerS:
				of(rate, v, "kind", f.Of)
			case f.Unit == unitBytesS:
				of(bytes, v, "kind", f.Of)
			case f.Unit == unitMessages:
				of(messages, v, "outcome", f.Of)
			}
		}
		of(verdict, 1, "status", string(x.Verdict.Status))
		for i := range x.Verdict.SLO {
			switch o := &x.Verdict.SLO[i]; o.Outcome() {
			case result.Pass:
				of(objective, 1, "objective", o.Expr)
			case result.Fail:
				of(objective, 0, "objective", o.Expr)
			}
		}
	}
	for _, f := range []*dto.MetricFamily{latency, bound, rate, bytes, messages, verdict, objective} {
		if len(f.Metric) == 0 {
			continue
		}
		if _, err := expfmt.MetricFamilyToOpenMetrics(w, f); err != nil {
			return err
		}
	}
	_, err := expfmt.FinalizeOpenMetrics(w)
	return err
}

func family(name, help string) *dto.MetricFamily {
	return &dto.MetricFamily{Name: &name, Help: &help, Type: dto.MetricType_GAUGE.Enum()}
}

// add adds a gauge. labels are alternating names and values.
func add(f *dto.MetricFamily, v float64, labels ...string) {
	m := &dto.Metric{Gauge: &dto.Gauge{Value: &v}}
	for i := 0; i+1 < len(labels); i += 2 {
		m.Label = append(m.Label, &dto.LabelPair{Name: &labels[i], Value: &labels[i+1]})
	}
	f.Metric = append(f.Metric, m)
}
