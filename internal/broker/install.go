//go:build unix

package broker

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/flock"
	"github.com/weirmq/weir/internal/guard"
)

// ErrInstall: the programs of a recipe could not be installed.
var ErrInstall = errors.New("could not be installed")

// partial begins the names of folders in which installs are under way.
const partial = ".partial-"

// locking begins the names of files that are the locks of installs.
const locking = ".lock-"

// Installing says what to install, and where.
type Installing struct {
	Self   string       // weir's own binary; its main calls guard.Main
	Driver string       // the driver with the recipe in its definition
	Recipe *Recipe      //
	Cache  string       // as CacheDir has it
	Note   func(string) // takes lines about the progress; nil: not wanted
}

// Ensure returns where the programs of a recipe are, and installs them where they
// are not there yet. What the host lacks (ErrMissing) is found before anything is
// touched. The install runs in a process of its own under a guard and appears in
// the cache only when it is whole. Of several that install the same, the others wait. Where ctx ends, it fails (ErrInstall) or this
// process is killed, no process and no folder of it stay. What the package
// managers have downloaded by then is in their own caches.
func Ensure(ctx context.Context, in Installing) (*Installation, error) {
	h := thisHost()
	found, err := h.installed(ctx, in.Recipe, in.Cache)
	if err != nil || found != nil {
		return found, err
	}
	if err := h.installable(ctx, in.Recipe); err != nil {
		return nil, err
	}
	note := in.Note
	if note == nil {
		note = func(string) {}
	}
	home := filepath.Dir(in.Recipe.home(in.Cache))
	held := filepath.Join(home, locking+filepath.Base(in.Recipe.home(in.Cache)))
	lock, err := flock.Wait(ctx, held, func() { note("another weir installs " + in.Recipe.Name + ": waiting for it") })
	if err != nil {
		return nil, fmt.Errorf("%s %w: %w", in.Recipe.Name, ErrInstall, err)
	}
	defer func() {
		_, _ = os.Remove(held), lock.Close()
		_ = syscall.Rmdir(home) // where nothing is in it; a link stays
	}()
	if found, err = h.installed(ctx, in.Recipe, in.Cache); err != nil || found != nil {
		return found, err // by the other weir
	}
	stage, err := os.MkdirTemp(home, partial)
	if err != nil {
		return nil, fmt.Errorf("%s %w: %w", in.Recipe.Name, ErrInstall, err)
	}
	if err := os.Chmod(stage, 0o755); err != nil { // programs may be run by another user
		_ = os.RemoveAll(stage)
		return nil, fmt.Errorf("%s %w: %w", in.Recipe.Name, ErrInstall, err)
	}
	said, err := runInstall(ctx, in, stage, note)
	if err != nil {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return nil, fmt.Errorf("%s %w: %w", in.Recipe.Name, ErrInstall, err)
		}
		if said = strings.TrimPrefix(said, "weir: "); said == "" {
			said = err.Error()
		}
		return nil, fmt.Errorf("%s %w: %s", in.Recipe.Name, ErrInstall, said)
	}
	found, err = h.installed(ctx, in.Recipe, in.Cache)
	if err == nil && found == nil {
		err = fmt.Errorf("%s %w: the installer ended without a result", in.Recipe.Name, ErrInstall)
	}
	return found, err
}

// runInstall runs the process of an install and returns what it said last.
func runInstall(ctx context.Context, in Installing, stage string, note func(string)) (string, error) {
	fail := func(err error) (string, error) {
		_ = os.RemoveAll(stage)
		return "", err
	}
	stdout, outW, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	stderr, errW, err := os.Pipe()
	if err != nil {
		_, _ = stdout.Close(), outW.Close()
		return fail(err)
	}
	p, err := guard.Start(ctx, in.Self, guard.Spec{
		Args: []string{in.Self, "internal", "install", in.Driver, in.Recipe.Ref(), "--stage", stage, "--cache", in.Cache},
		Env:  installEnvironment(os.Environ()),
		Dir:  stage, RemoveDir: true, Stdout: outW, Stderr: errW, Grace: grace,
	})
	_, _ = outW.Close(), errW.Close()
	if err != nil {
		_, _ = stdout.Close(), stderr.Close()
		return fail(err)
	}
	said := &tail{}
	var readers sync.WaitGroup
	readers.Go(func() { lines(stdout, note) })
	readers.Go(func() { lines(stderr, said.add) })
	select {
	case <-p.Done():
		err = p.Err()
	case <-ctx.Done():
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), waitLimit)
		defer cancel()
		err = errors.Join(ctx.Err(), p.Stop(stop))
	}
	readers.Wait()
	return said.String(), err
}

// installEnvironment returns what an install is given of an environment: what an
// embedded system is, and what the package managers read. A user's password for
// some broker is none of their business.
func installEnvironment(all []string) []string {
	keep := environment(all)
	for _, v := range all {
		name, _, _ := strings.Cut(v, "=")
		switch strings.ToUpper(name) {
		case "USER", "LOGNAME", "SHELL", "LANG", "NETRC", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "APT_CONFIG":
			keep = append(keep, v)
			continue
		}
		for _, prefix := range []string{"GO", "LC_", "XDG_", "SSL_CERT_", "PIP_", "PYTHON", "PYENV_", "MAVEN_", "MVN_", "GIT_SSL_"} {
			if strings.HasPrefix(name, prefix) && !slices.Contains(keep, v) {
				keep = append(keep, v)
			}
		}
	}
	return keep
}

// Installed returns where the programs of a recipe are, nil where they are not
// installed. It changes nothing. What the host lacks to install or start them is
// ErrMissing.
func Installed(ctx context.Context, r *Recipe, cache string) (*Installation, error) {
	h := thisHost()
	in, err := h.installed(ctx, r, cache)
	if err == nil && in == nil {
		err = h.installable(ctx, r)
	}
	return in, err
}

// Obtainable refuses recipes that cannot be installed or started here. It changes nothing. All
// that the host lacks for them is one ErrMissing, which names each thing once.
func Obtainable(ctx context.Context, recipes []*Recipe, cache string) error {
	return thisHost().obtainable(ctx, recipes, cache)
}

// obtainable is Obtainable.
func (h *host) obtainable(ctx context.Context, recipes []*Recipe, cache string) error {
	var errs []error
	var all lacking
	var seen []string
	for _, r := range recipes {
		if slices.Contains(seen, r.Ref()) {
			continue
		}
		seen = append(seen, r.Ref())
		in, err := h.there(r, cache)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all.add(r.Name, r.Needs...)
		if in == nil {
			all.add(r.Name, h.sourceNeeds(r)...)
			if says := h.refuses(ctx, r); says != "" {
				all = append(all, lack{says: says, of: []string{r.Name}})
			}
		}
	}
	return errors.Join(append(errs, all.missing(ctx, h))...)
}

// installed returns the programs of a recipe where they are there, nil where they
// are not. Programs of a package that the host itself has are there.
func (h *host) installed(ctx context.Context, r *Recipe, cache string) (*Installation, error) {
	in, err := h.there(r, cache)
	if err != nil {
		return nil, err
	}
	var needs lacking
	needs.add(r.Name, r.Needs...)
	if err := needs.missing(ctx, h); err != nil {
		if in == nil { // all that it takes at once
			needs.add(r.Name, h.sourceNeeds(r)...)
			err = needs.missing(ctx, h)
		}
		return nil, err
	}
	return in, nil
}

// there is installed, whatever the programs need to run.
func (h *host) there(r *Recipe, cache string) (*Installation, error) {
	if r.Install == nil {
		return nil, fmt.Errorf("%w: no package installs %s here (weir broker up %s --via docker writes a compose file)", driver.ErrUnsupported, r.Name, r.Name)
	}
	if err := h.fits(r); err != nil {
		return nil, err
	}
	if r.Install.Apt != nil && r.Install.Apt.Release == "" {
		if programs := h.own(r.Install.Apt); programs != nil {
			return &Installation{Schema: schemaInstalled, Name: r.Name, Source: "host", Programs: programs}, nil
		}
	}
	return load(r.home(cache))
}

// own returns the programs of packages that the host itself has, nil where it
// lacks one. Of several versions the newest counts.
func (h *host) own(s *AptSource) map[string]string {
	programs := map[string]string{}
	for name, p := range s.Programs {
		found := h.glob("/" + p)
		if len(found) == 0 {
			own, err := h.look(name)
			if err != nil {
				return nil
			}
			found = []string{own}
		}
		programs[name] = slices.MaxFunc(found, func(a, b string) int { return slices.Compare(number(a), number(b)) })
	}
	return programs
}

// installable refuses what cannot be installed here.
func (h *host) installable(ctx context.Context, r *Recipe) error {
	var needs lacking
	needs.add(r.Name, h.sourceNeeds(r)...)
	if says := h.refuses(ctx, r); says != "" {
		needs = append(needs, lack{says: says, of: []string{r.Name}})
	}
	return needs.missing(ctx, h)
}

// refuses says what a source needs beside programs and the host lacks, "" where it has it.
func (h *host) refuses(ctx context.Context, r *Recipe) string {
	switch in := r.Install; {
	case in.PyPI != nil:
		python, err := h.look("python3")
		if err != nil {
			return "" // a need of its own
		}
		if _, err := h.run(ctx, call{args: []string{python, "-m", "pip", "--version"}}); err != nil {
			return fmt.Sprintf("pip of python3 (the package python3-pip): %v", err)
		}
	case in.Apt != nil && in.Apt.System && !h.root:
		return fmt.Sprintf("its package needs root (sudo apt-get install %s)", strings.Join(in.Apt.Packages, " "))
	}
	return ""
}

// InstallMain is the process that Ensure starts: `weir internal install DRIVER RECIPE
// --stage D --cache C`. args are what follows install. It prints its progress on stdout,
// a line each.
func InstallMain(ctx context.Context, args []string, drivers *driver.Registry, stdout io.Writer) error {
	if len(args) < 2 {
		return errors.New("install: no driver or recipe")
	}
	_, r, err := Find(drivers, args[0], args[1])
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	var saying sync.Mutex
	j := &job{host: thisHost(), recipe: r, note: func(format string, v ...any) {
		saying.Lock()
		defer saying.Unlock()
		_, _ = fmt.Fprintf(stdout, format+"\n", v...)
	}}
	var cache string
	flags := flag.NewFlagSet("install", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&j.stage, "stage", "", "folder")
	flags.StringVar(&cache, "cache", "", "folder")
	if err := flags.Parse(args[2:]); err != nil || j.stage == "" || cache == "" || flags.NArg() > 0 {
		return fmt.Errorf("install: --stage and --cache are needed, and nothing else (%q)", args[2:])
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	shown, ended := make(chan struct{}), make(chan struct{})
	go func() { defer close(shown); j.far.run(ended, func(line string) { j.note("%s", line) }) }()
	defer func() { close(ended); <-shown }()
	return j.do(ctx, r.home(cache))
}

// A job is one install in its process.
type job struct {
	host   *host
	recipe *Recipe
	stage  string                        // removed when the process ends, whatever became of it
	note   func(format string, v ...any) // several goroutines call it
	far    meter
}

// out is the folder that becomes the install.
func (j *job) out() string { return filepath.Join(j.stage, "out") }

// work is a folder for what is only needed meanwhile.
func (j *job) work() string { return filepath.Join(j.stage, "work") }

// do installs, and puts the result in its place.
func (j *job) do(ctx context.Context, home string) error {
	for _, dir := range []string{j.out(), j.work()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	in := &Installation{Schema: schemaInstalled, Name: j.recipe.Name, Version: j.recipe.Version}
	var err error
	var programs map[string]string
	switch s := j.recipe.Install; {
	case s.Go != nil:
		in.Source, programs = "go", s.Go.Programs
		err = j.golang(ctx, s.Go)
		programs = built(programs)
	case s.Maven != nil:
		in.Source, programs = "maven", s.Maven.Programs
		err = j.maven(ctx, s.Maven)
	case s.Apt != nil:
		in.Source, programs = "apt", s.Apt.Programs
		in.Version, in.Env, err = j.apt(ctx, s.Apt)
		if err == nil && s.Apt.System {
			return nil // the host has them now
		}
	case s.PyPI != nil:
		in.Source, programs = "pypi", s.PyPI.Programs
		err = j.pypi(ctx, s.PyPI)
	}
	if err != nil {
		return err
	}
	if in.Programs, err = j.resolve(programs); err != nil {
		return err
	}
	b, err := json.MarshalIndent(in, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(j.out(), installedFile), append(b, '\n'), 0o644); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := os.Rename(j.out(), home); err != nil {
		if other, _ := load(home); other != nil {
			return nil // another weir was faster
		}
		return err
	}
	j.note("installed in %s", home)
	return nil
}

// built returns where programs built from source are.
func built(programs map[string]string) map[string]string {
	out := map[string]string{}
	for name := range programs {
		out[name] = filepath.Join("bin", name)
	}
	return out
}

// resolve finds each program in what was installed, makes it executable, and
// returns its path below the folder.
func (j *job) resolve(programs map[string]string) (map[string]string, error) {
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		found, err := filepath.Glob(filepath.Join(j.out(), programs[name]))
		if err != nil || len(found) != 1 {
			return nil, fmt.Errorf("%s: %d files fit %s in what was installed (exactly one)", name, len(found), programs[name])
		}
		if err := os.Chmod(found[0], 0o755); err != nil {
			return nil, err
		}
		rel, err := filepath.Rel(j.out(), found[0])
		if err != nil {
			return nil, err
		}
		out[name] = rel
	}
	return out, nil
}
