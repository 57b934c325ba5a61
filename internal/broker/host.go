package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// ErrMissing is returned when the host lacks something that a recipe needs.
var ErrMissing = errors.New("this host lacks what it needs")

// host is the access to the machine for installing and starting; tests replace it.
type host struct {
	os, arch string
	root     bool                              // running as root
	look     func(name string) (string, error) // looks up a program's path
	glob     func(pattern string) []string     // lists files of the host
	env      func(name string) string
	run      func(ctx context.Context, c call) ([]byte, error)
}

// A call is one execution of a program.
type call struct {
	dir   string   // working folder; "": any
	env   []string // added to the process's own
	args  []string
	heard func(text string) // receives output as it is printed; may be nil
}

// A listener is a function that receives writes.
type listener func(text string)

func (l listener) Write(b []byte) (int, error) {
	l(string(b))
	return len(b), nil
}

// callError is the error of a failed program, with the end of its output.
type callError struct {
	program string
	err     error
	said    string
}

func (e *callError) Error() string {
	if e.said == "" {
		return fmt.Sprintf("%s: %v", e.program, e.err)
	}
	return fmt.Sprintf("%s: %v: %s", e.program, e.err, e.said)
}

func (e *callError) Unwrap() error { return e.err }

// thisHost returns the host that weir runs on.
func thisHost() *host {
	return &host{
		env: os.Getenv,
		os:  runtime.GOOS, arch: runtime.GOARCH, root: os.Geteuid() == 0, look: lookPath, run: runCall,
		glob: func(pattern string) []string {
			found, _ := filepath.Glob(pattern) // malformed patterns are found when the recipe is read
			return found
		},
	}
}

// lookPath searches PATH and then the system program folders, which many users do not have in PATH.
func lookPath(name string) (string, error) {
	found, err := exec.LookPath(name)
	if err == nil {
		return filepath.Abs(found)
	}
	if strings.ContainsRune(name, '/') {
		return "", err
	}
	for _, dir := range []string{"/usr/local/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"} {
		if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return found, nil
		}
	}
	return "", err
}

// saidBytes limits how much of a program's output is kept.
const saidBytes = 64 << 10

// runCall runs a program to completion and returns its output.
func runCall(ctx context.Context, c call) ([]byte, error) {
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), c.env...)
	cmd.WaitDelay = 5 * time.Second
	out, said := &bytes.Buffer{}, &ending{}
	cmd.Stdout, cmd.Stderr = out, said
	if c.heard != nil {
		cmd.Stdout = io.MultiWriter(out, listener(c.heard))
	}
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		text := said.text
		if len(bytes.TrimSpace(text)) == 0 { // mvn reports errors on stdout
			text = out.Bytes()
		}
		return nil, &callError{filepath.Base(c.args[0]), err, lastLines(text)}
	}
	return out.Bytes(), nil
}

// ending keeps the last bytes written to it.
type ending struct{ text []byte }

func (e *ending) Write(b []byte) (int, error) {
	e.text = append(e.text, b...)
	if over := len(e.text) - saidBytes; over > 0 {
		e.text = slices.Delete(e.text, 0, over)
	}
	return len(b), nil
}

// lastLines joins the last non-blank lines of a text.
func lastLines(text []byte) string {
	var kept []string
	for line := range strings.SplitSeq(string(text), "\n") {
		if line = strings.TrimSpace(line); line != "" {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept[max(0, len(kept)-tailLines):], "; ")
}

// fits returns an error if the recipe does not support this host.
func (h *host) fits(r *Recipe) error {
	if len(r.Platforms) == 0 || slices.Contains(r.Platforms, h.os) || slices.Contains(r.Platforms, h.os+"/"+h.arch) {
		return nil
	}
	return fmt.Errorf("%w: %s runs on %s only, and this is %s/%s (weir broker up %s --via docker writes a compose file)", ErrMissing, r.Name, strings.Join(r.Platforms, ", "), h.os, h.arch, r.Name)
}

// A lack is something that recipes need and the host may not have.
type lack struct {
	need Need
	says string   // message for what is not a program
	of   []string // names of the recipes
}

// lacking collects what recipes need: each program once, in the newest version required.
type lacking []lack

// add adds the needs of a recipe.
func (l *lacking) add(recipe string, needs ...Need) {
	for _, n := range needs {
		i := slices.IndexFunc(*l, func(x lack) bool { return x.says == "" && x.need.Program == n.Program })
		if i < 0 {
			*l = append(*l, lack{need: n, of: []string{recipe}})
			continue
		}
		x := &(*l)[i]
		if n.Version != "" && (x.need.Version == "" || older(x.need.Version, n.Version)) {
			x.need = n
		}
		if !slices.Contains(x.of, recipe) {
			x.of = append(x.of, recipe)
		}
	}
}

// missing returns ErrMissing with all needs that the host does not meet, or nil.
func (l lacking) missing(ctx context.Context, h *host) error {
	var lacks []lack
	for _, x := range l {
		if x.says == "" {
			x.says = h.without(ctx, x.need)
		}
		if x.says != "" {
			lacks = append(lacks, x)
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	said, alike := make([]string, len(lacks)), true
	for i, x := range lacks {
		said[i] = x.says
		alike = alike && slices.Equal(x.of, lacks[0].of)
	}
	if alike {
		return fmt.Errorf("%w for %s: %s", ErrMissing, strings.Join(lacks[0].of, ", "), strings.Join(said, "; "))
	}
	for i, x := range lacks {
		said[i] += ", for " + strings.Join(x.of, ", ")
	}
	return fmt.Errorf("%w: %s", ErrMissing, strings.Join(said, "; "))
}

// without describes what the host lacks for a need, or returns "" if the need is met.
func (h *host) without(ctx context.Context, n Need) string {
	what, hint := n.Program, ""
	if n.Version != "" {
		what += " " + n.Version + " or newer"
	}
	if n.Hint != "" {
		hint = " (" + n.Hint + ")"
	}
	found, err := h.look(n.Program)
	if err != nil {
		return what + hint
	}
	if n.Version == "" {
		return ""
	}
	has, err := h.version(ctx, found, n.Ask)
	switch {
	case err != nil:
		return fmt.Sprintf("%s: %s does not print its version: %v%s", what, found, err, hint)
	case older(has, n.Version):
		return fmt.Sprintf("%s: %s is %s%s", what, found, has, hint)
	}
	return ""
}

// version runs a program to get its version.
func (h *host) version(ctx context.Context, program, ask string) (string, error) {
	if ask == "" {
		ask = "--version"
	}
	ctx, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	out, err := h.run(ctx, call{args: []string{program, ask}})
	if err != nil {
		return "", err
	}
	has := dotted.FindString(string(out))
	if has == "" {
		return "", errors.New("no version number in its output")
	}
	return has, nil
}

// sourceNeeds returns the programs that a source itself requires.
func (h *host) sourceNeeds(r *Recipe) []Need {
	in := r.Install
	switch {
	case in.Go != nil:
		return []Need{{Program: "go", Hint: "Go's own installer, or the package golang"}}
	case in.Maven != nil:
		return []Need{{Program: "java", Hint: "the package openjdk-17-jre-headless"}, {Program: "mvn", Hint: "the package maven"}}
	case in.Apt != nil && in.Apt.System:
		return []Need{{Program: "apt-get", Hint: "Debian and its derivatives have it; elsewhere use --via docker"}}
	case in.Apt != nil:
		return []Need{{Program: "apt-get", Hint: "Debian and its derivatives have it; elsewhere use --via docker"}, {Program: "dpkg-deb", Hint: "the package dpkg"}}
	case in.PyPI != nil:
		return []Need{{Program: "python3", Hint: "the packages python3 and python3-pip"}}
	}
	return nil
}
