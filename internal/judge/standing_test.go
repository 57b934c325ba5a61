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
