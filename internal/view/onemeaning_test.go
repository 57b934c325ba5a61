package view

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/must"
)

// A mark with two meanings misleads readers who know only one. "~" and dashes both mean: too few samples,
// do not quote.
func TestMarksHaveOneMeaning(t *testing.T) {
	t.Parallel()
	var literals []string
	for _, dir := range []string{".", "../serve", "../cli", "../compare", "../judge"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no source in %s: %v", dir, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed := must.Get(parser.ParseFile(token.NewFileSet(), file, nil, 0))(t)
			ast.Inspect(parsed, func(n ast.Node) bool {
				if x, ok := n.(*ast.BasicLit); ok && x.Kind == token.STRING && strings.Contains(x.Value, "~") && !strings.Contains(x.Value, "~/") {
					literals = append(literals, file+": "+x.Value)
				}
				return true
			})
		}
	}
	if len(literals) != 1 || literals[0] != `latency.go: "~"` {
		t.Errorf("texts with ~ are %q; want only fewSamples", literals)
	}

	dashed := regexp.MustCompile(`(?m)^.*(stroke-dasharray|\bdashed|\bdotted).*$`)
	var rules []string
	for _, file := range []string{"layout/page.css", "../serve/page.css", "../serve/page.tmpl", "../serve/live.js", "../serve/list.js", "plot/plot.go"} {
		text := must.Get(os.ReadFile(file))(t)
		for _, line := range dashed.FindAllString(string(text), -1) {
			rules = append(rules, line[:strings.IndexByte(line+" ", ' ')])
		}
	}
	if got := strings.Join(rules, " "); got != ".key.dash .line.dash" {
		t.Errorf("dashes are drawn by %s; want only the class of what has too few samples", got)
	}
}
