//go:build unix

// Package broker brings systems up and down: those that weir embeds, and real
// servers by their recipes, which are data. Each runs in processes of its own
// under a guard, with a folder of its own, and is gone with that folder however
// weir ends; a kept one (Keep) stays until it is told to go.
//
// Between weir and the servers stand two of weir's own processes: the guard, which
// ends everything when weir is gone, and below it the one that serves an embedded
// system (ServeMain) or supervises those of a recipe (SystemMain).
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

// ErrStart: the system could not be started.
var ErrStart = errors.New("system could not be started")

// readyWord begins the one line that an embedded system prints when it answers.
const readyWord = "ready "

const (
	grace     = 6 * time.Second // from SIGTERM to SIGKILL: a server may take 5 s to stop
	tailLines = 8               // of what the process said, for the error
	lineBytes = 256 << 10       // longer lines end the reading of a pipe
)

// Embedded says what to start, and how.
type Embedded struct {
	Self       string            // weir's own binary (os.Executable); its main calls guard.Main
	Definition driver.Definition // with a Serve
	Nodes      int               // 1 or more; 0 is 1
	Port       int               // of the first node; 0 picks a free one
	Options    map[string]string // of the server, as driver.Service has them; no secrets: they are arguments
	Bind       string            // where it listens, as Serving has it; "": 127.0.0.1
	Within     Within            // where its process is started; nil: here
	Log        *slog.Logger      // takes what the process prints; nil: not wanted

	// OnEvent is called when the system ends by itself, from any goroutine. Nil: the
	// log takes it.
	OnEvent func(ServerEvent)
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

// environment returns what an embedded system, and its guard, are given of an
// environment: what Go's runtime reads, where programs and temporary files are,
// the time zone. A user's password for some broker is often in a variable, and
// every process of the user can read those of the others.
func environment(all []string) []string {
	keep := []string{} // never nil: that would be everything
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
