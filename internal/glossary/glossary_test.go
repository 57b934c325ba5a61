package glossary

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/view/layout"
)

func TestEveryWordHasAMeaning(t *testing.T) {
	words := Words()
	if len(words) < 50 {
		t.Errorf("%d words; want 50 at least", len(words))
	}
	for _, w := range words {
		if w.Name == "" || w.Section == "" || !strings.HasSuffix(w.Text, ".") || strings.ContainsAny(w.Text, "`[]") {
			t.Errorf("%+v", w)
		}
		if again, err := Find(strings.ToUpper(w.Name)); err != nil || again != w {
			t.Errorf("Find(%q) = %+v, %v", w.Name, again, err)
		}
	}
}

func TestGlossaryWordsFoundInFinding(t *testing.T) {
	for text, want := range map[string][]string{
		"The host woke the pacers too late (lateness).": {"lateness", "pacer"},
		"A hiccup is a wake-up delay of pacers.":        {"wake-up delay", "hiccup", "pacer"},
		"Flanelled hiccuping is failed and late.":       nil,
	} {
		golden.Equal(t, want, Used(text), "Used(%q)", text)
	}
}

func TestFindByShortNameOrPlural(t *testing.T) {
	for _, name := range []string{"p99", "P50", "p99.9", "percentile"} {
		if w, err := Find(name); err != nil || w.Name != "Percentile" {
			t.Errorf("Find(%q) = %+v, %v", name, w, err)
		}
	}
	for name, want := range map[string]string{"hiccups": "Hiccup", "steal": "Steal", "gc": "gc", "e2e": "e2e", "message accounting": "Message accounting"} {
		if w, err := Find(name); err != nil || w.Name != want {
			t.Errorf("Find(%q) = %+v, %v; want %s", name, w, err, want)
		}
	}
	if _, err := Find("quorums of geese"); err == nil || strings.Contains(err.Error(), "lateness") {
		t.Errorf("of a word that it lacks: %v; want no list of all others", err)
	}
	if w, err := Find("pending"); err != nil || w.Name != "Pending" {
		t.Errorf("Find(pending) = %+v, %v", w, err)
	}
}

func TestTwoWordNameAsTwoArguments(t *testing.T) {
	words, faults := FindAll([]string{"wake-up", "delay", "no-such", "Wake-up delay"})
	if len(words) != 2 || words[0] != words[1] || words[0].Name != "Wake-up delay" || len(faults) != 1 {
		t.Fatalf("%v, %v", words, faults)
	}
	p := new(layout.Page)
	Show(p, words[:1], true)
	if text := (layout.Text{}).Page(p); !strings.Contains(text, strings.ToUpper(words[0].Section)) || !strings.Contains(text, "Wake-up delay\n  ") {
		t.Errorf("%s", text)
	}
}
