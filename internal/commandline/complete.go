package commandline

import (
	_ "embed" // the scripts
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/export"
	"github.com/weirmq/weir/internal/fleet/agent"
	"github.com/weirmq/weir/internal/glossary"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/selftest"
	"github.com/weirmq/weir/internal/series/suite"
	"github.com/weirmq/weir/internal/userfile"
)

// The scripts ask weir itself, by `weir internal complete WORD...`, what may
// stand at the cursor, so that they never grow old. (Libraries that do this for
// kong split the line at blanks, have no descriptions, and read the process's
// environment behind Main's back.)
var (
	//go:embed weir.bash
	bashScript string
	//go:embed weir.zsh
	zshScript string
	//go:embed weir.fish
	fishScript string
)

// Script returns the script of a shell, bash, zsh or fish.
func Script(shell string) string {
	return map[string]string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}[shell]
}

// Completing is what completion needs besides the grammar.
type Completing struct {
	Drivers *driver.Registry
	Env     func(name string) (string, bool)
	Path    func(string) string // makes a user's path absolute
}

// Complete answers the scripts. words are those after the program's name up to the cursor; the last is
// being typed, and may be empty. Each line is a complete candidate, with a tab and a description if there
// is one; one ending in = continues without a blank. ":files yaml" and ":folders" ask the shell to list
// files. Errors give no answer.
func Complete(app *kong.Application, in Completing, words []string) string {
	if len(words) == 0 {
		words = []string{""}
	}
	c := &completer{app: app, in: in, keys: map[string]scenario.Key{}}
	for _, k := range scenario.Keys() {
		c.keys[k.Path] = k
		c.keys[k.Short] = k
	}
	var b strings.Builder
	for _, x := range c.answer(words[:len(words)-1], words[len(words)-1]) {
		b.WriteString(x.word)
		if x.means != "" {
			b.WriteString("\t" + x.means)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Completes reports whether the values of a flag or a positional argument are known, or known not to be
// completed.
func Completes(v *kong.Value) bool {
	_, ok := valueKinds[placeholder(v)]
	return ok || v.Enum != "" || v.IsBool()
}

// A candidate is a possible word at the cursor.
type candidate struct{ word, means string }

// A completer computes candidates.
type completer struct {
	app  *kong.Application
	in   Completing
	keys map[string]scenario.Key // by flag

	// The words before the cursor.
	node    *kong.Node
	given   map[string][]string // values of flags, by name
	args    []string            // positional arguments of the node
	open    *kong.Flag          // flag whose value is being typed
	literal bool                // after --
}

// answer returns the candidates for the word cur after before.
func (c *completer) answer(before []string, cur string) []candidate {
	c.node, c.given = c.app.Node, map[string][]string{}
	if len(before) > 0 && before[0] == "help" {
		before = before[1:] // `weir help run` is about a verb, as `weir run` is
		if len(before) > 0 {
			return nil
		}
		return begin(c.verbs(), cur)
	}
	for _, w := range before {
		if !c.read(w) {
			return nil
		}
	}
	name, value, tied := strings.Cut(cur, "=")
	switch {
	case c.open != nil:
		return begin(c.values(c.open.Value, cur), cur)
	case !c.literal && tied && strings.HasPrefix(cur, "--"):
		return c.tied(name, value)
	case !c.literal && strings.HasPrefix(cur, "-"):
		return begin(c.flags(cur), cur)
	case len(c.node.Children) > 0 && len(c.args) == 0:
		all := c.verbs()
		if c.node == c.app.Node {
			all = append(all, candidate{"help", "Show what a verb does and its flags."})
		}
		return begin(all, cur)
	}
	p := c.node.Positional
	if len(p) == 0 {
		return nil
	}
	i := min(len(c.args), len(p)-1)
	if len(c.args) > i && !p[i].IsCumulative() {
		return nil // no further argument
	}
	return begin(c.values(p[i], cur), cur)
}

// repeats reports whether a flag can be repeated.
func (c *completer) repeats(f *kong.Flag) bool {
	if k, ok := c.keys[f.Name]; ok {
		return k.Repeats
	}
	return f.IsCumulative()
}

// read consumes a word before the cursor; false if nothing can follow it.
func (c *completer) read(w string) bool {
	switch {
	case c.open != nil:
		c.given[c.open.Name] = append(c.given[c.open.Name], w)
		c.open = nil
	case c.literal:
		c.args = append(c.args, w)
	case w == "--":
		c.literal = true
	case strings.HasPrefix(w, "--system.options."):
	case strings.HasPrefix(w, "--"):
		name, value, tied := strings.Cut(w, "=")
		f := c.flag(name)
		switch {
		case f == nil:
			return false
		case tied || f.IsBool():
			c.given[f.Name] = append(c.given[f.Name], value)
		default:
			c.open = f
		}
	case strings.HasPrefix(w, "-") && w != "-":
	default:
		for _, n := range c.node.Children {
			if len(c.args) == 0 && (n.Name == w || slices.Contains(n.Aliases, w)) {
				c.node = n
				return true
			}
		}
		if len(c.node.Children) > 0 {
			return false
		}
		c.args = append(c.args, w)
	}
	return true
}

// begin returns the candidates that begin with cur, and the requests for files.
func begin(all []candidate, cur string) []candidate {
	return slices.DeleteFunc(all, func(x candidate) bool { return !strings.HasPrefix(x.word, ":") && !strings.HasPrefix(x.word, cur) })
}

func (c *completer) verbs() []candidate {
	var all []candidate
	for _, n := range c.node.Children {
		if !n.Hidden {
			all = append(all, candidate{n.Name, firstSentence(n.Help)})
		}
	}
	return all
}

// allFlags returns the flags allowed after the node.
func (c *completer) allFlags() []*kong.Flag {
	var all []*kong.Flag
	for _, group := range c.node.AllFlags(true) {
		all = append(all, group...)
	}
	return all
}

// flag finds a flag by its typed form.
func (c *completer) flag(typed string) *kong.Flag {
	name := strings.TrimPrefix(typed, "--")
	for _, f := range c.allFlags() {
		if f.Name == name || slices.Contains(f.Aliases, name) {
			return f
		}
	}
	return nil
}

// flags lists the flags that can still be given: by their short form, or if that does not match by their
// path.
func (c *completer) flags(cur string) []candidate {
	var all []candidate
	if c.node == c.app.Node {
		all = append(all, candidate{"--version", "Print the versions."})
	}
	for _, f := range c.allFlags() {
		if _, given := c.given[f.Name]; given && !c.repeats(f) {
			continue
		}
		end := "="
		if f.IsBool() {
			end = ""
		}
		names := append([]string{f.Name}, f.Aliases...)
		i := slices.IndexFunc(names, func(n string) bool { return strings.HasPrefix("--"+n, cur) })
		if i >= 0 {
			all = append(all, candidate{"--" + names[i] + end, firstSentence(f.Help)})
		}
	}
	if c.flag("--option") != nil && strings.HasPrefix(cur, "--system.o") {
		for _, o := range c.options() {
			all = append(all, candidate{"--system.options." + o.Name + "=", firstSentence(o.Help)})
		}
	}
	return all
}

// tied returns candidates for --name=value.
func (c *completer) tied(name, value string) []candidate {
	var all []candidate
	if option, ok := strings.CutPrefix(name, "--system.options."); ok {
		all = begin(c.option(option+"="), option+"="+value)
		name = "--system.options."
	} else {
		f := c.flag(name)
		if f == nil || f.IsBool() {
			return nil
		}
		all = begin(c.values(f.Value, value), value)
		name += "="
	}
	for i := range all {
		if !strings.HasPrefix(all[i].word, ":") { // the script adds the prefix to files
			all[i].word = name + all[i].word
		}
	}
	return all
}

// valueKinds complete the values of flags and positional arguments, by their placeholder in help.
var valueKinds = map[string]func(c *completer, cur string) []candidate{
	"<file>": func(*completer, string) []candidate { return []candidate{{":files yaml yml", ""}} }, // a scenario
	"<dir>":  folders,
	"DIR":    folders,
	"<side>": folders,
	"WHAT":   func(*completer, string) []candidate { return wordsOf([]string{"regression"}) },
	"CHANGE": func(*completer, string) []candidate { return wordsOf([]string{"change", "nothing", "regression"}) },
	"FIGURE": func(*completer, string) []candidate {
		return wordsOf([]string{"confirmed.rate", "e2e.p50", "e2e.p99", "e2e.p99.9", "lost", "received.rate", "rtt.p50", "rtt.p99", "send.p50", "send.p99", "send.p99.9"})
	},
	"ALPHA":            nil,
	"PERCENT":          nil,
	"[FIGURE=]PERCENT": nil,
	"KEY=N,N,...":      nil,
	"FILE":             func(*completer, string) []candidate { return []candidate{{":files", ""}} },
	"<word>":           func(*completer, string) []candidate { return terms() },
	"DRIVER":           func(c *completer, _ string) []candidate { return c.drivers() },
	"NAME=VALUE":       (*completer).option,
	"FORMAT":           func(c *completer, _ string) []candidate { return wordsOf(c.formats()) },
	"auto|on|off":      func(*completer, string) []candidate { return wordsOf([]string{"auto", "off", "on"}) },
	"VERDICT":          func(*completer, string) []candidate { return wordsOf([]string{"suspect", "valid"}) },
	"WORDS":            nil, // of a command
	"SYSTEM":           func(c *completer, _ string) []candidate { return c.systems() },
	"SETTING=VALUE":    (*completer).setting,
	"SUITE": func(*completer, string) []candidate {
		return append(wordsOf(suite.Names()), candidate{":files yaml yml", ""})
	},
	"DRIVERS":     func(c *completer, _ string) []candidate { return c.drivers() },
	"SCALE":       nil,
	"N":           nil,
	"DURATION":    nil,
	"ADDRESS":     nil, // unknown
	"HOST:PORT":   nil,
	"[HOST]:PORT": nil,
	"URL":         nil, // a secret, or unknown
	"NAME":        nil, // of an agent
	"KEY=VALUE":   nil,
	"LIST":        func(*completer, string) []candidate { return wordsOf([]string{agent.AllowBroker}) },
	"PART":        func(*completer, string) []candidate { return wordsOf(selftest.Parts()) },
	"IP":          nil,
	"NAMES":       nil, // of variables: the environment is not revealed
	"PATHS":       func(*completer, string) []candidate { return []candidate{{":files", ""}} },
	"AGENT":       nil, // agents are not queried
	"ID":          nil, // of a token: completion must not open, and so create, the keep
	"RATE":        nil,
	"KEY":         nil,
	"VALUE":       nil, // a key's, if it has no fixed words
}

// formats are the output formats of the verb.
func (c *completer) formats() []string {
	formats := []string{"text", "markdown"}
	if c.node.Name == "report" {
		formats = append(formats, "html")
		others := append(export.Formats(), "omb") // which takes the folder, not its figures
		slices.Sort(others)
		formats = append(formats, others...)
	}
	return formats
}

// terms are the words in the glossary. Terms of two words are omitted, since a shell would have to quote
// them.
func terms() []candidate {
	var all []candidate
	for _, w := range glossary.Words() {
		if !strings.Contains(w.Name, " ") {
			all = append(all, candidate{strings.ToLower(w.Name), firstSentence(w.Text)})
		}
	}
	return all
}

func folders(*completer, string) []candidate { return []candidate{{":folders", ""}} }

// placeholder is a value's placeholder in help.
func placeholder(v *kong.Value) string {
	if v.Flag != nil {
		return v.Flag.PlaceHolder
	}
	if v.Tag != nil && v.Tag.PlaceHolder != "" {
		return v.Tag.PlaceHolder
	}
	return "<" + v.Name + ">"
}

// values lists the values of a flag or a positional argument. cur is the part already typed.
func (c *completer) values(v *kong.Value, cur string) []candidate {
	if v.Enum != "" {
		return wordsOf(v.EnumSlice())
	}
	if v.Flag != nil && v.Flag.PlaceHolder == "VALUE" {
		k := c.keys[v.Name]
		if k.Path == "system.driver" {
			return c.drivers()
		}
		return wordsOf(k.Words)
	}
	if kind := valueKinds[placeholder(v)]; kind != nil {
		return kind(c, cur)
	}
	return nil
}

func wordsOf(words []string) []candidate {
	var all []candidate
	for _, w := range words {
		all = append(all, candidate{word: w})
	}
	return all
}

func (c *completer) drivers() []candidate {
	var all []candidate
	for _, name := range c.in.Drivers.Names() {
		if d, err := c.in.Drivers.Lookup(name); err == nil {
			all = append(all, candidate{d.Name, firstSentence(d.Title + ": " + d.Summary)})
		}
	}
	return all
}

// systems are the systems with recipes.
func (c *completer) systems() []candidate {
	entries, err := broker.Catalog(c.in.Drivers)
	if err != nil {
		return nil
	}
	var all []candidate
	for _, x := range entries {
		all = append(all, candidate{x.Recipe.Name, x.Recipe.Title})
	}
	return all
}

// setting completes a setting of the named system, or its value.
func (c *completer) setting(cur string) []candidate {
	entries, err := broker.Catalog(c.in.Drivers)
	if err != nil || len(c.args) == 0 {
		return nil
	}
	x, err := broker.Named(entries, c.in.Drivers, c.args[0])
	if err != nil {
		return nil
	}
	name, _, valued := strings.Cut(cur, "=")
	var all []candidate
	for _, n := range slices.Sorted(maps.Keys(x.Recipe.Settings)) {
		s := x.Recipe.Settings[n]
		switch {
		case !valued:
			all = append(all, candidate{n + "=", firstSentence(s.Help)})
		case n == name:
			for _, v := range s.Allowed {
				all = append(all, candidate{word: n + "=" + v})
			}
		}
	}
	return all
}

// driverLine finds the driver in a scenario's text.
var driverLine = regexp.MustCompile(`\bdriver:\s*["']?([\w-]+)`)

// mostScenario limits how much of a scenario is read for completion.
const mostScenario = 1 << 20

// driver is the driver that a run with these words would use: from the flag, the environment or the
// scenario, or the default.
func (c *completer) driver() (driver.Definition, bool) {
	name := "jetstream"
	if len(c.args) > 0 {
		if f, err := userfile.Open(c.in.Path(c.args[0])); err == nil {
			b, _ := io.ReadAll(io.LimitReader(f, mostScenario))
			_ = f.Close()
			if m := driverLine.FindSubmatch(b); m != nil {
				name = string(m[1])
			}
		}
	}
	for _, v := range []string{"WEIR_SYSTEM_DRIVER", "WEIR_DRIVER"} {
		if s, ok := c.in.Env(v); ok {
			name = s
		}
	}
	if v := c.given["driver"]; len(v) > 0 {
		name = v[len(v)-1]
	}
	d, err := c.in.Drivers.Lookup(name)
	return d, err == nil
}

// options are the driver's options.
func (c *completer) options() []driver.Option {
	d, ok := c.driver()
	if !ok {
		return nil
	}
	return driver.Options(d.New())
}

// option lists the driver's options as NAME=, or if cur contains = the values of that option.
func (c *completer) option(cur string) []candidate {
	name, _, valued := strings.Cut(cur, "=")
	var all []candidate
	for _, o := range c.options() {
		words := o.Allowed
		if o.Type == "yes/no" {
			words = []string{"true", "false"}
		}
		switch {
		case !valued:
			all = append(all, candidate{o.Name + "=", firstSentence(o.Help)})
		case o.Name == name:
			for _, w := range words {
				all = append(all, candidate{word: o.Name + "=" + w})
			}
		}
	}
	return all
}

// firstSentence shortens help to fit beside a word.
func firstSentence(s string) string {
	s, _, _ = strings.Cut(strings.Join(strings.Fields(s), " "), ". ")
	const most = 80
	s = strings.TrimSuffix(s, ".")
	if r := []rune(s); len(r) > most {
		s = string(r[:most-1]) + "…"
	}
	return s
}
