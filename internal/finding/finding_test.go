package finding

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/golden"
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
	for _, s := range catalogue().sections {
		fmt.Fprintf(&b, "\n## %s\n\n| code | sentence |\n| --- | --- |\n", s.title)
		for _, e := range s.entries {
			text := strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`).Replace(e.text.show())
			if e.when != "" {
				text += " (" + e.when + ")"
			}
			fmt.Fprintf(&b, "| `%s` | %s |\n", e.code, text)
		}
	}
	golden.File(t, "../../docs/method/findings.md", b.String())
}

// show writes a template for people.
func (t template) show() string {
	var b strings.Builder
	for _, p := range t {
		switch {
		case p.choice && len(p.yes) > 0 && len(p.no) > 0:
			b.WriteString("[" + p.yes.show() + " / " + p.no.show() + "]")
		case p.choice:
			b.WriteString("[" + p.yes.show() + p.no.show() + "]")
		case p.name != "":
			b.WriteString("{" + p.name + "}")
		default:
			b.WriteString(p.text)
		}
	}
	return b.String()
}

// TestEveryCodeIsSaidWithItsValues reads the calls of New and say in all packages: each has a
// code of the catalogue and the values of its sentence, and no sentence is left that nobody says.
func TestEveryCodeIsSaidWithItsValues(t *testing.T) {
	unsaid := maps.Clone(catalogue().byCode)
	written, err := filepath.Glob("../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range written {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "../finding/") {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
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
			at := slices.IndexFunc(args, func(a string) bool { return catalogue().byCode[a] != nil })
			switch {
			case name == "say" && at != 0 && args[0] != "":
				t.Errorf("%s: the catalogue has no %s", fset.Position(n.Pos()), args[0])
				return true
			case at < 0 || !slices.Contains([]string{"say", "add", "lacks", "missing", "measured", "New"}, name):
				return true
			}
			catalogue().byCode[args[at]].text.names(false, func(name string, may bool) {
				if !may && !slices.Contains(args[at+1:], name) {
					t.Errorf("%s: %s without its {%s}", fset.Position(n.Pos()), args[at], name)
				}
			})
			return true
		})
	}
	for code := range unsaid {
		t.Errorf("nobody says %s", code)
	}
	for code, e := range catalogue().byCode {
		for _, p := range e.text {
			if _, known := write(p.format, 1.0); !known {
				t.Errorf("%s: there is no format %q", code, p.format)
			}
		}
	}
}

func TestRender(t *testing.T) {
	for source, want := range map[string]string{
		"{n:count} sample[n=1||s]":                   "2 samples",
		"{n} [n=2|two[agents| and {agents:list}]|x]": "2 two and a, b, c, d, e and 1 more",
		"[no|yes|no], [gone|yes|no], [text|{text}]":  "no, no, why",
		"{text:clause} {one:agents} {agents:agents}": "Why. agent a agents a, b, c, d, e and 1 more",
		"{f}: {fs}, {fs:list}":                       "balanced: balanced; nothing was sent, balanced, nothing was sent",
		"{gone}":                                     "{gone}",
	} {
		text, err := parse(source)
		if err != nil {
			t.Fatal(err)
		}
		balanced, unsent := New("books.balanced"), New("run.unsent")
		got := text.render(New("", "n", 2, "no", false, "text", "why", "gone", (*int)(nil), "one", []string{"a"}, "agents", strings.Split("abcdef", ""),
			"f", balanced, "fs", []Finding{balanced, unsent}).Values)
		if got != want {
			t.Errorf("%s: %q; want %q", source, got, want)
		}
	}
	for _, wrong := range []string{"{n", "[n", "[n|a", "a]", "a|b", "[n|a|b|c]"} {
		if _, err := parse(wrong); err == nil {
			t.Errorf("%q is read", wrong)
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, x := range []struct {
		format string
		v      any
		want   string
	}{
		{"ns", int64(0), "0 ns"}, {"ns", int64(999), "999 ns"}, {"ns", 12_345, "12.3 µs"}, {"ns", 1_234_567.8, "1.23 ms"}, {"ns", 51 * time.Millisecond, "51.0 ms"},
		{"ns", 999_600, "1.00 ms"}, {"signed", -3_000_000, "-3.00 ms"}, {"signed", 1, "+1 ns"},
		{"count", uint64(0), "0"}, {"count", 999, "999"}, {"count", 1000.9, "1,000"}, {"count", 1234567, "1,234,567"}, {"count", -1, "0"},
		{"share", 0.1, "10 %"}, {"share", 0.00449, "0.4 %"}, {"share", 12.3, "12 x"}, {"times", 0.3, "30 % of"}, {"times", 12.3, "12 times"},
		{"part", 0.0, "0 %"}, {"part", 0.000001, "below 0.01 %"}, {"part", 0.882, "88.2 %"}, {"part", 0.99999, "over 99.9 %"}, {"part", 1.0, "100 %"},
		{"p", 99.999, "p99.999"}, {"p", 50, "p50"}, {"second", 3_040_000_000, "3.0 s"}, {"length", 54.1, "55 s"}, {"length", 170.0, "3 min"}, {"length", 9000.0, "3 h"},
		{"whole", 5.6, "6"}, {"digits", 9.5, "9.5"}, {"", 2, "2"},
	} {
		if got, _ := write(x.format, x.v); got != x.want {
			t.Errorf("%s of %v: %q; want %q", x.format, x.v, got, x.want)
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
