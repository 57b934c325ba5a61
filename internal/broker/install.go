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

// ErrInstall is returned when a recipe's programs could not be installed.
var ErrInstall = errors.New("could not be installed")

// partial is the prefix of folders of unfinished installs.
const partial = ".partial-"

// locking is the prefix of lock files of installs.
const locking = ".lock-"

// Installing describes an install.
type Installing struct {
	Self   string       // path of weir's own binary; its main calls guard.Main
	Driver string       // name of the driver whose definition has the recipe
	Recipe *Recipe      //
	Cache  string       // see CacheDir
	Note   func(string) // receives progress lines; may be nil
}

// Ensure returns where the programs of a recipe are, and installs them if they are missing. Missing
// prerequisites of the host (ErrMissing) are reported before anything is changed. The install runs in
// its own process under a guard and appears in the cache only when complete. Concurrent installs of
// the same recipe wait for the first. If ctx ends, the install fails (ErrInstall) or this process is
// killed, no process or folder of it remains; what the package managers downloaded stays in their own
// caches.
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
		_ = syscall.Rmdir(home) // if empty; a link stays
	}()
	if found, err = h.installed(ctx, in.Recipe, in.Cache); err != nil || found != nil {
		return found, err // installed by the other weir
	}
	stage, err := os.MkdirTemp(home, partial)
	if err != nil {
		return nil, fmt.Errorf("%s %w: %w", in.Recipe.Name, ErrInstall, err)
	}
	if err := os.Chmod(stage, 0o755); err != nil { // programs may run as another user
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

// runInstall runs the install process and returns the end of its output.
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

// installEnvironment returns the variables that an install inherits: those of an embedded system, and
// those that the package managers read. Others may hold passwords.
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

// Installed returns where the programs of a recipe are, or nil if they are not installed. It changes
// nothing. It returns ErrMissing for what the host lacks to install or start them.
func Installed(ctx context.Context, r *Recipe, cache string) (*Installation, error) {
	h := thisHost()
	in, err := h.installed(ctx, r, cache)
	if err == nil && in == nil {
		err = h.installable(ctx, r)
	}
	return in, err
}

// Obtainable returns an error if recipes cannot be installed or started here. It changes nothing.
// Everything that the host lacks is in one ErrMissing, which names each thing once.
func Obtainable(ctx context.Context, recipes []*Recipe, cache string) error {
	return thisHost().obtainable(ctx, recipes, cache)
}

// obtainable implements Obtainable.
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

// installed returns the programs of a recipe, or nil if they are not installed. Programs from the
// host's own packages count as installed.
func (h *host) installed(ctx context.Context, r *Recipe, cache string) (*Installation, error) {
	in, err := h.there(r, cache)
	if err != nil {
		return nil, err
	}
	var needs lacking
	needs.add(r.Name, r.Needs...)
	if err := needs.missing(ctx, h); err != nil {
		if in == nil { // report all requirements at once
			needs.add(r.Name, h.sourceNeeds(r)...)
			err = needs.missing(ctx, h)
		}
		return nil, err
	}
	return in, nil
}

// there returns the programs of a recipe without checking what they need to run.
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

// own returns the programs from the host's own packages, or nil if one is missing. If there are
// several versions, the newest counts.
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

// installable returns an error if the recipe cannot be installed here.
func (h *host) installable(ctx context.Context, r *Recipe) error {
	var needs lacking
	needs.add(r.Name, h.sourceNeeds(r)...)
	if says := h.refuses(ctx, r); says != "" {
		needs = append(needs, lack{says: says, of: []string{r.Name}})
	}
	return needs.missing(ctx, h)
}

// refuses describes what a source needs besides programs and the host lacks; "" if nothing.
func (h *host) refuses(ctx context.Context, r *Recipe) string {
	switch in := r.Install; {
	case in.PyPI != nil:
		python, err := h.look("python3")
		if err != nil {
			return "" // has its own need
		}
		if _, err := h.run(ctx, call{args: []string{python, "-m", "pip", "--version"}}); err != nil {
			return fmt.Sprintf("pip of python3 (the package python3-pip): %v", err)
		}
	case in.Apt != nil && in.Apt.System && !h.root:
		return fmt.Sprintf("its package needs root (sudo apt-get install %s)", strings.Join(in.Apt.Packages, " "))
	case in.Apt != nil && in.Apt.Release != "" && len(h.glob(keyring)) == 0:
		return "the keys of Debian (the package debian-archive-keyring)"
	}
	return ""
}

// InstallMain is the process that Ensure starts: `weir internal install DRIVER RECIPE --stage D
// --cache C`. args are the arguments after install. It prints its progress on stdout, one line each.
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

// A job is one install, run in its own process.
type job struct {
	host   *host
	recipe *Recipe
	stage  string                        // removed when the process ends, whatever the outcome
	note   func(format string, v ...any) // called by several goroutines
	far    meter
}

// out returns the folder that becomes the install.
func (j *job) out() string { return filepath.Join(j.stage, "out") }

// work returns a folder for temporary files.
func (j *job) work() string { return filepath.Join(j.stage, "work") }

// do installs, and moves the result to its place.
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
			return nil // now installed on the host
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

// built returns the paths of programs built from source.
func built(programs map[string]string) map[string]string {
	out := map[string]string{}
	for name := range programs {
		out[name] = filepath.Join("bin", name)
	}
	return out
}

// resolve finds each program in the install, makes it executable, and returns its path relative to the
// folder.
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
