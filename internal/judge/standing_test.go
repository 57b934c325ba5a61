package judge

import (
	"strings"
	"testing"
)

func TestACollectorsPauseAtTheOnlyPercentileLeavesNoneBelow(t *testing.T) {
	t.Parallel()
	in := quietHost()
	in.Host.Usage.GC.LongestNS = 4_000_000
	if why := statusOf(&in, CheckGC).Why; !strings.HasSuffix(why, "to show at p99.9; the percentiles below it hold.") {
		t.Errorf("%q", why)
	}
	in.Response.Percentiles = in.Response.Percentiles[:1]
	in.Host.Usage.GC.Pauses = 100_000
	if why := statusOf(&in, CheckGC).Why; !strings.HasSuffix(why, "to show at p50.") {
		t.Errorf("%q", why)
	}
}
