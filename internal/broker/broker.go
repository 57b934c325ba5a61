//go:build unix

// Package broker brings systems up and down. So far those that weir embeds: each
// runs in a process of its own, weir's own binary under a guard, with a folder of
// its own, and is gone with that folder however weir ends.
package broker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/guard"
)

// ErrStart: the system could not be started.
var ErrStart = errors.New("system could not be started")

// readyWord begins the one line that an embedded system prints when it answers.
const readyWord = "ready "

const (
	grace     = 6 * time.Second // from SIGTERM to SIGKILL: a server may take 5 s to stop
	tailLines = 8               // of what the process said, for the error
	lineBytes = 64 << 10        // longer lines end the reading of a pipe
)

// Embedded says what to start, and how.
type Embedded struct {
	Self       string            // weir's own binary (os.Executable), whose main calls guard.Main
	Definition driver.Definition // with a Serve
	Nodes      int               // 1 or more; 0 is 1
	Port       int               // of the first node; 0 picks a free one
	Options    map[string]string // of the server, as driver.Service has them; no secrets: they are arguments
	Log        *slog.Logger      // takes what the process prints; nil: nobody
}

// Running is a system that runs.
type Running struct {
	Address []string // what the driver's option address takes
	Pids    []int    // of the processes that are the system

	process *guard.Process
}

// StartEmbedded starts a system that weir embeds and returns when it answers, or
// with ErrStart, which carries what the process said last. A number of nodes that
// the driver refuses is driver.ErrUnsupported, before anything is started. ctx
// bounds the start only. The system runs until Stop, or until this process is gone.
func StartEmbedded(ctx context.Context, e Embedded) (*Running, error) {
	name := e.Definition.Name
	if e.Definition.Serve == nil {
		return nil, fmt.Errorf("%w: %s cannot be embedded: %w", ErrStart, name, driver.ErrUnsupported)
	}
	if check := e.Definition.Nodes; check != nil {
		if err := check(max(e.Nodes, 1)); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrStart, name, err)
		}
	}
	log := e.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	dir, err := os.MkdirTemp("", "weir-"+name+"-")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStart, err)
	}
	args := []string{e.Self, "internal", "serve", name, "--dir", dir, "--nodes", strconv.Itoa(max(e.Nodes, 1)), "--port", strconv.Itoa(e.Port)}
	for _, k := range slices.Sorted(maps.Keys(e.Options)) {
		args = append(args, "--set", k+"="+e.Options[k])
	}
	stdout, outW, err := os.Pipe()
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("%w: %w", ErrStart, err)
	}
	stderr, errW, err := os.Pipe()
	if err != nil {
		_, _, _ = stdout.Close(), outW.Close(), os.RemoveAll(dir)
		return nil, fmt.Errorf("%w: %w", ErrStart, err)
	}
	p, err := guard.Start(ctx, e.Self, guard.Spec{Args: args, Env: environment(os.Environ()), Dir: dir, RemoveDir: true, Stdout: outW, Stderr: errW, Grace: grace})
	_, _ = outW.Close(), errW.Close()
	if err != nil {
		_, _, _ = stdout.Close(), stderr.Close(), os.RemoveAll(dir)
		return nil, fmt.Errorf("%w: %w", ErrStart, err)
	}
	// Both readers end with the process.
	said := &tail{}
	var readers sync.WaitGroup
	readers.Go(func() {
		lines(stderr, func(line string) {
			level, text, attrs := record(line)
			if level >= slog.LevelWarn {
				said.add(text)
			}
			log.LogAttrs(context.Background(), level, text, append(attrs, slog.String("from", name))...)
		})
	})
	address := make(chan []string, 1)
	go func() {
		lines(stdout, func(line string) {
			if a, ok := strings.CutPrefix(line, readyWord); ok && cap(address) > len(address) {
				address <- strings.Split(a, ",")
			}
		})
		close(address)
	}()
	r := &Running{Pids: []int{p.Pid()}, process: p}
	select {
	case a, ok := <-address:
		if ok {
			r.Address = a
			return r, nil
		}
		err = nil
	case <-ctx.Done():
		err = ctx.Err()
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*grace)
	defer cancel()
	ended := p.Stop(stop)
	readers.Wait()
	why := "it ended without a word"
	if text := said.String(); text != "" {
		// The process says itself that it did not start.
		why = strings.TrimPrefix(text, ErrStart.Error()+": ")
	}
	if err == nil && said.String() == "" {
		err = ended
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w: %s", ErrStart, name, err, why)
	}
	return nil, fmt.Errorf("%w: %s: %s", ErrStart, name, why)
}

// environment returns what an embedded system, and its guard, are given of an
// environment: what Go's runtime reads, where programs and temporary files are,
// the time zone. A user's password for some broker is often in a variable, and
// every process of the user can read those of the others.
func environment(all []string) []string {
	keep := []string{} // never nil: that would be everything
	for _, v := range all {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "PATH", "HOME", "TMPDIR", "TZ",
			"GODEBUG", "GOGC", "GOMAXPROCS", "GOMEMLIMIT", "GOTRACEBACK", "GORACE", "GOCOVERDIR":
			keep = append(keep, v)
		}
	}
	return keep
}

// Done is closed when the system is gone, with its folder.
func (r *Running) Done() <-chan struct{} { return r.process.Done() }

// Err returns, after Done, why the system is gone, where it was not Stop.
func (r *Running) Err() error { return r.process.Err() }

// Stop ends the system and removes its folder. It returns when both are done, or
// with ctx's error; they still are then. It is idempotent.
func (r *Running) Stop(ctx context.Context) error { return r.process.Stop(ctx) }

// lines calls f with each line of r, and closes r.
func lines(r *os.File, f func(string)) {
	defer func() { _ = r.Close() }()
	s := bufio.NewScanner(r)
	s.Buffer(nil, lineBytes)
	for s.Scan() {
		f(s.Text())
	}
	_, _ = io.Copy(io.Discard, r) // a process must not wait for its log to be read
}

// record reads a line of the process: a record of its log, which keeps its level,
// or what else it says, a warning.
func record(line string) (level slog.Level, text string, attrs []slog.Attr) {
	var fields map[string]any
	if json.Unmarshal([]byte(line), &fields) != nil {
		return slog.LevelWarn, line, nil
	}
	word, _ := fields[slog.LevelKey].(string)
	text, ok := fields[slog.MessageKey].(string)
	if !ok || level.UnmarshalText([]byte(word)) != nil {
		return slog.LevelWarn, line, nil
	}
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		switch k {
		case slog.TimeKey, slog.LevelKey, slog.MessageKey:
		default:
			attrs = append(attrs, slog.Any(k, fields[k]))
		}
	}
	return level, text, attrs
}

// A tail holds the last lines.
type tail struct {
	mu    sync.Mutex
	lines []string
}

func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) == tailLines {
		t.lines = t.lines[1:]
	}
	t.lines = append(t.lines, line)
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "; ")
}
