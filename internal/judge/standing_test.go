package judge

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/result"
)

// latenessWhy is why of the lateness check.
func latenessWhy(in *Inputs) string { return lateness(in).Why }

func TestOnlyPercentilesThatStandAreSaidTo(t *testing.T) {
	t.Parallel()
	for what, x := range map[string]struct {
		late, response *result.Dist
		want           string
	}{
		"from the median on": {
			lateTail(100_000, 0, 40_000, 40_000), lateTail(100_000, 0, 41_000, 41_000), "decides the figure there.",
		},
		"the finest only":  {lateTail(100_000, 5, 10, 900_000), scaled(100_000, 1_000_000), "decides the figure there; the percentiles below stand."},
		"the coarser only": {lateTail(100_000, 0, 40_000, 40_000), lateTail(100_000, 100, 41_000, 10_000_000), "decides the figure there; p95, p99, p99.9, p99.99 stand."},
	} {
		in := good()
		in.Lateness, in.Response = x.late, x.response
		if why := latenessWhy(&in); !strings.HasPrefix(why, "Host-limited at") || !strings.Contains(why, x.want) {
			t.Errorf("%s: %q; want %q in it", what, why, x.want)
		}
	}
}

func TestACollectorsPauseAtTheOnlyPercentileLeavesNoneBelow(t *testing.T) {
	t.Parallel()
	in := quietHost()
	in.Host.Usage.GC.LongestNS = 4_000_000
	if why := statusOf(&in, CheckGC).Why; !strings.HasSuffix(why, "seen at p99.9; the percentiles below stand.") {
		t.Errorf("%q", why)
	}
	in.Response.Percentiles = in.Response.Percentiles[:1]
	in.Host.Usage.GC.Pauses = 100_000
	if why := statusOf(&in, CheckGC).Why; !strings.HasSuffix(why, "seen at p50.") {
		t.Errorf("%q", why)
	}
}

// TestALatenessNamesWhatTheHostDid: late by 200 µs at p99 and 900 µs at p99.9 of 1 ms.
func TestALatenessNamesWhatTheHostDid(t *testing.T) {
	t.Parallel()
	late := func(hiccups *result.Hiccups) Inputs {
		in := good()
		in.Host = &result.Host{Hiccups: hiccups, Calibration: quietHost().Host.Calibration} // a sleep is 50 µs too long
		in.Lateness = scaled(100_000, 10)
		for i := range in.Lateness.Percentiles {
			switch p := &in.Lateness.Percentiles[i]; p.P {
			case 99:
				p.NS = 200_000
			case 99.9:
				p.NS = 900_000
			}
		}
		return in
	}
	for what, x := range map[string]struct {
		hiccups *result.Hiccups
		want    string // "": nothing of the host
	}{
		"nobody watched":      {nil, ""},
		"it stood at both":    {&result.Hiccups{Count: 10_000, P50NS: 51_000, P99NS: 101_000, P999NS: 950_000}, "The host itself stood still for 51.0 µs at p99, 900 µs at p99.9 (a thread that only sleeps met it)."},
		"at the finest only":  {&result.Hiccups{Count: 10_000, P50NS: 51_000, P99NS: 60_000, P999NS: 275_000}, "The host itself stood still for 225 µs at p99.9 (a"},
		"it stood for less":   {&result.Hiccups{Count: 10_000, P50NS: 51_000, P99NS: 60_000, P999NS: 274_000}, ""},
		"too few to tell it":  {&result.Hiccups{Count: 100, P50NS: 51_000, P99NS: 950_000, P999NS: 950_000}, ""},
		"only a longer sleep": {&result.Hiccups{Count: 10_000, P50NS: 51_000, P99NS: 100_000, P999NS: 100_000}, ""},
	} {
		in := late(x.hiccups)
		why := latenessWhy(&in)
		if !strings.Contains(why, x.want) || x.want == "" && strings.Contains(why, "stood still") {
			t.Errorf("%s: %q; want %q in it", what, why, x.want)
		}
	}
	in := late(nil)
	in.Host.Usage = quietHost().Host.Usage
	if why := latenessWhy(&in); !strings.Contains(why, " stand. All cores of the host together were 40 % busy. A") {
		t.Errorf("it stood for nobody: %q", why)
	}
	in.Host = nil
	for _, h := range []*result.Hiccups{nil, {Count: 10_000, P50NS: 51_000, P99NS: 60_000, P999NS: 950_000}} {
		in.Agents = append(in.Agents, Party{Agent: &result.Agent{Host: &result.AgentHost{Hiccups: h, Calibration: quietHost().Host.Calibration}}})
	}
	if why := latenessWhy(&in); !strings.Contains(why, "A host itself stood still for 900 µs at p99.9 (a") {
		t.Errorf("of agents: %q", why)
	}
}
