//go:build unix

package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// golang downloads a module and builds its programs. It builds in a copy of the module, as its authors
// do, not with `go install`, which asks the proxy for more than the module (retractions), rejects
// modules with replacements, and may select other versions than the module's own go.sum.
func (j *job) golang(ctx context.Context, s *GoSource) error {
	tool, err := j.host.look("go")
	if err != nil {
		return err
	}
	env := []string{"GOFLAGS=-mod=mod", "GOWORK=off", "GO111MODULE=on", "CGO_ENABLED=0"}
	j.note("downloading the module %s@%s", s.Module, s.Version)
	j.far.begin(0, nil) // go reports no sizes, neither here nor while it builds and downloads dependencies
	defer j.far.end()
	b, err := j.host.run(ctx, call{dir: j.work(), env: env, args: []string{tool, "mod", "download", "-json", s.Module + "@" + s.Version}})
	if err != nil {
		return err
	}
	var module struct{ Dir, Sum, Error string }
	if err := json.Unmarshal(b, &module); err != nil || module.Dir == "" {
		return errors.Join(fmt.Errorf("go mod download gave no folder: %s", module.Error), err)
	}
	j.note("its checksum is %s", module.Sum)
	src := filepath.Join(j.work(), "src")
	if err := copyTree(src, module.Dir); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		j.note("writing %s", name)
		file := filepath.Join(src, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(s.Files[name]), 0o644); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Programs)) {
		j.note("building %s", name)
		out := filepath.Join(j.out(), "bin", name)
		if _, err := j.host.run(ctx, call{dir: src, env: env, args: []string{tool, "build", "-trimpath", "-buildvcs=false", "-o", out, "./" + s.Programs[name]}}); err != nil {
			return err
		}
	}
	return nil
}

// copyTree copies a folder and makes the copies writable.
func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o755)
		case !d.Type().IsRegular():
			return nil // a module has none
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		return os.WriteFile(target, b, 0o644)
	})
}
