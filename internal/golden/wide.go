package golden

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// toCopy matches lines that are never wrapped: with a command, a path or a URL, which a reader copies.
var toCopy = regexp.MustCompile(`^ *(next|all figures)? *(weir |less |\$ |sudo |# )|https?://|\S{60,}`)

// Wide returns the lines of a screen that are longer than that many columns, but for what is to be copied.
func Wide(screen string, columns int) (lines []string) {
	for line := range strings.Lines(screen) {
		line = strings.TrimSuffix(line, "\n")
		if utf8.RuneCountInString(line) > columns && !toCopy.MatchString(line) {
			lines = append(lines, line)
		}
	}
	return lines
}
