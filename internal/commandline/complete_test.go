package commandline

import (
	"strings"
	"testing"
)

func TestHelpIsShortenedToASentence(t *testing.T) {
	for s, want := range map[string]string{
		"One. Two.": "One", "Such as e.g this.": "Such as e.g this", "": "", "a\n b": "a b",
		strings.Repeat("é", 90): strings.Repeat("é", 79) + "…",
	} {
		if got := firstSentence(s); got != want {
			t.Errorf("firstSentence(%q) = %q; want %q", s, got, want)
		}
	}
}
