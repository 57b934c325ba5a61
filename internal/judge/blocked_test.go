package judge

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/result"
)

// TestWhatTheHostTookIsNotBlockedWithoutAWord: the host's share of what was blocked
// counts against every response, and a share that nobody tells is not taken for none.
func TestWhatTheHostTookIsNotBlockedWithoutAWord(t *testing.T) {
	t.Parallel()
	const n = 100_000
	for what, x := range map[string]struct {
		change func(*Inputs)
		want   result.Status
		says   string
	}{
		"the client never waits": {func(in *Inputs) { in.Inside = nil }, result.NotRun, "makes no message wait"},
		"a closed loop":          {func(in *Inputs) { in.Closed = true }, result.NotRun, "offers no rate"},
		"it slept":               {func(*Inputs) {}, result.Valid, "0 ns of"},
		"a tenth was the host's": {func(in *Inputs) { in.Inside.Host = 0.1 }, result.Valid, "10 %"},
		"half was the host's":    {func(in *Inputs) { in.Inside.Host = 0.5 }, result.Suspect, "For 50 % of the blocked time"},
		"the platform is silent": {func(in *Inputs) { in.Inside.Told = false }, result.NotRun, "does not show"},
		"it need not say":        {func(in *Inputs) { in.Inside.Told, in.Blocked = false, scaled(n, 50) }, result.Valid, "5 %"},
		"deliveries were quick": {func(in *Inputs) {
			in.Inside.Host = 0.05
			in.Responses = append(in.Responses, Response{Name: "e2e", All: scaled(n, 100)})
		}, result.Suspect, " % at e2e p"},
		"too few messages":  {func(in *Inputs) { in.Blocked, in.Responses[0].All = scaled(9, 1000), scaled(9, 1000) }, result.NotRun, "fewer than"},
		"nothing confirmed": {func(in *Inputs) { in.Responses = nil }, result.NotRun, "No message"},
	} {
		in := good()
		in.Blocked, in.Inside = scaled(n, 1000), &Inside{Told: true}
		in.Responses = []Response{{Name: "send", All: scaled(n, 1000)}}
		x.change(&in)
		c := blocked(&in)
		if c.Status != x.want || !strings.Contains(c.Value+c.Why, x.says) {
			t.Errorf("%s: %+v; want %s saying %q", what, c, x.want, x.says)
		}
	}
}
