package judge

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/result"
)

// The host's share of blocked time counts against every response, and an unknown share does not count as
// none.
func TestHostShareOfBlockedTimeIsReported(t *testing.T) {
	needs.NoRace(t)
	t.Parallel()
	const n = 100_000
	for what, x := range map[string]struct {
		change func(*result.Result)
		want   result.Status
		says   string
	}{
		"the client never waits": {func(in *result.Result) { in.Evidence.Blocked = nil }, result.NotRun, "blocked.never"},
		"a closed loop":          {func(in *result.Result) { in.Run.Loop = result.LoopClosed }, result.NotRun, "no.rate"},
		"it slept":               {func(*result.Result) {}, result.Valid, "blocked.value"},
		"a tenth was the host's": {func(in *result.Result) { in.Evidence.Blocked.BusyNS = 100 }, result.Valid, "blocked.value"},
		"half was the host's":    {func(in *result.Result) { in.Evidence.Blocked.BusyNS = 500 }, result.Suspect, "blocked.value blocked.host"},
		"the platform is silent": {func(in *result.Result) { in.Evidence.Blocked.Unreported = true }, result.NotRun, "blocked.hidden"},
		"it need not say":        {func(in *result.Result) { in.Evidence.Blocked.Unreported, in.Latency.Send.Blocked = true, scaled(n, 50) }, result.Valid, "blocked.value"},
		"deliveries were quick": {func(in *result.Result) {
			in.Evidence.Blocked.BusyNS = 50
			in.Latency.E2E.Response = scaled(n, 100)
		}, result.Suspect, "blocked.value blocked.host"},
		"too few messages": {func(in *result.Result) {
			in.Latency.Send.Blocked, in.Latency.Send.Response = scaled(9, 1000), scaled(9, 1000)
		}, result.NotRun, "few.messages"},
		"nothing confirmed": {func(in *result.Result) { in.Latency.Send.Response = nil }, result.NotRun, "no.confirmation"},
	} {
		in := good()
		in.Latency.Send.Blocked, in.Latency.Send.Response = scaled(n, 1000), scaled(n, 1000)
		in.Evidence.Blocked = &result.BlockedTime{PublishNS: 7, LookedNS: 1000}
		x.change(&in)
		c := blocked(of(&in)).stored()
		if statusOrFound(c) != x.want || strings.Join(c.Codes, " ") != x.says {
			t.Errorf("%s: %+v; want %s saying %q", what, c, x.want, x.says)
		}
	}
}
