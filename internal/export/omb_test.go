package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// constant writes the folder of a run of 40 s at 50/s whose rows begin up to 12 ms late,
// as a recorder that sleeps makes them. Two of its 2,000 samples of a kind are slow.
func constant(t *testing.T, kinds ...measure.Kind) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	f := must.Get(result.Create(dir))(t)
	errs := []error{f.WriteScenario([]byte("weir: 1\n")), f.StartIntervals(time.Unix(0, 0), "test")}
	warmup := 1.0
	r := &result.Result{Run: result.Run{Name: "constant", WarmUpS: &warmup, MeasureS: 40}, Throughput: result.Throughput{SendS: 40}}
	begins := func(second int) float64 { return float64(second) + float64(second*97%13)/1000 }
	for s := range 43 {
		iv := &measure.Interval{From: int64(begins(s) * 1e9), To: int64(begins(s+1) * 1e9)}
		phase, n := measure.Measure, uint64(50)
		row := result.Interval{TS: begins(s), Phase: "measure"}
		switch {
		case s < 1:
			phase, row.Phase = measure.WarmUp, "warmup"
		case s > 40:
			row.Phase, n = "drain", 0
		}
		row.Confirmed, row.Received = n, n
		r.Intervals = append(r.Intervals, row)
		for _, k := range kinds {
			slow := uint64(0)
			if s == 20 {
				slow = 1 // second 19 of the window is in its second ten
				iv.Kinds[k][phase].Add(2_330_001, 1)
			}
			if s == 25 {
				slow = 1
				iv.Kinds[k][phase].Add(5_000_001, 1)
			}
			if n > 0 {
				iv.Kinds[k][phase].Add(1_000_000, n-slow)
			}
		}
		errs = append(errs, f.AppendInterval(iv))
	}
	must.Do(t, errors.Join(append(errs, f.WriteResult(r), f.Close())...))
	return dir
}

func ombOf(t *testing.T, dir string) map[string]any {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, OMB(&b, dir))
	var out map[string]any
	must.Do(t, json.Unmarshal(b.Bytes(), &out))
	return out
}

func TestAConstantRateIsConstantInOMB(t *testing.T) {
	t.Parallel()
	out := ombOf(t, constant(t, measure.SendService, measure.E2EService))
	for _, name := range []string{"publishRate", "consumeRate"} {
		series, _ := out[name].([]any)
		if len(series) != 4 {
			t.Fatalf("%s is %v; want four times 10 s", name, out[name])
		}
		for _, v := range series {
			if v, _ := v.(float64); math.Abs(v-50) > 0.1 {
				t.Errorf("%s is %v; want 50 four times", name, series)
			}
		}
	}
}

// p99.9 of 2,000 samples is the 1,998th, and the largest is the sample, not the end of its bucket.
func TestOMBUsesSampleRanksAndMaxima(t *testing.T) {
	t.Parallel()
	out := ombOf(t, constant(t, measure.SendService, measure.E2EService))
	for name, want := range map[string]float64{
		"aggregatedPublishLatency999pct": 1.000447, "aggregatedPublishLatency9999pct": 5.000001, "aggregatedPublishLatencyMax": 5.000001,
		"aggregatedEndToEndLatencyMax": 5.000001,
	} {
		if got, _ := out[name].(float64); got != want {
			t.Errorf("%s is %v; want %v", name, got, want)
		}
	}
	series, _ := out["publishLatencyMax"].([]any)
	if len(series) != 4 || series[1] != 2.330001 || series[2] != 5.000001 {
		t.Errorf("publishLatencyMax is %v; want the slow samples 2.330001 and 5.000001 in the second and the third ten seconds", series)
	}
}

func TestOMBPublishLatencyIsReplyLatency(t *testing.T) {
	t.Parallel()
	out := ombOf(t, constant(t, measure.RTTService))
	if got, _ := out["aggregatedPublishLatencyMax"].(float64); got != 5.000001 {
		t.Errorf("the latency of a publish is at most %v; want 5.000001, the slowest reply", got)
	}
}
