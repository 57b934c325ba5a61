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

// ErrMissing: the host lacks something that a recipe needs.
var ErrMissing = errors.New("this host lacks what it needs")

// host is what installing and starting has of the machine; tests have others.
type host struct {
	os, arch string
	root     bool                              // the process is root
	look     func(name string) (string, error) // a program's path
	glob     func(pattern string) []string     // files of the host
	run      func(ctx context.Context, c call) ([]byte, error)
}

// A call is one run of a program.
type call struct {
	dir   string   // "" is anywhere
	env   []string // besides the process's own
	args  []string
	heard func(text string) // takes what the program prints, as it comes; nil: nothing does
}

// A listener hears what is written to it.
type listener func(text string)

func (l listener) Write(b []byte) (int, error) {
	l(string(b))
	return len(b), nil
}

// callError is a program that failed, with what it said last.
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

// thisHost returns the machine that this is.
func thisHost() *host {
	return &host{
		os: runtime.GOOS, arch: runtime.GOARCH, root: os.Geteuid() == 0, look: lookPath, run: runCall,
		glob: func(pattern string) []string {
			found, _ := filepath.Glob(pattern) // a malformed pattern is found when the recipe is read
			return found
		},
	}
}

// lookPath looks in PATH, and where programs of the system are that many users
// do not have in it.
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

// saidBytes bounds what is kept of what a program said.
const saidBytes = 64 << 10

// runCall runs a program to its end and returns what it printed.
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
		if len(bytes.TrimSpace(text)) == 0 { // mvn complains on stdout
			text = out.Bytes()
		}
		return nil, &callError{filepath.Base(c.args[0]), err, lastLines(text)}
	}
	return out.Bytes(), nil
}

// ending keeps the end of what is written to it.
type ending struct{ text []byte }

func (e *ending) Write(b []byte) (int, error) {
	e.text = append(e.text, b...)
	if over := len(e.text) - saidBytes; over > 0 {
		e.text = slices.Delete(e.text, 0, over)
	}
	return len(b), nil
}

// lastLines joins the last lines of a text that say something.
func lastLines(text []byte) string {
	var kept []string
	for line := range strings.SplitSeq(string(text), "\n") {
		if line = strings.TrimSpace(line); line != "" {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept[max(0, len(kept)-tailLines):], "; ")
}

// fits refuses a host for which the recipe is not.
func (h *host) fits(r *Recipe) error {
	if len(r.Platforms) == 0 || slices.Contains(r.Platforms, h.os) || slices.Contains(r.Platforms, h.os+"/"+h.arch) {
		return nil
	}
	return fmt.Errorf("%w: %s runs on %s only, and this is %s/%s (weir broker up %s --via docker writes a compose file)", ErrMissing, r.Name, strings.Join(r.Platforms, ", "), h.os, h.arch, r.Name)
}

// missing returns ErrMissing with all that the host lacks of needs.
func (h *host) missing(ctx context.Context, r *Recipe, needs []Need) error {
	var lacks []string
	for _, n := range needs {
		what := n.Program
		if n.Version != "" {
			what += " " + n.Version + " or newer"
		}
		hint := ""
		if n.Hint != "" {
			hint = " (" + n.Hint + ")"
		}
		found, err := h.look(n.Program)
		if err != nil {
			lacks = append(lacks, what+hint)
			continue
		}
		if n.Version == "" {
			continue
		}
		has, err := h.version(ctx, found, n.Ask)
		switch {
		case err != nil:
			lacks = append(lacks, fmt.Sprintf("%s: %s does not print its version: %v%s", what, found, err, hint))
		case older(has, n.Version):
			lacks = append(lacks, fmt.Sprintf("%s: %s is %s%s", what, found, has, hint))
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	return fmt.Errorf("%w for %s: %s", ErrMissing, r.Name, strings.Join(lacks, "; "))
}

// version asks a program for its version.
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

// sourceNeeds are the programs that a source itself takes.
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
