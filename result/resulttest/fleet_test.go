package resulttest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/result"
)

// Breaks a good result in one place at a time.
func TestCheckFindsBrokenFleetResult(t *testing.T) {
	b := must.Get(os.ReadFile(filepath.Join("..", "..", "internal", "view", "testdata", "fleet.json")))(t)
	for name, tt := range map[string]struct {
		broken func(*result.Result)
		says   string
	}{
		"nothing":                     {func(*result.Result) {}, ""},
		"no clock":                    {func(r *result.Result) { r.Clock = nil }, "both there"},
		"no agents":                   {func(r *result.Result) { r.Agents = nil }, "both there"},
		"two of one name":             {func(r *result.Result) { r.Agents[1].Name = "a" }, "two agents are called a"},
		"one that is there":           {func(r *result.Result) { r.Agents[2].Missing = false }, "agent c: missing is false"},
		"one that began before":       {func(r *result.Result) { r.Agents[2].StartsNS = new(int64) }, "agent c: began"},
		"another number of pacers":    {func(r *result.Result) { r.Host.Pacers = 7 }, "the agents have 2 pacers, the run 7"},
		"a bound of nothing":          {func(r *result.Result) { r.Clock.Crosses = false }, "nothing crosses"},
		"another bound":               {func(r *result.Result) { *r.Clock.BoundNS++ }, "a bound that is not the clocks'"},
		"a bound of one clock's":      {func(r *result.Result) { r.Latency.Send.Response.ClockBoundNS = new(int64) }, "send.response: a bound"},
		"a percentile that is finer":  {func(r *result.Result) { r.Latency.E2E.Response.Percentiles[0].Supported = true }, "e2e.response: p50, supported true"},
		"one that is not":             {func(r *result.Result) { r.Latency.E2E.Response.Percentiles[4].UnsupportedBy = result.ByClock }, "e2e.response: p99"},
		"one of a clock that is none": {func(r *result.Result) { r.Latency.E2E.Service.Percentiles[7].UnsupportedBy = result.ByUnknownClock }, "e2e.service: p99.999"},
	} {
		r := must.Get(result.Unmarshal(b))(t)
		tt.broken(r)
		switch err := checkFleet(r); {
		case tt.says == "" && err != nil, tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)):
			t.Errorf("%s: %v; want %q", name, err, tt.says)
		}
	}
	must.Do(t, CheckResult(b))
}
