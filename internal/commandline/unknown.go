package commandline

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/view"
)

// unknownFlags removes unknown flags, each with its value, from args, and suggests what each may have meant,
// so that one attempt reports all errors of a command line.
func (g *Grammar) unknownFlags(args []string) (rest []string, faults []error) {
	node, _ := commandOf(g.Model, args)
	known := map[string]bool{}
	letters := ""
	var names []string
	for _, group := range node.AllFlags(false) {
		for _, f := range group {
			names = append(names, f.Name)
			if f.Short != 0 {
				letters += string(f.Short)
			}
			for _, name := range append(f.Aliases, f.Name) {
				known[name] = true
			}
		}
	}
	for i := 0; i < len(args); i++ {
		long, isLong := strings.CutPrefix(args[i], "--")
		if args[i] == "--" {
			return append(rest, args[i:]...), faults
		}
		name, _, valued := strings.Cut(long, "=")
		letter, isLetter := strings.CutPrefix(args[i], "-")
		word, _, single := strings.Cut(letter, "=")
		isWord := !isLong && isLetter && oneHyphen.MatchString(word) && !strings.Contains(letters, word[:1])
		tied := !isLong && isLetter && letterTied.MatchString(letter) && !strings.Contains(letters, letter[:1])
		isLetter = !isLong && isLetter && len(letter) == 1 && !strings.Contains(letters, letter)
		switch {
		case tied:
			faults = append(faults, strangeLetter(node.Name, letter[:1]))
			continue
		case isLetter:
			faults = append(faults, strangeLetter(node.Name, letter))
		case isWord && known[word]:
			faults = append(faults, fmt.Errorf("unknown flag -%s, did you mean --%[1]s?", word))
		case isWord:
			faults = append(faults, g.strange(node.Name, "-"+word, word, names))
		case !isLong || known[name] || known[strings.TrimPrefix(name, "no-")]:
			rest = append(rest, args[i])
			continue
		default:
			faults = append(faults, g.strange(node.Name, "--"+name, name, names))
		}
		valued = valued || isWord && single
		if !valued && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			i++
		}
	}
	return rest, faults
}

// oneHyphen matches a long flag's name after a single hyphen, as in some tools.
var oneHyphen = regexp.MustCompile(`^[A-Za-z][A-Za-z-]+$`)

// letterTied matches a one-letter flag with its value attached, as -c100.
var letterTied = regexp.MustCompile(`^[A-Za-z]=?[0-9]`)

// commandOf returns the command that args name, and how to type it.
func commandOf(model *kong.Application, args []string) (node *kong.Node, typed string) {
	node, typed = model.Node, "weir"
	for _, word := range args {
		if i := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == word || slices.Contains(n.Aliases, word) }); i >= 0 {
			node, typed = node.Children[i], typed+" "+word
		}
	}
	return node, typed
}

// helps returns the command that lists what is allowed.
func helps(model *kong.Application, args []string) string {
	node, typed := commandOf(model, args)
	switch {
	case node == model.Node:
		return "weir --help lists the commands"
	case len(node.Children) > 0:
		return typed + " --help lists its commands"
	}
	if node.Name == "run" && node.Parent == model.Node {
		return typed + " --help=all lists its flags"
	}
	return typed + " --help lists its flags"
}

// strange suggests what an unknown flag, given as written and by name, may have meant.
func (g *Grammar) strange(verb, written, name string, names []string) error {
	if hint := ownOf(verb, name); hint != "" {
		return fmt.Errorf("unknown flag %s%s", written, hint)
	}
	if verb == "run" || verb == "capacity" {
		switch flags, advice := scenario.Elsewhere(name); {
		case flags != "":
			return fmt.Errorf("unknown flag %s, did you mean %s?", written, flags)
		case advice != "":
			return fmt.Errorf("unknown flag %s: %s", written, advice)
		case g.isOption(name):
			return fmt.Errorf("unknown flag %s, did you mean --option %s=VALUE? (weir drivers NAME lists a driver's own options)", written, name)
		}
	}
	if flags := shown(verb, name); flags != "" {
		return fmt.Errorf("unknown flag %s, did you mean %s?", written, flags)
	}
	if near := driver.Nearest(name, names); near != "" {
		return fmt.Errorf("unknown flag %s, did you mean --%s?", written, near)
	}
	return fmt.Errorf("unknown flag %s", written)
}

// strangeLetter suggests what a one-letter flag may have meant.
func strangeLetter(verb, letter string) error {
	flags := map[string]string{
		"n": "--messages", "c": "--producers or --consumers", "d": "--measure", "t": "--measure or --producers",
		"r": "--rate", "R": "--rate", "q": "--rate or --quiet", "s": "--size", "o": "--out", "u": "--address",
		"x": "--producers", "y": "--consumers", "z": "--measure", "m": "--messages", "j": "--json",
	}[letter]
	if letter == "f" && (verb == "run" || verb == "capacity") {
		return errors.New("unknown flag -f: the scenario file has no flag (weir run FILE)")
	}
	if flags == "" || verb != "run" && verb != "capacity" {
		return fmt.Errorf("unknown flag -%s", letter)
	}
	return fmt.Errorf("unknown flag -%s, did you mean %s?", letter, flags)
}

// ownOf returns weir's equivalent of a flag that other tools have for such a verb, "" if there is none.
func ownOf(verb, name string) string {
	in := func(names ...string) bool { return slices.Contains(names, name) }
	switch {
	case verb == "capacity" && in("step", "steps", "step-size", "tolerance", "resolution"):
		return ", did you mean --precision?"
	case verb == "capacity" && in("max-rate", "rate-max", "max", "maximum", "limit", "upper"):
		return ", did you mean --most?"
	case verb == "capacity" && in("explain", "dry-run", "plan", "check"):
		return ": weir run --explain shows the scenario that a search starts from"
	case verb == "run" && in("baseline", "base", "compare", "compare-to", "regression", "max-regression", "fail-on"):
		return ": weir compare BASE DIR --fail-on regression compares runs"
	case verb == "compare" && in("threshold", "tolerance", "noise", "min-change", "max-regression"):
		return ", did you mean --band?"
	case verb == "compare" && in("base", "baseline"):
		return ": the first argument is the base"
	case verb == "history" && in("threshold", "tolerance", "noise", "min-change", "band"):
		return ", did you mean --least?"
	case verb == "history" && in("figure", "figures", "metric", "metrics"):
		return ": a history looks at all figures (--least leaves out small changes, and weir compare has --figure)"
	}
	return ""
}

// shown returns the equivalent in other verbs of a flag that they lack, "" if there is none.
func shown(verb, name string) string {
	switch {
	case slices.Contains([]string{"compare", "history"}, verb) && slices.Contains([]string{"format", "output"}, name):
		return "--json, --markdown or --html"
	case verb == "run" && slices.Contains([]string{"format", "html", "markdown"}, name):
		return "--json, or weir report DIR --format FORMAT after the run"
	case verb != "report":
		return ""
	case name == "output":
		return "--format or --out"
	case view.FormatMeant(name) != "":
		return "--format " + view.FormatMeant(name)
	case slices.Contains(view.Formats(), name):
		return "--format " + name
	}
	return ""
}
