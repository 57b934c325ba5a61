package cli

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/broker"
)

// small is how many columns a small terminal has. Its last one stays free.
const small = 40

// copied are lines that are to be copied, so that they are not broken: commands, and words
// such as URLs that are longer than the terminal is wide.
var copied = regexp.MustCompile(`^ *((\$|weir) .*|(\d+  )?\S+)$`)

// tooWide returns the lines that a small terminal would break within a word or number.
func tooWide(out string) (lines []string) {
	for line := range strings.Lines(out) {
		line = strings.TrimRight(strings.ReplaceAll(sequence.ReplaceAllString(line, ""), "\r", ""), "\n ")
		if utf8.RuneCountInString(line) >= small && !copied.MatchString(line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// Runs verbs on a pseudo-terminal of 40 columns. Output for 80 columns must have the same words.
func TestScreensFitASmallTerminal(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	for _, args := range [][]string{
		{"doctor"},
		{"drivers"},
		{"drivers", "kafka"},
		{"drivers", "jetstream"},
		{"broker", "status"},
		{"broker", "status", "rabbitmq"},
		{"help"},
		{"help", "run"},
		{"help", "broker", "up"},
		{"network"},
		{"version"},
		{"suite", "list"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			x := start(t, small, []string{"TERM=xterm", broker.VariableCache + "=" + cache}, args...)
			code, out := x.end()
			if code != int(OK) || len(strings.Fields(out)) < 20 {
				t.Fatalf("exit code %d\n%s", code, out)
			}
			for _, line := range tooWide(out) {
				t.Errorf("%q is too wide for %d columns", line, small)
			}
		})
	}
}

func TestEachHelpFitsASmallTerminal(t *testing.T) {
	t.Parallel()
	help := func(cols int, verb ...string) string {
		w := World{Drivers: all.Definitions(), StdoutTerminal: true, Size: func() (int, int) { return cols, 24 }}
		code, stdout, stderr := do(t, w, append(slices.Clone(verb), "--help=all")...)
		if code != int(OK) {
			t.Fatalf("%q: exit code %d\n%s", verb, code, stderr)
		}
		return stdout.String()
	}
	command := regexp.MustCompile(`(?m)^  ([a-z]+(?: [a-z]+)?)  `)
	verbs := [][]string{{}}
	for i := 0; i < len(verbs); i++ {
		verb := verbs[i]
		wide, narrow := help(80, verb...), help(small, verb...)
		for _, line := range tooWide(narrow) {
			t.Errorf("weir %s --help: %q is too wide for %d columns", strings.Join(verb, " "), line, small)
		}
		words := strings.Fields(narrow)
		for _, w := range strings.Fields(wide) {
			if !slices.Contains(words, w) {
				t.Errorf("weir %s --help lacks %q in %d columns", strings.Join(verb, " "), w, small)
			}
		}
		if _, list, ok := strings.Cut(wide, "\nCommands:\n"); ok {
			for _, m := range command.FindAllStringSubmatch(list, -1) {
				verbs = append(verbs, strings.Fields(m[1]))
			}
		}
	}
	if len(verbs) < 25 {
		t.Errorf("the help of %d verbs was found: %q", len(verbs), verbs)
	}
}
