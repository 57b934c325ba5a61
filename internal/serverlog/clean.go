package serverlog

import (
	"bytes"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// longest is the largest number of bytes shown of a line.
const longest = 300

// hidden replaces a secret.
const hidden = "***"

var (
	// painted matches terminal control sequences.
	painted = regexp.MustCompile(`\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|[@-_])`)
	// login matches the part of an address before the host, and named what follows a word for a secret.
	login = regexp.MustCompile(`(://)[^\s/@]+@`)
	named = regexp.MustCompile(`(?i)((?:password|passwd|secret|token|credentials?)["']?\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s,;&"']+)`)
)

// cleaner returns a function that makes a line fit to be shown: valid UTF-8 without terminal control
// sequences, without secrets, and short.
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

// trimmed returns a line without surrounding space.
func trimmed(b []byte) []byte { return bytes.TrimSpace(b) }

// plain replaces invisible characters of a text.
func plain(s string) string {
	s = strings.ToValidUTF8(s, string(unicode.ReplacementChar))
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s))
}
