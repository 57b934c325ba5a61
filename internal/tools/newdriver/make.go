package main

import (
	"bufio"
	"bytes"
	"embed"
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

// templates are the files of a driver, with [[ ]] around what differs: a recipe has
// templates of its own.
//
//go:embed template/*.tmpl
var templates embed.FS

// make creates the driver in the module that contains dir: all of it or nothing.
func (p plan) make(dir string) error {
	root, module, err := moduleAt(dir)
	if err != nil {
		return err
	}
	drivers := filepath.Join(root, "drivers")
	folder := filepath.Join(drivers, p.Package)
	if _, err := os.Lstat(folder); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("drivers/%s is there already", p.Package)
	}
	if other, err := recipeOf(drivers, p.Name); err != nil {
		return err
	} else if other != "" {
		return fmt.Errorf("%s has a recipe called %s already, and the new driver's would be another", filepath.ToSlash(other), p.Name)
	}
	list := filepath.Join(drivers, "standard", "standard.go")
	before, err := os.ReadFile(list)
	if err != nil {
		return fmt.Errorf("drivers/standard/standard.go cannot be edited: %w", err)
	}
	after, err := listed(before, module, p.Package)
	if err != nil {
		return fmt.Errorf("drivers/standard/standard.go cannot be edited: %w", err)
	}
	files, err := p.files()
	if err != nil {
		return err
	}
	return place(folder, files, list, after)
}

// moduleAt returns the root folder and the path of the module that contains dir.
func moduleAt(dir string) (root, module string, err error) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return "", "", err
	}
	for {
		b, err := os.ReadFile(filepath.Join(at, "go.mod"))
		if err == nil {
			for line := range strings.Lines(string(b)) {
				if module, ok := strings.CutPrefix(line, "module "); ok {
					return at, strings.TrimSpace(module), nil
				}
			}
			return "", "", fmt.Errorf("%s names no module", filepath.Join(at, "go.mod"))
		}
		up := filepath.Dir(at)
		if up == at {
			return "", "", fmt.Errorf("%s is in no Go module", dir)
		}
		at = up
	}
}

// recipeOf returns the file below a folder that has a recipe of that name.
func recipeOf(drivers, name string) (found string, err error) {
	err = filepath.WalkDir(drivers, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "recipe.yaml" {
			return err
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
			if s.Text() == "name: "+name {
				found, err = filepath.Rel(filepath.Dir(drivers), p)
			}
		}
		return err
	})
	return found, err
}

// files returns the driver's files by name.
func (p plan) files() (map[string][]byte, error) {
	all, err := template.New("").Delims("[[", "]]").ParseFS(templates, "template/*.tmpl")
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, t := range all.Templates() {
		name, ok := strings.CutSuffix(t.Name(), ".tmpl")
		if !ok {
			continue
		}
		var b bytes.Buffer
		if err := t.Execute(&b, p); err != nil {
			return nil, err
		}
		files[name] = b.Bytes()
		if strings.HasSuffix(name, ".go") {
			if files[name], err = format.Source(b.Bytes()); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return files, nil
}

// place writes the folder and the list. Both are first written next to their destinations, so that
// little can fail when the folder is moved there, and that step is undone on failure.
func place(folder string, files map[string][]byte, list string, after []byte) (err error) {
	made, err := os.MkdirTemp(filepath.Dir(folder), ".newdriver-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(made)) }()
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(made, name), b, 0o644); err != nil {
			return err
		}
	}
	if err := os.Chmod(made, 0o755); err != nil {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(list), ".newdriver-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(next.Name()) }()
	_, err = next.Write(after)
	if err := errors.Join(err, next.Chmod(0o644), next.Close()); err != nil {
		return err
	}
	if err := os.Rename(made, folder); err != nil {
		return err
	}
	if err := os.Rename(next.Name(), list); err != nil {
		return errors.Join(err, os.RemoveAll(folder))
	}
	return nil
}
