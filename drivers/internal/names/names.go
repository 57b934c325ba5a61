// Package names makes names that a system takes of texts that it may not.
package names

import (
	"fmt"
	"hash/fnv"
	"strings"
)

// Token returns s as a part of a name. Different s give different tokens: what is
// not a letter, a digit or a hyphen becomes _ and two hexadecimal digits a byte.
func Token(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "_%02x", c)
		}
	}
	return b.String()
}

// Join joins the tokens of parts by dots to a name of at most so many bytes, which
// are 18 at least. Different parts give different names: one that is too long ends
// in a hash of all of it.
func Join(most int, parts ...string) string {
	tokens := make([]string, len(parts))
	for i, p := range parts {
		tokens[i] = Token(p)
	}
	n := strings.Join(tokens, ".")
	if len(n) > most {
		h := fnv.New64a()
		_, _ = h.Write([]byte(n))
		n = fmt.Sprintf("%s.%016x", n[:most-17], h.Sum64())
	}
	return n
}
