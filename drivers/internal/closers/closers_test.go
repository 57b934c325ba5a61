package closers

import (
	"slices"
	"testing"
)

func TestClosersPerSubscription(t *testing.T) {
	var s Set[int]
	if of := s.Of("a"); of != nil {
		t.Errorf("an empty set: %v", of)
	}
	for end, of := range []string{"a", "b", "a", ""} {
		s.Add(end, of)
	}
	s.Remove(0)
	s.Remove(7)
	for of, want := range map[string][]int{"a": {2}, "b": {1}, "": {3}, "c": nil} {
		if got := s.Of(of); !slices.Equal(got, want) {
			t.Errorf("of %q: %v; want %v", of, got, want)
		}
	}
}
