package tested

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
)

func entry(driver, test, version string) Entry {
	return Entry{
		Driver: driver, Test: test, Recipe: "r", Server: "s", Version: version, Nodes: 3, Client: "v1.2.3",
		Passed: 26, Waived: []string{"Order"}, Date: "2026-11-21",
	}
}

func TestRecordRoundTrip(t *testing.T) {
	// Texts that YAML would misinterpret.
	want := []Entry{entry("a", "TestConformance/one,_two: three", "1.10"), entry("a", "TestConformance/zwei", "yes"), entry("b", "T", "# 1")}
	b := must.Get(Format([]Entry{want[2], want[1], want[0]}))(t)
	got := must.Get(Parse(b))(t)
	golden.Equal(t, want, got, "")
	if !strings.HasPrefix(string(b), "# What") {
		t.Errorf("does not say what it is: %s", b)
	}
}

func TestEntryReplacesItsPredecessor(t *testing.T) {
	before := []Entry{entry("a", "x", "1"), entry("a", "y", "1"), entry("b", "x", "1")}
	after := Put(before, entry("a", "x", "2"))
	want := []Entry{entry("a", "y", "1"), entry("b", "x", "1"), entry("a", "x", "2")}
	golden.Equal(t, want, after, "")
	if before[0].Version != "1" || before[0].Test != "x" {
		t.Errorf("what was given has changed: %+v", before)
	}
	if got := Of(after, "b"); len(got) != 1 || got[0].Driver != "b" {
		t.Errorf("of b: %+v", got)
	}
}

func TestAnEmptyRecordHasNoEntries(t *testing.T) {
	for _, s := range []string{"", "\n", head} {
		if es, err := Parse([]byte(s)); err != nil || len(es) > 0 {
			t.Errorf("%q: %v, %v", s, es, err)
		}
	}
}

func TestInvalidRecordIsRejected(t *testing.T) {
	for _, s := range []string{"- {driver: a, verion: 1}", "driver: a", "- {driver: [a]}", "- {passed: many}"} {
		if es, err := Parse([]byte(s)); err == nil {
			t.Errorf("%q is read as %+v", s, es)
		}
	}
}
