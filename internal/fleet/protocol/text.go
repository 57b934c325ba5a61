package protocol

import (
	"strings"
	"unicode"
)

// wordSize bounds a word of another host, in bytes.
const wordSize = 256

// IsWord reports whether text is short, and all of it can be seen.
func IsWord(text string) bool {
	return len(text) <= wordSize && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Short is a text that may be shown on a terminal, shortened.
func Short(s string) string {
	s = Shown(s)
	if r := []rune(s); len(r) > wordSize/4 {
		s = string(r[:wordSize/4-1]) + "…"
	}
	return s
}

// Shown is a text that may be shown on a terminal.
func Shown(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}
