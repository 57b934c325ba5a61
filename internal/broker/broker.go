//go:build unix

// Package broker starts and stops systems: those embedded in weir, and real servers described by
// recipes, which are data. Each system runs in its own processes under a guard, in its own folder;
// both are removed however weir ends. A kept system (Keep) stays up until it is stopped explicitly.
//
// Two of weir's own processes stand between weir and the servers: the guard, which ends everything
// when weir is gone, and below it the process that serves an embedded system (ServeMain) or supervises
// the servers of a recipe (SystemMain).
package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/guard"
)

// ErrStart is returned when a system could not be started.
var ErrStart = errors.New("system could not be started")

// readyWord starts the one line that an embedded system prints once it answers.
const readyWord = "ready "

const (
	grace     = 6 * time.Second // from SIGTERM to SIGKILL: a server may take 5 s to stop
	tailLines = 8               // lines of process output kept for the error
	lineBytes = 256 << 10       // a longer line ends reading of the pipe
)

// Embedded describes an embedded system to start.
type Embedded struct {
	Self       string            // path of weir's own binary (os.Executable); its main must call guard.Main
	Definition driver.Definition // must have Serve
	Nodes      int               // at least 1; 0 means 1
	Port       int               // port of the first node; 0 picks a free port
	Options    map[string]string // server options, as in driver.Service; no secrets, they are passed as arguments
	Bind       string            // listen address, as in Serving; "" is 127.0.0.1
	Within     Within            // where to start the process; nil: here
	Log        *slog.Logger      // receives the process's output; nil discards it

	// OnEvent is called from any goroutine when the system ends by itself. Nil logs the event.
	OnEvent func(ServerEvent)
}

// StartEmbedded starts an embedded system and returns once it answers. The error wraps ErrStart and
// carries the last output of the process. A number of nodes that the driver does not support returns
// driver.ErrUnsupported before anything is started. ctx bounds the start only. The system runs until
// Stop, or until this process is gone.
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
	if e.Bind != "" {
		args = append(args, "--bind", e.Bind)
	}
	for _, k := range slices.Sorted(maps.Keys(e.Options)) {
		args = append(args, "--set", k+"="+e.Options[k])
	}
	r, ready, err := launch(ctx, e.Self, e.Within, guard.Spec{Args: args, Env: environment(os.Environ()), Dir: dir, RemoveDir: true, Grace: grace}, name, log, nil)
	if err != nil {
		return nil, err
	}
	go r.watch(name, false, telling(e.OnEvent, log))
	r.Address = strings.Split(ready, ",")
	return r, nil
}

// environment returns the variables that an embedded system and its guard inherit: Go runtime
// settings, PATH, the temporary folder and the time zone. Other variables often hold passwords, and
// every process of a user can read the environment of that user's other processes.
func environment(all []string) []string {
	keep := []string{} // never nil: nil would pass everything
	for _, v := range all {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "PATH", "HOME", "TMPDIR", "TZ", "JAVA_HOME",
			"GODEBUG", "GOGC", "GOMAXPROCS", "GOMEMLIMIT", "GOTRACEBACK", "GORACE", "GOCOVERDIR":
			keep = append(keep, v)
		}
	}
	return keep
}
