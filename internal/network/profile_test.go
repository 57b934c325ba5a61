package network

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
)

// TestThePageListsEveryProfile keeps the table of docs/network.md in step with the code.
func TestThePageListsEveryProfile(t *testing.T) {
	const path = "../../docs/network.md"
	b := must.Get(os.ReadFile(path))(t)
	const head, end = "| --- | --- | --- | --- | --- |\n", "\n[W]:"
	before, rest, ok1 := strings.Cut(string(b), head)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatal("the page has no table of profiles")
	}
	var table strings.Builder
	for _, p := range Profiles() {
		source := map[string]string{webPageTest: "[W]", comcast: "[C]", dean: "[D]"}[p.Source]
		if source == "" || !strings.Contains(after, p.Source) && !strings.Contains(rest, p.Source) {
			t.Errorf("%s: the page does not name its source %q", p.Name, p.Source)
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s | %s |\n", p.Name, p.About, p.To, p.From, source)
	}
	golden.File(t, path, before+head+table.String()+end+after)
}
