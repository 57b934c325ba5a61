//go:build unix

package broker

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
)

func recipeFrom(t *testing.T, source string) *Recipe {
	t.Helper()
	rs := must.Get(ParseRecipes("r", []byte(`recipe: 1
name: thing
title: Thing
version: "1"
nodes: [1]
install: {`+source+`}
processes: [{name: s, ports: {client: 1}, start: ['{{program "thing"}}']}]
connect: {address: '{{.At "client"}}'}
`)))(t)
	return rs[0]
}

// fakeHost is a host with the given programs whose calls are answered by do.
func fakeHost(has []string, do func(c call) ([]byte, error)) *host {
	return &host{
		env: func(string) string { return "" },
		os:  "linux", arch: "amd64",
		look: func(name string) (string, error) {
			if slices.Contains(has, name) {
				return "/bin/" + name, nil
			}
			return "", fmt.Errorf("%s: not found", name)
		},
		glob: func(string) []string { return nil },
		run:  func(_ context.Context, c call) ([]byte, error) { return do(c) },
	}
}

// installed runs a job and returns its result.
func installed(t *testing.T, h *host, r *Recipe) (*Installation, []string, error) {
	t.Helper()
	cache, stage := t.TempDir(), t.TempDir()
	var notes []string
	j := &job{host: h, recipe: r, stage: stage, note: func(format string, v ...any) { notes = append(notes, fmt.Sprintf(format, v...)) }}
	home := r.home(cache)
	must.Do(t, os.MkdirAll(filepath.Dir(home), 0o755))
	if err := j.do(t.Context(), home); err != nil {
		if _, err := os.Stat(home); err == nil {
			t.Error("it failed, and is there")
		}
		return nil, notes, err
	}
	in, err := load(home)
	if err != nil || in == nil {
		t.Fatalf("what was installed: %v, %v", in, err)
	}
	return in, notes, nil
}

// executable checks that a program exists and is executable.
func executable(t *testing.T, in *Installation, name string) {
	t.Helper()
	st, err := os.Stat(in.Programs[name])
	if err != nil || st.Mode()&0o111 == 0 {
		t.Errorf("%s: %v, %v", name, st, err)
	}
}

func after(args []string, flag string) string {
	i := slices.Index(args, flag)
	if i < 0 || i+1 == len(args) {
		return ""
	}
	return args[i+1]
}

func write(t *testing.T, name, text string, mode fs.FileMode) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(name), 0o755))
	must.Do(t, os.WriteFile(name, []byte(text), mode))
}

func TestInstallOfAGoModule(t *testing.T) {
	module := t.TempDir()
	write(t, filepath.Join(module, "go.mod"), "module example.com/thing\n", 0o444)
	write(t, filepath.Join(module, "cmd", "main.go"), "package main\n", 0o444)
	write(t, filepath.Join(module, "version", "old.txt"), "old", 0o444)
	plain := recipeFrom(t, "go: {module: example.com/thing, version: v1.0.0, programs: {thing: cmd, other: .}}")
	r := recipeFrom(t, "go: {module: example.com/thing, version: v1.0.0, programs: {thing: cmd, other: .}, files: {version/old.txt: new, new/a.txt: text}}")
	if r.home("/c") == plain.home("/c") {
		t.Errorf("with and without files of its own it is installed in %s", r.home("/c"))
	}
	var built []string
	h := fakeHost([]string{"go"}, func(c call) ([]byte, error) {
		if !slices.Contains(c.env, "GOFLAGS=-mod=mod") || !slices.Contains(c.env, "CGO_ENABLED=0") {
			t.Errorf("go runs with %q", c.env)
		}
		if c.args[1] == "mod" {
			golden.Equal(t, []string{"/bin/go", "mod", "download", "-json", "example.com/thing@v1.0.0"}, c.args, "download")
			return fmt.Appendf(nil, `{"Dir": %q, "Sum": "h1:x"}`, module), nil
		}
		// In a writable copy.
		f, err := os.OpenFile(filepath.Join(c.dir, "go.mod"), os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		_ = f.Close()
		for name, want := range map[string]string{"version/old.txt": "new", "new/a.txt": "text"} {
			if b, err := os.ReadFile(filepath.Join(c.dir, name)); err != nil || string(b) != want {
				t.Errorf("built with %s: %q, %v; want %q", name, b, err, want)
			}
		}
		built = append(built, c.args[len(c.args)-1])
		write(t, after(c.args, "-o"), "binary", 0o755)
		return nil, nil
	})
	in, notes := must.Two(installed(t, h, r))(t)
	executable(t, in, "thing")
	executable(t, in, "other")
	golden.Equal(t, []string{"./.", "./cmd"}, built, "built")
	golden.Equal(t, []string{"downloading the module example.com/thing@v1.0.0", "its checksum is h1:x", "writing new/a.txt", "writing version/old.txt", "building other", "building thing"}, notes[:6], "notes")
	if in.Source != "go" || in.Version != "1" {
		t.Errorf("%+v", in)
	}
	for name, answer := range map[string]string{"go mod download gave no folder: no such module": `{"Error": "no such module"}`, "gave no folder": "{"} {
		h.run = func(context.Context, call) ([]byte, error) { return []byte(answer), nil }
		if _, _, err := installed(t, h, r); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v; want %q", err, name)
		}
	}
	h.run = func(context.Context, call) ([]byte, error) {
		return nil, &callError{"go", errors.New("exit status 1"), "checksum mismatch"}
	}
	if _, _, err := installed(t, h, r); err == nil || err.Error() != "go: exit status 1: checksum mismatch" {
		t.Errorf("a checksum that does not fit: %v", err)
	}
}

func TestInstallOfMavenArtifacts(t *testing.T) {
	r := recipeFrom(t, "maven: {artifacts: ['g:a:1', 'g.h:b:2'], archives: ['g:dist:3:tar.gz:bin'], programs: {thing: 'dist-*/bin/thing'}}")
	h := fakeHost([]string{"mvn"}, func(c call) ([]byte, error) {
		if !slices.Contains(c.args, "--strict-checksums") {
			t.Errorf("checksums are not strict: %q", c.args)
		}
		for _, a := range c.args {
			if out, ok := strings.CutPrefix(a, "-DoutputDirectory="); ok {
				if strings.HasSuffix(out, "lib") {
					b, err := os.ReadFile(filepath.Join(c.dir, "pom.xml"))
					for _, want := range []string{"<groupId>g.h</groupId>", "<artifactId>b</artifactId>", "<version>2</version>"} {
						if err != nil || !strings.Contains(string(b), want) {
							t.Errorf("the pom lacks %s: %v\n%s", want, err, b)
						}
					}
					write(t, filepath.Join(out, "a-1.jar"), "jar", 0o644)
					continue
				}
				if !slices.Contains(c.args, "-Dartifact=g:dist:3:tar.gz:bin") {
					t.Errorf("the archive: %q", c.args)
				}
				write(t, filepath.Join(out, "x"), "", 0o644)
				_ = os.Remove(filepath.Join(out, "x"))
				tarball(t, filepath.Join(out, "dist-3-bin.tar.gz"), entry{"dist-3/bin/thing", "binary", 0o755, ""}, entry{"dist-3/link", "", 0, "bin/thing"})
			}
		}
		return nil, nil
	})
	in, _ := must.Two(installed(t, h, r))(t)
	executable(t, in, "thing")
	if b, err := os.ReadFile(filepath.Join(in.Dir, "lib", "a-1.jar")); err != nil || string(b) != "jar" {
		t.Errorf("lib: %q, %v", b, err)
	}
	if b, err := os.ReadFile(filepath.Join(in.Dir, "dist-3", "link")); err != nil || string(b) != "binary" {
		t.Errorf("a link: %q, %v", b, err)
	}
	h.run = func(context.Context, call) ([]byte, error) { return nil, nil }
	if _, _, err := installed(t, h, r); err == nil || !strings.Contains(err.Error(), "g:dist:3:tar.gz:bin: mvn copied 0 files (one)") {
		t.Errorf("an archive that is not there: %v", err)
	}
}

// TestAChecksumOfTheRecipeWins: Maven rejects an archive for which the repository has no checksum. The
// recipe's checksum is checked whatever the repository says.
func TestAChecksumOfTheRecipeWins(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "dist-3-bin.tar.gz")
	tarball(t, archive, entry{"dist-3/bin/thing", "binary", 0o755, ""})
	b, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(b))
	h := fakeHost([]string{"mvn"}, func(c call) ([]byte, error) {
		if !slices.Contains(c.args, "--lax-checksums") {
			t.Errorf("the repository's checksum is needed: %q", c.args)
		}
		for _, a := range c.args {
			if out, ok := strings.CutPrefix(a, "-DoutputDirectory="); ok {
				write(t, filepath.Join(out, filepath.Base(archive)), string(b), 0o644)
			}
		}
		return nil, nil
	})
	const recipe = "maven: {archives: ['g:dist:3:tar.gz:bin'], sha256: {'g:dist:3:tar.gz:bin': '%s'}, programs: {thing: 'dist-*/bin/thing'}}"
	if in, _, err := installed(t, h, recipeFrom(t, fmt.Sprintf(recipe, sum))); err != nil {
		t.Error(err)
	} else {
		executable(t, in, "thing")
	}
	_, err = ParseRecipes("r", []byte("recipe: 1\nname: t\ntitle: T\nversion: '1'\nnodes: [1]\ninstall: {maven: {archives: ['g:dist:3:tar.gz'], sha256: {'g:other:3:tar.gz': 'AB'}}}\n"+
		"processes: [{name: s, ports: {client: 1}, start: [x]}]\nconnect: {address: a}\n"))
	for _, want := range []string{`"g:other:3:tar.gz" is not an archive of the recipe (g:dist:3:tar.gz)`, `64 digits of hex`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a wrong checksum in a recipe: %v; want %q", err, want)
		}
	}
	other := strings.Repeat("0", 64)
	want := "g:dist:3:tar.gz:bin: its SHA-256 is " + sum + ", and the recipe's is " + other
	if _, _, err := installed(t, h, recipeFrom(t, fmt.Sprintf(recipe, other))); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("another archive: %v; want %q", err, want)
	}
}

func TestInstallOfDebianPackages(t *testing.T) {
	r := recipeFrom(t, "apt: {packages: [thing, more], programs: {thing: usr/bin/thing}}")
	var extracted []string
	h := fakeHost([]string{"apt-get", "dpkg-deb"}, func(c call) ([]byte, error) {
		switch {
		case filepath.Base(c.args[0]) == "apt-get":
			if !slices.Contains(c.args, "--download-only") || !slices.Contains(c.args, "more") {
				t.Errorf("apt-get %q", c.args)
			}
			for _, a := range c.args {
				if dir, ok := strings.CutPrefix(a, "Dir::Cache::Archives="); ok {
					if st, err := os.Stat(filepath.Join(dir, "partial")); err != nil || !st.IsDir() {
						t.Errorf("partial: %v", err)
					}
					write(t, filepath.Join(dir, "thing_1%3a7.0_amd64.deb"), "", 0o644)
					write(t, filepath.Join(dir, "libthing_7_amd64.deb"), "", 0o644)
				}
			}
		case c.args[1] == "--extract":
			extracted = append(extracted, filepath.Base(c.args[2]))
			write(t, filepath.Join(c.args[3], "usr/bin/thing"), "binary", 0o755)
			write(t, filepath.Join(c.args[3], "usr/lib/x86_64-linux-gnu/libthing.so"), "", 0o644)
		case c.args[1] == "--field":
			return []byte("1:7.0\n"), nil
		}
		return nil, nil
	})
	in, _ := must.Two(installed(t, h, r))(t)
	executable(t, in, "thing")
	if in.Version != "1:7.0" || len(extracted) != 2 {
		t.Errorf("version %q, extracted %q", in.Version, extracted)
	}
	want := []string{"LD_LIBRARY_PATH=" + filepath.Join(in.Dir, "usr/lib/x86_64-linux-gnu") + ":" + filepath.Join(in.Dir, "usr/lib")}
	golden.Equal(t, want, in.Env, "environment")
	h.run = func(context.Context, call) ([]byte, error) {
		return nil, &callError{"apt-get", errors.New("exit status 100"), "E: Unable to locate package thing"}
	}
	if _, _, err := installed(t, h, r); err == nil || !strings.Contains(err.Error(), "Unable to locate package thing (update the lists of packages: apt-get update)") {
		t.Errorf("lists that are not there: %v", err)
	}
	h.run = func(context.Context, call) ([]byte, error) { return nil, nil }
	if _, _, err := installed(t, h, r); err == nil || !strings.Contains(err.Error(), "apt-get downloaded no package") {
		t.Errorf("nothing downloaded: %v", err)
	}
}

func TestHostProgramsAreUsedInPlace(t *testing.T) {
	r := recipeFrom(t, "apt: {packages: [thing], programs: {thing: 'usr/lib/thing/*/bin/thing'}}")
	h := fakeHost([]string{"thing"}, nil)
	in, err := h.installed(t.Context(), r, t.TempDir())
	if err != nil || in == nil || in.Source != "host" || in.Programs["thing"] != "/bin/thing" || in.Dir != "" {
		t.Errorf("by PATH: %+v, %v", in, err)
	}
	h.glob = func(pattern string) []string {
		if pattern != "/usr/lib/thing/*/bin/thing" {
			t.Errorf("looked for %s", pattern)
		}
		return []string{"/usr/lib/thing/9/bin/thing", "/usr/lib/thing/15/bin/thing"}
	}
	if in, err := h.installed(t.Context(), r, t.TempDir()); err != nil || in.Programs["thing"] != "/usr/lib/thing/15/bin/thing" {
		t.Errorf("by the path of the package: %+v, %v", in, err)
	}
}

func TestInstallOfAWheel(t *testing.T) {
	r := recipeFrom(t, "pypi: {package: thinglite, version: 9.1, programs: {thing: 'thinglite/*/thing'}}")
	files := []entry{{"thinglite/linux/thing", "binary", 0, ""}, {"thinglite/__init__.py", "", 0, ""}}
	h := fakeHost([]string{"python3"}, func(c call) ([]byte, error) {
		if !slices.Contains(c.args, "thinglite==9.1") || !slices.Contains(c.args, "--no-deps") {
			t.Errorf("pip: %q", c.args)
		}
		zipped(t, filepath.Join(after(c.args, "--dest"), "thinglite-9.1-any.whl"), files...)
		return nil, nil
	})
	in, _ := must.Two(installed(t, h, r))(t)
	executable(t, in, "thing")
	files = append(files, entry{"thinglite/darwin/thing", "binary", 0, ""})
	if _, _, err := installed(t, h, r); err == nil || !strings.Contains(err.Error(), "thing: 2 files fit thinglite/*/thing in what was installed (exactly one)") {
		t.Errorf("two programs of one name: %v", err)
	}
	h.run = func(context.Context, call) ([]byte, error) { return nil, nil }
	if _, _, err := installed(t, h, r); err == nil || !strings.Contains(err.Error(), "pip downloaded 0 wheels (one)") {
		t.Errorf("no wheel: %v", err)
	}
}

func TestMissingHostProgramIsNamed(t *testing.T) {
	withNeeds := recipeFrom(t, "maven: {artifacts: ['g:a:1'], programs: {thing: x}}")
	withNeeds.Needs = []Need{{Program: "java", Version: "17", Hint: "a JRE"}, {Program: "sed"}, {Program: "odd", Version: "1"}}
	answers := func(c call) ([]byte, error) {
		switch filepath.Base(c.args[0]) {
		case "java":
			return []byte("openjdk 11.0.2 2019-01-15\n"), nil
		case "odd":
			return nil, errors.New("no such flag")
		}
		return nil, errors.New("called")
	}
	for _, c := range []struct {
		name   string
		recipe *Recipe
		has    []string
		change func(*host)
		want   string
	}{
		{"all that it needs", withNeeds, nil, nil, "this host lacks what it needs for thing: java 17 or newer (a JRE); sed; odd 1 or newer; mvn (the package maven)"},
		{"too old", withNeeds, []string{"java", "sed", "odd"}, nil, "java 17 or newer: /bin/java is 11.0.2 (a JRE); odd 1 or newer: /bin/odd does not print its version: no such flag"},
		{"go", recipeFrom(t, "go: {module: m, version: v1, programs: {thing: .}}"), nil, nil, "go (Go's own installer, or the package golang)"},
		{"maven", recipeFrom(t, "maven: {artifacts: ['g:a:1'], programs: {thing: x}}"), []string{"java"}, nil, "for thing: mvn (the package maven)"},
		{"apt", recipeFrom(t, "apt: {packages: [p], programs: {thing: x}}"), nil, nil, "apt-get (Debian and its derivatives have it; elsewhere use --via docker); dpkg-deb"},
		{"python", recipeFrom(t, "pypi: {package: p, version: '1', programs: {thing: x}}"), nil, nil, "python3 (the packages python3 and python3-pip)"},
		{"pip", recipeFrom(t, "pypi: {package: p, version: '1', programs: {thing: x}}"), []string{"python3"}, nil, "pip of python3 (the package python3-pip): called"},
		{"keys", recipeFrom(t, "apt: {packages: [p], programs: {thing: x}, release: trixie}"), []string{"apt-get", "dpkg-deb"}, nil, "for thing: the keys of Debian (the package debian-archive-keyring)"},
		{"root", recipeFrom(t, "apt: {packages: [p, q], programs: {thing: x}, system: true}"), []string{"apt-get"}, nil, "its package needs root (sudo apt-get install p q)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := fakeHost(c.has, answers)
			in, err := h.installed(t.Context(), c.recipe, t.TempDir())
			if err == nil {
				err = h.installable(t.Context(), c.recipe)
			}
			if in != nil || !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant ErrMissing with %s", err, c.want)
			}
		})
	}
	r := recipeFrom(t, "go: {module: m, version: v1, programs: {thing: .}}")
	r.Platforms = []string{"darwin", "linux/arm64"}
	if _, err := fakeHost(nil, answers).installed(t.Context(), r, "/x"); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "thing runs on darwin, linux/arm64 only, and this is linux/amd64") {
		t.Errorf("another platform: %v", err)
	}
	r.Install = nil
	if _, err := fakeHost(nil, answers).installed(t.Context(), r, "/x"); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("no source: %v", err)
	}
}

// TestMissingProgramsAreListedOnce: two Maven recipes, one that uses distribution packages and a
// duplicate produce one error that lists each program once.
func TestMissingProgramsAreListedOnce(t *testing.T) {
	named := func(name, source string, needs ...Need) *Recipe {
		r := recipeFrom(t, source)
		r.Name, r.Needs = name, needs
		return r
	}
	a := named("a", "maven: {artifacts: ['g:a:1'], programs: {thing: x}}", Need{Program: "java", Version: "11", Hint: "a JRE of 11"})
	b := named("b", "maven: {artifacts: ['g:b:1'], programs: {thing: x}}", Need{Program: "java", Version: "17", Hint: "a JRE of 17"})
	c := named("c", "apt: {packages: [p], programs: {thing: x}, system: true}")
	h := fakeHost(nil, func(call) ([]byte, error) { return nil, errors.New("called") })
	for _, x := range []struct {
		recipes []*Recipe
		want    string
	}{
		{nil, ""},
		{[]*Recipe{a, a}, "this host lacks what it needs for a: java 11 or newer (a JRE of 11); mvn (the package maven)"},
		{[]*Recipe{a, b}, "this host lacks what it needs for a, b: java 17 or newer (a JRE of 17); mvn (the package maven)"},
		{
			[]*Recipe{b, c, a}, "this host lacks what it needs: java 17 or newer (a JRE of 17), for b, a; mvn (the package maven), for b, a; " +
				"apt-get (Debian and its derivatives have it; elsewhere use --via docker), for c; its package needs root (sudo apt-get install p), for c",
		},
	} {
		got := ""
		if err := h.obtainable(t.Context(), x.recipes, t.TempDir()); err != nil {
			got = err.Error()
		}
		if got != x.want {
			t.Errorf("%s\nwant %s", got, x.want)
		}
	}
	other := named("other", "go: {module: m, version: v1, programs: {thing: .}}")
	other.Platforms = []string{"darwin"}
	if err := h.obtainable(t.Context(), []*Recipe{other, a}, t.TempDir()); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "other runs on darwin only") || !strings.Contains(err.Error(), "for a: java 11") {
		t.Errorf("of another platform: %v", err)
	}
}

func TestIncompleteInstallIsRejected(t *testing.T) {
	dir := t.TempDir()
	if in, err := load(dir); in != nil || err != nil {
		t.Errorf("nothing: %v, %v", in, err)
	}
	for text, want := range map[string]string{
		"{": "weir did not write", `{"schema": "other"}`: "weir did not write",
		`{"schema": "weir.installed/v1", "name": "x", "programs": {"p": "bin/p"}}`: "the install of p is incomplete",
	} {
		name := text
		write(t, filepath.Join(dir, installedFile), text, 0o644)
		if _, err := load(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", name, err, want)
		}
	}
}

// An entry is one file of an archive, or a link.
type entry struct {
	name, text string
	mode       int64
	link       string
}

func tarball(t *testing.T, name string, entries ...entry) {
	t.Helper()
	f := must.Get(os.Create(name))(t)
	z := gzip.NewWriter(f)
	w := tar.NewWriter(z)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.text)), Typeflag: tar.TypeReg}
		if e.link != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		}
		if strings.HasSuffix(e.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		must.Do(t, w.WriteHeader(h))
		must.Get(w.Write([]byte(e.text)))(t)
	}
	must.Do(t, errors.Join(w.Close(), z.Close(), f.Close()))
}

func zipped(t *testing.T, name string, entries ...entry) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(name), 0o755))
	f := must.Get(os.Create(name))(t)
	z := zip.NewWriter(f)
	for _, e := range entries {
		w := must.Get(z.Create(e.name))(t)
		must.Get(w.Write([]byte(e.text)))(t)
	}
	must.Do(t, errors.Join(z.Close(), f.Close()))
}

func TestArchivesEscapingFolderAreRejected(t *testing.T) {
	for name, e := range map[string]entry{
		"a path above":          {"../x", "a", 0o644, ""},
		"an absolute path":      {"/x", "a", 0o644, ""},
		"a link above":          {"d/l", "", 0, "../../x"},
		"an absolute link":      {"l", "", 0, "/etc/passwd"},
		"a path through a link": {"in/../../x", "a", 0o644, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "a.tar.gz")
			out := filepath.Join(dir, "out")
			must.Do(t, os.Mkdir(out, 0o755))
			tarball(t, file, entry{"in/", "", 0o755, ""}, e)
			if err := unpack(t.Context(), file, out); err == nil || !strings.Contains(err.Error(), "points outside the folder") {
				t.Errorf("unpack: %v", err)
			}
			if e.link == "" {
				zipFile := filepath.Join(dir, "a.zip")
				zipped(t, zipFile, e)
				if err := unpack(t.Context(), zipFile, out); err == nil {
					t.Error("a zip with it is unpacked")
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "x")); err == nil {
				t.Error("it wrote outside")
			}
		})
	}
	if err := unpack(t.Context(), "x.rar", t.TempDir()); err == nil || !strings.Contains(err.Error(), "has a format that weir cannot unpack") {
		t.Errorf("another kind: %v", err)
	}
}

// slowGo puts a fake go into PATH that reports its pid and hangs, with a child.
func slowGo(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go"), "#!/bin/sh\nsleep 600 &\nwait\n", 0o755)
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func TestInterruptedInstallLeavesNothing(t *testing.T) {
	slowGo(t)
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	self, _ := os.Executable()
	r := must.Get(RecipeOf(fakeDefinition(), "slow"))(t)
	left := func(cache string) []string {
		found, _ := filepath.Glob(filepath.Join(cache, "*", "*")) // includes hidden files
		return slices.DeleteFunc(found, func(f string) bool { return strings.HasPrefix(filepath.Base(f), locking) })
	}
	t.Run("by its context", func(t *testing.T) {
		cache := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		_, err := Ensure(ctx, Installing{Self: self, Driver: "fake", Recipe: r, Cache: cache, Note: func(line string) {
			if strings.HasPrefix(line, "downloading") {
				cancel()
			}
		}})
		if !errors.Is(err, ErrInstall) || !errors.Is(err, context.Canceled) {
			t.Errorf("Ensure: %v; want ErrInstall and the context's error", err)
		}
		if l := left(cache); len(l) > 0 {
			t.Errorf("left: %q", l)
		}
	})
	t.Run("by the death of weir", func(t *testing.T) {
		if noProc() {
			return // the list of processes is not available here
		}
		cache := t.TempDir()
		cmd, said := weirThat(t, "install", cache)
		if !said.Scan() || !strings.HasPrefix(said.Text(), "downloading") {
			t.Fatalf("weir said %q", said.Text())
		}
		var pids []int
		must.Until(t, "go runs", func() bool { pids = descendants(cmd.Process.Pid); return len(pids) >= 5 })
		if len(left(cache)) != 1 {
			t.Errorf("under way: %q", left(cache))
		}
		_ = cmd.Process.Kill()
		must.Until(t, "the processes are gone", func() bool { return !slices.ContainsFunc(pids[1:], alive) })
		must.Until(t, "the folder is gone", func() bool { return len(left(cache)) == 0 })
	})
}

// TestTwoInstallsBuildOnce: the second of two identical installs waits for the first, reports that
// once, and uses what the first built.
func TestTwoInstallsBuildOnce(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go"), `#!/bin/sh
if [ "$1" = mod ]; then
	echo >>"$GOCOUNTED"
	while ! [ -e "$GOGATE" ]; do sleep 0.02; done
	echo "{\"Dir\": \"$GOMODULE\", \"Sum\": \"h1:x\"}"
	exit
fi
while [ "$1" != -o ]; do shift; done
mkdir -p "${2%/*}"
echo binary >"$2"
`, 0o755)
	write(t, filepath.Join(dir, "module", "go.mod"), "module example.com/thing\n", 0o444)
	counted, gate := filepath.Join(dir, "counted"), filepath.Join(dir, "gate")
	for name, value := range map[string]string{
		"PATH": dir + string(os.PathListSeparator) + os.Getenv("PATH"), "GORACE": "atexit_sleep_ms=0",
		"GOCOUNTED": counted, "GOGATE": gate, "GOMODULE": filepath.Join(dir, "module"),
	} {
		t.Setenv(name, value)
	}
	self, _ := os.Executable()
	r := must.Get(RecipeOf(fakeDefinition(), "slow"))(t)
	cache := t.TempDir()
	downloading, waiting := make(chan struct{}), make(chan struct{})
	ensure := func(ctx context.Context, note func(string)) error {
		in, err := Ensure(ctx, Installing{Self: self, Driver: "fake", Recipe: r, Cache: cache, Note: note})
		if err == nil && in == nil {
			err = errors.New("nothing is installed")
		}
		return err
	}
	first, second := make(chan error, 1), make(chan error, 1)
	go func() {
		first <- ensure(t.Context(), func(line string) {
			if strings.HasPrefix(line, "downloading") {
				close(downloading)
			}
		})
	}()
	select {
	case <-downloading:
	case err := <-first:
		t.Fatal(err)
	}
	var notes []string
	go func() {
		second <- ensure(t.Context(), func(line string) {
			if notes = append(notes, line); len(notes) == 1 {
				close(waiting)
			}
		})
	}()
	<-waiting
	given, giveUp := context.WithCancel(t.Context())
	if err := ensure(given, func(string) { giveUp() }); !errors.Is(err, ErrInstall) || !errors.Is(err, context.Canceled) {
		t.Errorf("one that gives up: %v; want ErrInstall and its context's error", err)
	}
	write(t, gate, "", 0o644)
	must.Do(t, errors.Join(<-first, <-second))
	golden.Equal(t, []string{"another weir installs slow: waiting for it"}, notes, "the second says")
	if b, err := os.ReadFile(counted); err != nil || len(b) != 1 {
		t.Errorf("%d builds, %v; want 1", len(b), err)
	}
	left, _ := filepath.Glob(filepath.Join(cache, "*", ".*"))
	if len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestFailedInstallExplainsAndCleansUp(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go"), "#!/bin/sh\necho 'no such module' >&2\nexit 1\n", 0o755)
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	self, _ := os.Executable()
	r, err := RecipeOf(fakeDefinition(), "slow")
	if err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	_, err = Ensure(t.Context(), Installing{Self: self, Driver: "fake", Recipe: r, Cache: cache})
	if !errors.Is(err, ErrInstall) || !strings.Contains(err.Error(), "slow could not be installed: go: exit status 1: no such module") {
		t.Errorf("Ensure: %v", err)
	}
	if all, _ := os.ReadDir(cache); len(all) > 0 {
		t.Errorf("left: %v", all)
	}

	link := filepath.Join(cache, "slow") // the user's link to a larger disk
	must.Do(t, os.Symlink(t.TempDir(), link))
	_, err = Ensure(t.Context(), Installing{Self: self, Driver: "fake", Recipe: r, Cache: cache})
	if _, gone := os.Lstat(link); !errors.Is(err, ErrInstall) || gone != nil {
		t.Errorf("Ensure: %v; the link: %v", err, gone)
	}
}
