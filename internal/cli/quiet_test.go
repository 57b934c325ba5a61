package cli

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/must"
)

// TestQuietLogsErrorsAlone: what servers that weir starts warn of is logged without --quiet.
func TestQuietLogsErrorsAlone(t *testing.T) {
	for quiet, want := range map[bool]int{false: 2, true: 1} {
		var said strings.Builder
		e := &env{World: World{Env: func(string) (string, bool) { return "", false }}}
		e.logTo(&said)
		must.Do(t, (&runCommand{Quiet: &quiet}).environment(e))
		e.log.Warn("dropping messages")
		e.log.Error("the server ended")
		if got := strings.Count(said.String(), "\n"); got != want || !strings.Contains(said.String(), "the server ended") {
			t.Errorf("quiet %t: logged %q; want %d lines", quiet, said.String(), want)
		}
	}
}
