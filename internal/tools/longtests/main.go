// Command longtests prints arguments of go test, for the tests that a run with -short leaves out or shortens:
//
//	go test $(go run ./internal/tools/longtests PACKAGE ...)
//
// These are the tests that use needs.Time or needs.Less, themselves or by a function that they call. A call is
// recognized by the name alone, so the list may have a test too many, and lacks none.
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

func main() { os.Exit(run(".", os.Args[1:], os.Stdout, os.Stderr)) }

// run prints the arguments for the packages in the module around dir that the patterns match.
func run(dir string, patterns []string, stdout, stderr io.Writer) int {
	tests, err := long(dir, patterns)
	if err == nil && len(tests) == 0 {
		err = errors.New("no such test")
	}
	if err != nil {
		fmt.Fprintln(stderr, "longtests:", err)
		return 2
	}
	packages, names := map[string]bool{}, map[string]bool{}
	for _, t := range tests {
		packages[t.in], names[t.name] = true, true
	}
	fmt.Fprintf(stdout, "-run ^(%s)$ %s\n", strings.Join(slices.Sorted(maps.Keys(names)), "|"),
		strings.Join(slices.Sorted(maps.Keys(packages)), " "))
	return 0
}

// A function is one of a package; with a dot, a method of any of the package's types.
type function struct{ in, name string }

// long returns the tests that need time, in the packages that match the patterns.
func long(dir string, patterns []string) ([]function, error) {
	all, err := list(dir, "./...")
	if err != nil {
		return nil, err
	}
	wanted, err := list(dir, patterns...)
	if err != nil {
		return nil, err
	}
	users := map[function][]function{} // of a function, by name
	var needs function
	for in, folder := range all {
		if path.Base(in) == "needs" {
			needs.in = in
			continue // its own functions name each other
		}
		p, err := build.ImportDir(folder, 0)
		if none := (*build.NoGoError)(nil); errors.As(err, &none) {
			continue
		} else if err != nil {
			return nil, err
		}
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.TestGoFiles, p.XTestGoFiles) {
			if err := read(filepath.Join(folder, name), in, users); err != nil {
				return nil, err
			}
		}
	}
	reached := map[function]bool{}
	next := []function{{needs.in, "Time"}, {needs.in, "Less"}}
	for len(next) > 0 {
		f := next[0]
		if next = next[1:]; !reached[f] {
			reached[f] = true
			next = append(next, users[f]...)
		}
	}
	var tests []function
	for f := range reached {
		if _, ok := wanted[f.in]; ok && strings.HasPrefix(f.name, "Test") && f.name != "TestMain" {
			tests = append(tests, f)
		}
	}
	return tests, nil
}

// list returns the folders of the packages that match the patterns.
func list(dir string, patterns ...string) (map[string]string, error) {
	cmd := exec.Command("go", append([]string{"list", "-f", "{{.ImportPath}}\t{{.Dir}}", "--"}, patterns...)...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	folders := map[string]string{}
	for line := range strings.Lines(string(out)) {
		in, folder, _ := strings.Cut(strings.TrimSpace(line), "\t")
		folders[in] = folder
	}
	return folders, nil
}

// read adds to users what the functions of a file name.
func read(file, in string, users map[function][]function) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0) // resolves local names
	if err != nil {
		return err
	}
	imports := map[string]string{}
	for _, i := range parsed.Imports {
		of := strings.Trim(i.Path.Value, `"`)
		name := path.Base(of)
		if i.Name != nil {
			name = i.Name.Name
		}
		imports[name] = of
	}
	for _, d := range parsed.Decls {
		user, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		by := function{in, user.Name.Name}
		if user.Recv != nil {
			by.name = "." + by.name
		}
		uses := func(in, name string) { users[function{in, name}] = append(users[function{in, name}], by) }
		var look func(n ast.Node) bool
		look = func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && imports[x.Name] != "" {
					uses(imports[x.Name], n.Sel.Name)
					return false
				}
				uses(in, "."+n.Sel.Name)
				ast.Inspect(n.X, look)
				return false
			case *ast.KeyValueExpr:
				if _, ok := n.Key.(*ast.Ident); ok { // a field
					ast.Inspect(n.Value, look)
					return false
				}
			case *ast.Ident:
				if n.Obj == nil || n.Obj.Kind == ast.Fun { // not a local variable
					uses(in, n.Name)
				}
			}
			return true
		}
		ast.Inspect(user, look)
	}
	return nil
}
