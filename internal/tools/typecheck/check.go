package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// A listed is a package as printed by go list. A package modified by tests, or containing them, has a
// path such as "a [a.test]".
type listed struct {
	ImportPath string
	Dir        string
	DepOnly    bool // listed only as a dependency
	GoFiles    []string
	ImportMap  map[string]string
	Imports    []string
	Module     *struct{ GoVersion string }
	Error      *struct{ Err string }

	done    chan struct{} // closed when checked is set
	checked *types.Package
	faults  []string
}

// list asks go for packages, their tests, and all dependencies, in dependency order. Nothing is
// compiled. It leaves out C, as every cross-compiling build does.
func list(ctx context.Context, dir, platform, arch string, patterns []string) ([]*listed, error) {
	args := append([]string{"list", "-e", "-deps", "-test", "-json=ImportPath,Dir,DepOnly,GoFiles,ImportMap,Imports,Module,Error", "--"}, patterns...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS="+platform, "GOARCH="+arch, "CGO_ENABLED=0")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, strings.TrimSpace(said.String()))
	}
	var all []*listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := &listed{done: make(chan struct{})}
		switch err := d.Decode(p); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("reading what go list says: %w", err)
		case strings.HasSuffix(p.ImportPath, ".test"): // the generated main program of tests
		default:
			all = append(all, p)
		}
	}
}

// check type-checks packages in the order of list, and returns all errors.
func check(all []*listed, arch string) (faults []string) {
	fset, byPath := token.NewFileSet(), map[string]*listed{}
	for _, p := range all {
		byPath[p.ImportPath] = p
	}
	at := make(chan struct{}, runtime.GOMAXPROCS(0)) // limits parallelism
	var checking sync.WaitGroup
	for _, p := range all {
		checking.Go(func() {
			defer close(p.done)
			for _, i := range p.Imports {
				if d := byPath[i]; d != nil {
					<-d.done
				}
			}
			at <- struct{}{}
			defer func() { <-at }()
			p.check(fset, byPath, types.SizesFor("gc", arch))
		})
	}
	checking.Wait()
	for _, p := range all {
		faults = append(faults, p.faults...)
	}
	return faults
}

// mostFaults is how many errors of a package are reported.
const mostFaults = 10

// check type-checks a package; of its dependencies it uses only the declarations.
func (p *listed) check(fset *token.FileSet, byPath map[string]*listed, sizes types.Sizes) {
	fault := func(err error) {
		if len(p.faults) < mostFaults {
			p.faults = append(p.faults, err.Error())
		}
	}
	if p.Error != nil {
		fault(errors.New(p.Error.Err))
	}
	if p.ImportPath == "unsafe" {
		p.checked = types.Unsafe
		return
	}
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			fault(err)
			continue
		}
		files = append(files, f)
	}
	path, _, _ := strings.Cut(p.ImportPath, " ")
	conf := types.Config{Importer: importing{p, byPath}, Sizes: sizes, IgnoreFuncBodies: p.DepOnly, Error: fault}
	if p.Module != nil && p.Module.GoVersion != "" {
		conf.GoVersion = "go" + p.Module.GoVersion
	}
	p.checked, _ = conf.Check(path, fset, files, nil) // the errors were passed to fault
}

// importing resolves the imports of a package.
type importing struct {
	by  *listed
	all map[string]*listed
}

// Import implements types.Importer.
func (i importing) Import(path string) (*types.Package, error) {
	if other, ok := i.by.ImportMap[path]; ok {
		path = other
	}
	p := i.all[path]
	if p == nil || p.checked == nil {
		return nil, fmt.Errorf("package %s is not there", path)
	}
	return p.checked, nil
}
