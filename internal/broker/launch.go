//go:build unix

package broker

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
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

// Running is a running system.
type Running struct {
	Address   []string // value for the driver's option address
	Pids      []int    // processes of the system as of its start
	Processes []Process
	Options   map[string][]string // further driver options from the recipe
	Dir       string              // holds everything the system writes
	Version   string              // installed version, if known
	Disks     []int               // weir's own processes that serve slowable disks

	grace    time.Duration // how long its guard lets it take to end
	process  *guard.Process
	cutter   *netpartition.Cutter // nil if nodes are not in control groups
	ready    chan string          // further ready lines, after restarts
	orders   chan orderDone
	ordered  uint64 // number of orders given
	stopping atomic.Bool
	last     func() string // what the process said at its end; waits for it
}

// A Process is one process of a system, including its children.
type Process struct {
	Name string   `json:"name"` // "server-2"
	Node int      `json:"node"`
	Pids []int    `json:"pids"`
	Logs []string `json:"logs"`
	At   []string `json:"at"` // host:port of each port, as clients reach it
}

// Guard returns the guard, below which the whole system runs, and the weir process below it that
// supervises the servers; 0 if there is none.
func (r *Running) Guard() (guard, supervisor int) {
	if r.Processes != nil {
		supervisor = r.process.Pid()
	}
	return r.process.GuardPid(), supervisor
}

// Done is closed when the system and its folder are gone.
func (r *Running) Done() <-chan struct{} { return r.process.Done() }

// Err returns, after Done, why the system ended, or nil if Stop ended it.
func (r *Running) Err() error { return r.process.Err() }

// EndsWithin returns how long Stop takes at most, provided the host lets processes be killed.
func (r *Running) EndsWithin() time.Duration { return r.grace + settles }

// Stop ends the system and removes its folder. It returns when both are done, or with ctx's error
// while they continue. It is idempotent.
func (r *Running) Stop(ctx context.Context) error {
	r.stopping.Store(true)
	var mended error
	if r.cutter != nil { // partitioned servers are slow to end
		mended = r.cutter.Close()
	}
	return errors.Join(mended, r.process.Stop(ctx))
}

// Part drops all packets between the nodes of each pair from now on, and lets all others pass. 0
// stands for the clients. The servers must have been started with Serving.Cuts.
func (r *Running) Part(pairs [][2]int) error {
	if r.cutter == nil {
		return errors.New("the servers are not in control groups of their own")
	}
	return r.cutter.Part(pairs)
}

// launch starts one of weir's own processes under a guard, waits for its line that starts with
// readyWord, and returns the rest of that line. Lines that start with eventWord are reported on a
// separate goroutine until everything is gone. launch owns the folder of spec and removes it if it
// fails. Errors wrap ErrStart and carry the last output of the process. It sets Stdout and Stderr of
// spec.
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
					level = slog.LevelDebug // the error contains it if it matters
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
					default: // no caller is waiting
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
			default: // no caller is waiting
			}
		})
		close(ready)
	}()
	last := func() string {
		readers.Wait()
		return unprefixed(said.String(), name)
	}
	r := &Running{Pids: []int{p.Pid()}, grace: spec.Grace, process: p, ready: ready, orders: orders, Dir: spec.Dir, last: last}
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
	why := last()
	if err == nil && why == "" {
		err = ended
	}
	why = cmp.Or(why, "it ended without a message")
	if err != nil {
		return nil, "", fmt.Errorf("%w: %s: %w: %s", ErrStart, name, err, why)
	}
	return nil, "", fmt.Errorf("%w: %s: %s", ErrStart, name, why)
}

// unprefixed returns the output of a failed weir process without the prefix that only states the
// failure.
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

// ErrNoRestart is returned for an embedded system, which cannot be restarted.
var ErrNoRestart = errors.New("an embedded system is not restarted")

// Restart stops the named servers ("server-2"), or all if no name is given, and starts them again with
// the same folders, ports and settings. It returns when the system answers, with new Pids and
// Processes. No other method of the Running may be called meanwhile. If the system does not come back,
// it is gone and the error is ErrStart.
func (r *Running) Restart(ctx context.Context, servers ...string) error {
	if r.Processes == nil {
		return ErrNoRestart
	}
	if err := r.give(orderAgain, 0, servers...); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: too late for a restart: the system's last server had ended, and with it the system", ErrStart)
		}
		return fmt.Errorf("%w: restarting: %w", ErrStart, err)
	}
	select {
	case line, ok := <-r.ready:
		if ok {
			return r.take(line)
		}
		select {
		case <-r.process.Done():
			return fmt.Errorf("%w: it did not come back: %s", ErrStart, cmp.Or(r.last(), fmt.Sprint(r.process.Err())))
		case <-ctx.Done():
			return fmt.Errorf("%w: it did not come back: %w", ErrStart, ctx.Err())
		}
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
	_, _ = io.Copy(io.Discard, r) // the process must not block on its log
}

// record parses an output line of the process: a log record keeps its level, anything else is a
// warning.
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

// A tail keeps the last lines, or those from the start of a panic.
type tail struct {
	mu       sync.Mutex
	lines    []string
	panicked bool
}

func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case strings.HasPrefix(line, "panic: "):
		t.lines, t.panicked = nil, true
	case len(t.lines) < tailLines:
	case t.panicked:
		return
	default:
		t.lines = t.lines[1:]
	}
	t.lines = append(t.lines, line)
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "; ")
}

// waitLimit bounds waits that a broken system could otherwise block for ever.
const waitLimit = 30 * time.Second
