package finding

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"text/template/parse"
	"time"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
)

// TestThePageIsUpToDate writes docs/method/findings.md: every sentence, with its code.
func TestThePageIsUpToDate(t *testing.T) {
	var b strings.Builder
	b.WriteString(`<!-- Generated from internal/finding/catalogue.txt. Do not edit. -->
# What weir says of a run

Each sentence has a code, which ` + "`result.json`" + ` stores with its values (` + "`codes`, `values`" + `, see [the
format](../formats/result.md#verdict)). A code is stable, its words may change. ` + "`{name}`" + ` is a value. In
brackets stands what is said only sometimes, or one text / the other.
`)
	section := ""
	for _, e := range catalogue().entries {
		if e.section != section {
			section = e.section
			fmt.Fprintf(&b, "\n## %s\n\n| code | sentence |\n| --- | --- |\n", section)
		}
		text := strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`).Replace(shown(e.code))
		if e.when != "" {
			text += " (" + e.when + ")"
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", e.code, text)
	}
	golden.File(t, "../../docs/method/findings.md", b.String())
}

// shown is a sentence as people read it, with {name} for a value.
func shown(code string) string {
	return walk(catalogue().words.Lookup(code).Root, false, func(string, bool) {})
}

// walk returns a template as people read it, and visits its names; may says that they may be
// missing.
func walk(n parse.Node, may bool, visit func(name string, may bool)) (text string) {
	switch n := n.(type) {
	case *parse.ListNode:
		if n != nil {
			for _, x := range n.Nodes {
				text += walk(x, may, visit)
			}
		}
	case *parse.TextNode:
		text = string(n.Text)
	case *parse.ActionNode:
		name := field.FindStringSubmatch(n.String())[1]
		visit(name, may)
		text = "{" + name + "}"
	case *parse.IfNode:
		text = walk(n.List, true, visit)
		if other := walk(n.ElseList, true, visit); other != "" {
			text += " / " + other
		}
		text = "[" + text + "]"
	}
	return text
}

var field = regexp.MustCompile(`\.([a-z_]+)`)

// Parses the calls of New and say in all packages: each must have a code of the catalogue and its
// sentence's values, and every sentence must be used.
func TestEveryCodeIsUsedWithItsValues(t *testing.T) {
	known, unsaid := catalogue().words.Lookup, map[string]bool{}
	for _, e := range catalogue().entries {
		unsaid[e.code] = true
	}
	written := must.Get(filepath.Glob("../*/*.go"))(t)
	for _, path := range append(written, "../../engine/wire.go") {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "../finding/") {
			continue
		}
		fset := token.NewFileSet()
		file := must.Get(parser.ParseFile(fset, path, nil, 0))(t)
		if !strings.HasPrefix(path, "../judge/") && !slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return strings.HasSuffix(i.Path.Value, `/internal/finding"`) }) {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok {
				text, _ := strconv.Unquote(lit.Value)
				delete(unsaid, text)
				if strings.HasPrefix(path, "../judge/") && strings.Contains(text, " ") && strings.HasSuffix(strings.TrimSpace(text), ".") {
					t.Errorf("%s: %s: put sentences into catalogue.txt", fset.Position(n.Pos()), lit.Value)
				}
			}
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			args := make([]string, len(call.Args))
			for i, a := range call.Args {
				if lit, ok := a.(*ast.BasicLit); ok {
					args[i], _ = strconv.Unquote(lit.Value)
				}
			}
			name := ""
			switch f := call.Fun.(type) {
			case *ast.Ident:
				name = f.Name
			case *ast.SelectorExpr:
				name = f.Sel.Name
			}
			at := slices.IndexFunc(args, func(a string) bool { return a != "" && known(a) != nil })
			switch {
			case name == "say" && at != 0 && args[0] != "":
				t.Errorf("%s: the catalogue has no %s", fset.Position(n.Pos()), args[0])
				return true
			case at < 0 || !slices.Contains([]string{"say", "sentence", "add", "suspect", "lacks", "missing", "measured", "New"}, name):
				return true
			}
			walk(known(args[at]).Root, false, func(name string, may bool) {
				if !may && !slices.Contains(args[at+1:], name) {
					t.Errorf("%s: %s without its {%s}", fset.Position(n.Pos()), args[at], name)
				}
			})
			return true
		})
	}
	for code := range unsaid {
		if strings.HasPrefix(code, "verdict.") { // by the names of checks
			continue
		}
		t.Errorf("nobody says %s", code)
	}
}

func TestFormats(t *testing.T) {
	balanced, unsent := New("books.balanced"), New("run.unsent")
	for _, x := range []struct {
		format string
		v      any
		want   string
	}{
		{"ns", 51 * time.Millisecond, "51.0 ms"},
		{"ns", 1_234_567.8, "1.23 ms"},
		{"signed", -3_000_000, "-3.00 ms"},
		{"signed", 1, "+1 ns"},
		{"count", uint64(999), "999"},
		{"count", 1000.9, "1,000"},
		{"count", -1, "0"},
		{"share", 0.1, "10 %"},
		{"share", 0.00449, "0.4 %"},
		{"share", 12.3, "12 x"},
		{"times", 0.3, "30 % of"},
		{"times", 12.3, "12 times"},
		{"part", 0.0, "0 %"},
		{"part", 0.000001, "below 0.01 %"},
		{"part", 0.882, "88.2 %"},
		{"part", 0.99999, "over 99.9 %"},
		{"part", 1.0, "100 %"},
		{"p", 99.999, "p99.999"},
		{"p", 50, "p50"},
		{"second", 3_040_000_000, "3.0 s"},
		{"length", 54.1, "55 s"},
		{"length", 170.0, "3 min"},
		{"length", 9000.0, "3 h"},
		{"whole", 5.6, "6"},
		{"digits", 9.5, "9.5"},
		{"clause", balanced, "Balanced."},
		{"agents", []string{"a"}, "agent a"},
		{"agents", strings.Split("abcdef", ""), "agents a, b, c, d, e and 1 more"},
		{"few", []Finding{balanced, unsent}, "balanced, nothing was sent"},
	} {
		var got strings.Builder
		if err := template.Must(template.New("").Funcs(formats).Parse("{{"+x.format+" .}}")).Execute(&got, x.v); err != nil || got.String() != x.want {
			t.Errorf("%s of %v: %q, %v; want %q", x.format, x.v, got.String(), err, x.want)
		}
	}
}

func TestData(t *testing.T) {
	codes, values := Data(New("agent.of", "agent", "b", "found", New("steal.value", "part", 0.5)), Finding{}, New("agent.also", "agents", []string{"a"}))
	if want := []string{"agent.of", "steal.value", "agent.also"}; !slices.Equal(codes, want) {
		t.Errorf("%q; want %q", codes, want)
	}
	if got, want := fmt.Sprint(values), "map[agent:b agents:[a] found:map[code:steal.value values:map[part:0.5]]]"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
}
