package cli

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/scenario"
)

// TestHelpShowsEffectiveDefaults compares the words of help with what a
// scenario without a key is resolved to.
func TestHelpShowsEffectiveDefaults(t *testing.T) {
	t.Parallel()
	holds := map[string]string{}
	section := ""
	for line := range strings.Lines(string(resolved(t, t.TempDir(), "").YAML())) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if value = strings.TrimSpace(value); !strings.HasPrefix(line, " ") {
			section = key
			holds[key] = value
		} else {
			holds[section+"."+key] = value
		}
	}
	for _, k := range scenario.Keys() {
		says := k.Default
		if says == "" && !k.FileOnly {
			t.Errorf("%s: help says no default", k.Path)
		}
		if k.FileOnly || k.Path == "name" || strings.HasPrefix(says, "none") || says == "any" {
			continue
		}
		// Where it depends the words begin or end with what holds for jetstream.
		if value := holds[k.Path]; value == "" || !strings.HasPrefix(says, value) && !strings.HasSuffix(says, value) {
			t.Errorf("%s: help says %q; a run without it has %q", k.Path, says, value)
		}
	}
}
