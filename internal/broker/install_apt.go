//go:build unix

package broker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// apt downloads packages with their missing dependencies and unpacks them without installing anything:
// the host does not change, and no service starts. Packages that work only when installed are
// installed. apt itself checks the signature of its lists, and every package against them. It returns
// the version of the first package, and the variable with which the unpacked programs find their
// libraries.
func (j *job) apt(ctx context.Context, s *AptSource) (version string, env []string, err error) {
	get, err := j.host.look("apt-get")
	if err != nil {
		return "", nil, err
	}
	quiet := []string{"DEBIAN_FRONTEND=noninteractive", "LC_ALL=C"}
	if s.System {
		args := append([]string{get, "install", "--yes", "--no-install-recommends"}, s.Packages...)
		total := j.toCome(ctx, quiet, args)
		j.note("installing the packages %s on this host%s (a package may start its own service)", strings.Join(s.Packages, ", "), ofSize(total))
		j.far.begin(total, nil)
		defer j.far.end()
		_, err := j.host.run(ctx, call{dir: j.work(), env: quiet, args: args})
		return "", nil, staleLists(err)
	}
	deb, err := j.host.look("dpkg-deb")
	if err != nil {
		return "", nil, err
	}
	archives := filepath.Join(j.work(), "archives")
	if err := os.MkdirAll(filepath.Join(archives, "partial"), 0o755); err != nil {
		return "", nil, err
	}
	var from []string
	what := strings.Join(s.Packages, ", ") + " and their missing dependencies"
	if s.Release != "" {
		what = strings.Join(s.Packages, ", ") + " of Debian " + s.Release + " with all that they need"
		j.note("reading the lists of packages of Debian %s", s.Release)
		j.far.begin(0, nil)
		if from, err = j.release(ctx, get, s.Release); err != nil {
			return "", nil, err
		}
	}
	// Without the lock, which only root may take: nothing that it protects is written. As weir's own user
	// rather than apt's, who cannot write here.
	args := []string{
		get, "install", "--download-only", "--reinstall", "--yes", "--no-install-recommends",
		"-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User=", "-o", "Dir::Cache::Archives=" + archives,
	}
	args = append(append(args, from...), s.Packages...)
	total := j.toCome(ctx, quiet, args)
	j.note("downloading the packages %s%s", what, ofSize(total))
	j.far.begin(total, filled(archives))
	_, err = j.host.run(ctx, call{dir: j.work(), env: quiet, args: args})
	j.far.end()
	if err != nil {
		return "", nil, staleLists(err)
	}
	files, err := filepath.Glob(filepath.Join(archives, "*.deb"))
	if err != nil || len(files) == 0 {
		return "", nil, errors.Join(errors.New("apt-get downloaded no package"), err)
	}
	sort.Strings(files)
	for _, f := range files {
		j.note("unpacking %s", filepath.Base(f))
		if _, err := j.host.run(ctx, call{dir: j.work(), args: []string{deb, "--extract", f, j.out()}}); err != nil {
			return "", nil, err
		}
		if name := filepath.Base(f); strings.HasPrefix(name, s.Packages[0]+"_") {
			b, err := j.host.run(ctx, call{dir: j.work(), args: []string{deb, "--field", f, "Version"}})
			if err != nil {
				return "", nil, err
			}
			version = firstLine(string(b))
		}
	}
	if s.Release != "" {
		// 4.0.5-6+deb13u2 is Debian's package of 4.0.5.
		upstream, _, _ := strings.Cut(version[strings.Index(version, ":")+1:], "-")
		if want := j.recipe.Version; want != distribution && upstream != want {
			return "", nil, fmt.Errorf("debian %s has version %s of %s now, and the recipe is for %s (--via docker)", s.Release, upstream, s.Packages[0], want)
		}
		return version, nil, j.wrap(s.Programs)
	}
	return version, libraries(j.out()), nil
}

// toCome returns how many bytes an apt-get command will download according to its lists, or 0 if
// unknown.
func (j *job) toCome(ctx context.Context, env, args []string) (total int64) {
	out, err := j.host.run(ctx, call{dir: j.work(), env: env, args: append(slices.Clone(args), "--print-uris")})
	if err != nil {
		return 0 // the command itself will report why
	}
	for line := range strings.Lines(string(out)) {
		// 'URI' FILE BYTES CHECKSUM
		if f := strings.Fields(line); len(f) >= 3 && strings.HasPrefix(f[0], "'") {
			if n, err := strconv.ParseInt(f[2], 10, 48); err == nil && n > 0 {
				total += n
			}
		}
	}
	return total
}

// ofSize adds a size, if known, to a sentence.
func ofSize(total int64) string {
	if total <= 0 {
		return ""
	}
	return ", " + mebibytes(total)
}

// distribution is the version of a recipe that uses the package manager's version.
const distribution = "distribution"

// staleLists adds the most likely cause to an error of apt-get.
func staleLists(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w (update the lists of packages: apt-get update)", err)
}

// libraries returns the variable with which programs unpacked into a folder find the libraries
// unpacked with them.
func libraries(dir string) []string {
	var paths []string
	for _, pattern := range []string{"lib/*-linux-*", "usr/lib/*-linux-*", "lib", "usr/lib"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern)) // of our own
		for _, f := range found {
			if st, err := os.Stat(f); err == nil && st.IsDir() {
				paths = append(paths, "${DIR}"+strings.TrimPrefix(f, dir))
			}
		}
	}
	if len(paths) == 0 {
		return nil
	}
	return []string{"LD_LIBRARY_PATH=" + strings.Join(paths, ":")}
}
