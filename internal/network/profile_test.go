package network

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/must"
)

var update = flag.Bool("update", false, "write the table of profiles of docs/network.md")

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
	want := before + head + table.String() + end + after
	if *update {
		must.Do(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	if string(b) != want {
		t.Errorf("the table is not that of the program (go test ./internal/network -run ThePage -update)")
	}
}
