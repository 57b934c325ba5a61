//go:build unix

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
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirmq/weir/internal/guard"
	"github.com/weirmq/weir/internal/netpartition"
)

// Running is a system that runs.
type Running struct {
	Address   []string // what the driver's option address takes
	Pids      []int    // of the processes that are the system, as they were when it had started
	Processes []Process
	Options   map[string][]string // what else the recipe has the driver told
	Dir       string              // everything that it writes is there
	Version   string              // of what was installed, where that is known
	Disks     []int               // processes of weir's own that serve disks which can be slow

	grace    time.Duration // that its guard gives it to end
	process  *guard.Process
	cutter   *netpartition.Cutter // nil: nodes are not in groups
	ready    chan string          // further lines, of restarts
	orders   chan orderDone
	ordered  uint64 // orders given
	stopping atomic.Bool
}

// A Process is one process of a system, with those that it started.
type Process struct {
	Name string   `json:"name"` // "server-2"
	Node int      `json:"node"`
	Pids []int    `json:"pids"`
	Logs []string `json:"logs"`
	At   []string `json:"at"` // host:port of each of its ports, as clients reach it
}

// Guard returns the process below which the whole system is, and of what is below
// it the process of weir's own that supervises servers; 0 where there is none.
func (r *Running) Guard() (guard, supervisor int) {
	if r.Processes != nil {
		supervisor = r.process.Pid()
	}
	return r.process.GuardPid(), supervisor
}

// Done is closed when the system is gone, with its folder.
func (r *Running) Done() <-chan struct{} { return r.process.Done() }

// Err returns, after Done, why the system is gone, where it was not Stop.
func (r *Running) Err() error { return r.process.Err() }

// EndsWithin is how long Stop takes at most, on a host that lets processes be killed.
func (r *Running) EndsWithin() time.Duration { return r.grace + settles }

// Stop ends the system and removes its folder. It returns when both are done, or
// with ctx's error; they still are then. It is idempotent.
func (r *Running) Stop(ctx context.Context) error {
	r.stopping.Store(true)
	var mended error
	if r.cutter != nil { // servers that are cut off end slowly
		mended = r.cutter.Close()
	}
	return errors.Join(mended, r.process.Stop(ctx))
}

// Part has nothing pass between the nodes of each pair from now on, and all else pass. 0 stands
// for the clients. The servers were started with Serving.Cuts.
func (r *Running) Part(pairs [][2]int) error {
	if r.cutter == nil {
		return errors.New("the servers are not in control groups of their own")
	}
	return r.cutter.Part(pairs)
}

// launch starts a process of weir's own under a guard and returns when it prints its line
// that begins with readyWord, and returns the rest of that line. Those that begin with
// eventWord are told, on a goroutine of its own, until all is gone. It owns the folder of
// spec: where it fails that is gone. Errors are ErrStart and carry what the process said
// last. Of spec it sets Stdout and Stderr.
func launch(ctx context.Context, self string, within Within, spec guard.Spec, name string, log *slog.Logger, tell func(ServerEvent)) (*Running, string, error) {
	stdout, outW, err := os.Pipe()
	if err != nil {
		_ = os.RemoveAll(spec.Dir)
		return nil, "", fmt.Errorf("%w: %w", ErrStart, err)
	}
	stderr, errW, err := os.Pipe()
	if err != nil {
		_, _, _ = stdout.Close(), outW.Close(), os.RemoveAll(spec.Dir)
		return nil, "", fmt.Errorf("%w: %w", ErrStart, err)
	}
	spec.Stdout, spec.Stderr = outW, errW
	var p *guard.Process
	start := func() (err error) {
		p, err = guard.Start(ctx, self, spec)
		return err
	}
	if within == nil {
		err = start()
	} else {
		err = within(start)
	}
	_, _ = outW.Close(), errW.Close()
	if err != nil {
		_, _, _ = stdout.Close(), stderr.Close(), os.RemoveAll(spec.Dir)
		return nil, "", fmt.Errorf("%w: %w", ErrStart, err)
	}
	// Both readers end with the process.
	said := &tail{}
	var up atomic.Bool
	var readers sync.WaitGroup
	readers.Go(func() {
		lines(stderr, func(line string) {
			level, text, attrs := record(line)
			if level >= slog.LevelWarn {
				said.add(text)
				if !up.Load() {
					level = slog.LevelDebug // where it matters it is in the error
				}
			}
			log.LogAttrs(context.Background(), level, text, append(attrs, slog.String("from", name))...)
		})
	})
	ready, orders := make(chan string, 1), make(chan orderDone, mostOrders)
	go func() {
		lines(stdout, func(line string) {
			if text, ok := strings.CutPrefix(line, orderWord); ok {
				var d orderDone
				if json.Unmarshal([]byte(text), &d) == nil {
					select {
					case orders <- d:
					default: // no caller waits for it
					}
				}
				return
			}
			if text, ok := strings.CutPrefix(line, eventWord); ok {
				var e ServerEvent
				if json.Unmarshal([]byte(text), &e) == nil {
					tell(e)
				}
				return
			}
			rest, ok := strings.CutPrefix(line, readyWord)
			if !ok {
				return
			}
			select {
			case ready <- rest:
			default: // no caller waits for it
			}
		})
		close(ready)
	}()
	r := &Running{Pids: []int{p.Pid()}, grace: spec.Grace, process: p, ready: ready, orders: orders, Dir: spec.Dir}
	select {
	case line, ok := <-ready:
		if ok {
			up.Store(true)
			return r, line, nil
		}
		err = nil
	case <-ctx.Done():
		err = ctx.Err()
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*spec.Grace)
	defer cancel()
	ended := p.Stop(stop)
	readers.Wait()
	why := "it ended without a message"
	if text := said.String(); text != "" {
		why = unprefixed(text, name)
	}
	if err == nil && said.String() == "" {
		err = ended
	}
	if err != nil {
		return nil, "", fmt.Errorf("%w: %s: %w: %s", ErrStart, name, err, why)
	}
	return nil, "", fmt.Errorf("%w: %s: %s", ErrStart, name, why)
}

// unprefixed is what a process of weir's own said of a start that failed, without
// what says only that it did.
func unprefixed(text, name string) string {
	for {
		rest := text
		for _, p := range []string{"weir: ", ErrStart.Error() + ": ", name + ": "} {
			rest = strings.TrimPrefix(rest, p)
		}
		if rest == text {
			return text
		}
		text = rest
	}
}

// ErrNoRestart: the system cannot be restarted, because it is embedded.
var ErrNoRestart = errors.New("an embedded system is not restarted")

// Restart ends the servers of these names ("server-2"), or all without a name, and starts
// them again with the same folders, ports and settings; it returns when the system answers. Pids and Processes are new then. Nothing
// else of the Running may be called meanwhile. A system that does not come back
// is gone, and ErrStart.
func (r *Running) Restart(ctx context.Context, servers ...string) error {
	if r.Processes == nil {
		return ErrNoRestart
	}
	if err := r.give(orderAgain, 0, servers...); err != nil {
		return fmt.Errorf("%w: restarting: %w", ErrStart, err)
	}
	select {
	case line, ok := <-r.ready:
		if ok {
			return r.take(line)
		}
		select {
		case <-r.process.Done():
		case <-ctx.Done():
		}
		return fmt.Errorf("%w: it did not come back: %w", ErrStart, errors.Join(r.process.Err(), ctx.Err()))
	case <-ctx.Done():
		return fmt.Errorf("%w: restarting: %w", ErrStart, ctx.Err())
	}
}

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

// waitLimit bounds waits that a broken system could otherwise hold for ever.
const waitLimit = 30 * time.Second
