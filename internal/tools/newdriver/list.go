package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
)

// listed returns drivers/standard/standard.go with the package of that name, below the module's folder
// drivers, added to its imports and, in order of names, to the result of Definitions.
func listed(src []byte, module, pkg string) ([]byte, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "standard.go", src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	imports, err := importsOf(f)
	if err != nil {
		return nil, err
	}
	for _, spec := range imports.Specs {
		if name := localName(spec.(*ast.ImportSpec)); name == pkg {
			return nil, fmt.Errorf("it imports a package called %s already", pkg)
		}
	}
	list, err := definitionsOf(f)
	if err != nil {
		return nil, err
	}
	at := list.Rbrace
	for _, e := range list.Elts {
		name, ok := callee(e)
		if !ok {
			return nil, fmt.Errorf("line %d: Definitions returns something else than calls of Definition", fset.Position(e.Pos()).Line)
		}
		if name > pkg {
			at = e.Pos()
			break
		}
	}
	// From the end, so that earlier positions stay valid.
	out := insert(src, fset.Position(at).Offset, pkg+".Definition(),\n")
	out = insert(out, fset.Position(imports.Rparen).Offset, strconv.Quote(module+"/drivers/"+pkg)+"\n")
	formatted, err := format.Source(out)
	if err != nil {
		return nil, errors.New("it is not written as one driver a line")
	}
	return formatted, nil
}

// importsOf returns the only import group.
func importsOf(f *ast.File) (*ast.GenDecl, error) {
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT && g.Rparen.IsValid() {
			return g, nil
		}
	}
	return nil, errors.New("it has no imports in parentheses")
}

// localName returns the name of an import in the file.
func localName(s *ast.ImportSpec) string {
	if s.Name != nil {
		return s.Name.Name
	}
	p, _ := strconv.Unquote(s.Path.Value)
	return path.Base(p)
}

// definitionsOf returns the list in Definitions' return statement.
func definitionsOf(f *ast.File) (*ast.CompositeLit, error) {
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Name.Name != "Definitions" || fn.Recv != nil || fn.Body == nil || len(fn.Body.List) != 1 {
			continue
		}
		if r, ok := fn.Body.List[0].(*ast.ReturnStmt); ok && len(r.Results) == 1 {
			if list, ok := r.Results[0].(*ast.CompositeLit); ok {
				return list, nil
			}
		}
	}
	return nil, errors.New("it has no function Definitions that only returns a list")
}

// callee returns the package whose Definition an expression calls.
func callee(e ast.Expr) (string, bool) {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return "", false
	}
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "Definition" {
		return "", false
	}
	x, ok := s.X.(*ast.Ident)
	if !ok {
		return "", false
	}
	return x.Name, true
}

func insert(src []byte, at int, text string) []byte {
	return slices.Concat(bytes.Clone(src[:at]), []byte(text), src[at:])
}
