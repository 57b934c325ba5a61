package commandline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/weirmq/weir/driver"
)

// known refuses an unknown verb, and suggests what may have been meant.
func known(model *kong.Application, args []string) error {
	said, node := "", model.Node
	for _, word := range args {
		var verbs []string
		var next *kong.Node
		for _, n := range node.Children {
			if n.Name == word || slices.Contains(n.Aliases, word) {
				next = n
			}
			if !n.Hidden {
				verbs = append(verbs, n.Name)
			}
		}
		if said == "drivers " && slices.Contains([]string{"list", "ls", "show"}, word) {
			return fmt.Errorf("unknown command %q; weir drivers lists all systems, and weir drivers NAME shows one", said+word)
		}
		if len(verbs) == 0 || strings.HasPrefix(word, "-") {
			return nil
		}
		if next == nil {
			have := strings.Join(verbs, ", ")
			if near := meant(word, verbs); near != "" {
				return fmt.Errorf("unknown command %q; did you mean %q? (%s)", said+word, said+near, have)
			}
			return fmt.Errorf("unknown command %q (%s)", said+word, have)
		}
		said, node = said+word+" ", next
	}
	return nil
}

// meant returns the verb for a word: one that other tools name so, or one spelt similarly; "" if there is
// none.
func meant(word string, verbs []string) string {
	var others []string // the first of them that is among verbs
	switch word {
	case "list", "ls", "ps":
		others = []string{"status", "drivers"}
	case "start", "create":
		others = []string{"up", "run"}
	case "stop", "remove", "rm", "kill", "delete":
		others = []string{"down"}
	case "bench", "benchmark", "test", "measure", "exec":
		others = []string{"run"}
	case "show", "results", "view", "html", "export":
		others = []string{"report"}
	case "diff", "benchstat":
		others = []string{"compare"}
	case "sweep", "search", "saturate", "ramp":
		others = []string{"capacity"}
	case "check", "env":
		others = []string{"doctor"}
	}
	for _, other := range others {
		if slices.Contains(verbs, other) {
			return other
		}
	}
	return driver.Nearest(word, verbs)
}

// translateUsual translates the usual spellings of help and version into verbs and flags.
func translateUsual(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "help" && len(args) > 1 && args[1] == "help":
		return []string{"--help"}
	case args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	case args[0] == "--version", args[0] == "-v", args[0] == "-V":
		return append([]string{"version"}, args[1:]...)
	}
	return args
}
