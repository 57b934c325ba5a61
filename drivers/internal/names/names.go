// Package names turns arbitrary text into names that a system accepts.
package names

import (
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/weirmq/weir/driver"
)

// Of returns what a destination is called in the system: with existing destinations as it is, and
// otherwise by a name of the run's own, of at most most bytes.
func Of(run driver.Run, most int, destination string) string {
	if run.Existing {
		return destination
	}
	return Join(most, "weir", run.ID, destination)
}

// Token encodes s for use in a name. Different inputs give different tokens: each byte that is not
// a letter, a digit or a hyphen becomes _ and two hexadecimal digits.
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

// Join joins the tokens of parts with dots into a name of at most most bytes (at least 18).
// Different parts give different names: a name that is too long ends in a hash of the whole.
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
