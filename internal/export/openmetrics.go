package export

import (
	"io"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/weirmq/weir/result"
)

// openMetrics writes gauges with the names and base units of Prometheus: seconds and
// bytes.
func openMetrics(w io.Writer, runs []Run) error {
	latency := family("weir_latency_seconds", "Latency of the measured window by distribution; percentile 100 is the maximum.")
	rate := family("weir_messages_per_second", "Messages of the measured window per second.")
	bytes := family("weir_payload_bytes_per_second", "Payload of the measured window per second.")
	messages := family("weir_messages", "Messages of the measured window by what became of them.")
	verdict := family("weir_verdict", "1 for the verdict of the run.")
	objective := family("weir_objective_met", "1 where the objective is met, 0 where it is missed; absent where it is not decided.")
	for _, r := range runs {
		x := r.Result
		of := func(f *dto.MetricFamily, v float64, labels ...string) {
			add(f, v, append([]string{"run", r.name(), "driver", x.System.Driver}, labels...)...)
		}
		for _, f := range shown(x) {
			switch {
			case f.P > 0:
				of(latency, f.Value/1e9, "distribution", f.Of, "percentile", number(f.P))
			case f.Unit == unitPerS:
				of(rate, f.Value, "kind", f.Of)
			case f.Unit == unitBytesS:
				of(bytes, f.Value, "kind", f.Of)
			case f.Unit == unitMessages:
				of(messages, f.Value, "outcome", f.Of)
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
	for _, f := range []*dto.MetricFamily{latency, rate, bytes, messages, verdict, objective} {
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

// add adds a gauge. labels are names and values in turns.
func add(f *dto.MetricFamily, v float64, labels ...string) {
	m := &dto.Metric{Gauge: &dto.Gauge{Value: &v}}
	for i := 0; i+1 < len(labels); i += 2 {
		m.Label = append(m.Label, &dto.LabelPair{Name: &labels[i], Value: &labels[i+1]})
	}
	f.Metric = append(f.Metric, m)
}
