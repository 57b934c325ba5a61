package serverlog

import (
	"bytes"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// longest is how many bytes of a line are shown.
const longest = 300

// hidden stands for a secret.
const hidden = "***"

var (
	// painted is what moves a cursor or paints on a terminal.
	painted = regexp.MustCompile(`\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|[@-_])`)
	// login is what an address has before the host, and named what follows a word for a secret.
	login = regexp.MustCompile(`(://)[^\s/@]+@`)
	named = regexp.MustCompile(`(?i)((?:password|passwd|secret|token|credentials?)["']?\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s,;&"']+)`)
)

// cleaner returns what makes a line fit to be shown: valid UTF-8 that neither moves a cursor
// nor paints, without secrets, and short.
func cleaner(secrets []string) func([]byte) string {
	var pairs []string
	for _, s := range secrets {
		if s = plain(s); s != "" {
			pairs = append(pairs, s, hidden)
		}
	}
	known := strings.NewReplacer(pairs...)
	return func(b []byte) string {
		s := known.Replace(plain(string(painted.ReplaceAll(trimmed(b), nil))))
		s = named.ReplaceAllString(login.ReplaceAllString(s, "$1"+hidden+"@"), "$1"+hidden)
		if len(s) <= longest {
			return s
		}
		cut := longest - len("...")
		for !utf8.RuneStart(s[cut]) {
			cut--
		}
		return s[:cut] + "..."
	}
}

// trimmed is a line without the space around it.
func trimmed(b []byte) []byte { return bytes.TrimSpace(b) }

// plain is a text in which all can be seen.
func plain(s string) string {
	s = strings.ToValidUTF8(s, string(unicode.ReplacementChar))
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s))
}
