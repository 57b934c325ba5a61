package broker

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// dotted finds the first version in a text.
var dotted = regexp.MustCompile(`[0-9]+(\.[0-9]+)*`)

// number returns the numbers of a version, nil where it has none.
func number(version string) []int {
	text := dotted.FindString(version)
	if text == "" {
		return nil
	}
	var out []int
	for part := range strings.SplitSeq(text, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil
		}
		out = append(out, n)
	}
	return out
}

// older reports whether version a comes before b.
func older(a, b string) bool { return slices.Compare(number(a), number(b)) < 0 }
