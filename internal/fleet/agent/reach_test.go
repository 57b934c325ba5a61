package agent

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReachFollowsAllowFlags(t *testing.T) {
	path := func(name string) string { return filepath.Join("/at", name) }
	got, err := NewReach([]string{"A", "_b1"}, []string{"x/../y", "z"}, []string{"child,a"}, path)
	want := Reach{Env: []string{"A", "_b1"}, Files: []string{"/at/y", "/at/z"}, Run: []string{"child,a"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for want, given := range map[string][3][]string{
		`--allow-env: "A B" is not a name of a variable (letters, digits and _)`:        {{"A B"}, nil, nil},
		"--allow-file: holds an empty path (paths, with a comma between them)":          {nil, {"x", ""}, nil},
		"--allow-command: is empty (the words of a command, with a comma between them)": {nil, nil, {""}},
	} {
		if _, err := NewReach(given[0], given[1], given[2], path); err == nil || err.Error() != want {
			t.Errorf("%q: %v; want %s", given, err, want)
		}
	}
}
