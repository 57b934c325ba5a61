package protocol

import (
	"strings"
	"unicode"
)

// wordSize limits a word from another host, in bytes.
const wordSize = 256

// IsWord reports whether text is short and printable.
func IsWord(text string) bool {
	return len(text) <= wordSize && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Short makes a text safe to show on a terminal, and shortens it.
func Short(s string) string {
	s = Shown(s)
	if r := []rune(s); len(r) > wordSize/4 {
		s = string(r[:wordSize/4-1]) + "…"
	}
	return s
}

// Shown makes a text safe to show on a terminal.
func Shown(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}
