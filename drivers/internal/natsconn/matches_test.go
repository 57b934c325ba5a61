package natsconn

import "testing"

func TestMatchesFollowsServerWildcards(t *testing.T) {
	for _, c := range []struct {
		pattern, subject string
		want             bool
	}{
		{"a.b", "a.b", true},
		{"a.b", "a.c", false},
		{"a.b", "a.b.c", false},
		{"a.b.c", "a.b", false},
		{"a.*", "a.b", true},
		{"a.*", "a", false},
		{"a.*", "a.b.c", false},
		{"*.c", "a.c", true},
		{"a.>", "a.b", true},
		{"a.>", "a.b.c", true},
		{"a.>", "a", false},
		{">", "a.b", true},
	} {
		if got := Matches(c.pattern, c.subject); got != c.want {
			t.Errorf("Matches(%q, %q) = %v; want %v", c.pattern, c.subject, got, c.want)
		}
	}
}
