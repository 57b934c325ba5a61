package tree

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/golden"
)

// TestEditsLeaveTheOriginal: runs of one file share its tree, so that a change for one run must not
// affect another.
func TestEditsLeaveTheOriginal(t *testing.T) {
	t.Parallel()
	read := func(text string) *Node {
		n, faults := Parse("f.yaml", []byte(text))
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		return n
	}
	base := read("weir: 1\nload: {rate: 5/s, batch: [1, 2]}\nseed: 1\n")
	top := read("load: {rate: 6/s}\nname: b\n")
	wantBase, wantTop := base.Flow(), top.Flow()
	for name, tt := range map[string]struct {
		got  *Node
		want string
	}{
		"with":    {base.With([]string{"load", "rate"}, &Node{Shape: Text, Text: "7/s"}), "{weir: 1, load: {rate: 7/s, batch: [1, 2]}, seed: 1}"},
		"without": {base.Without("load", "rate"), "{weir: 1, load: {batch: [1, 2]}, seed: 1}"},
		"overlay": {Overlay(base, top), "{weir: 1, load: {rate: 6/s, batch: [1, 2]}, seed: 1, name: b}"},
	} {
		golden.Equal(t, tt.want, tt.got.Flow(), "%s", name)
	}
	if diff := cmp.Diff([]string{wantBase, wantTop}, []string{base.Flow(), top.Flow()}); diff != "" {
		t.Errorf("an edit changed what it was made from (-before +after):\n%s", diff)
	}
}
