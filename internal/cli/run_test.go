package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/all"
	channel "github.com/weirmq/weir/drivers/chan"
	"github.com/weirmq/weir/drivers/noop"
	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/result"
)

func itoa(n int) string { return strconv.Itoa(n) }

// A watch is a writer that calls what it is told when a text has been written.
type watch struct {
	mu   sync.Mutex
	all  bytes.Buffer
	on   string
	then func()
}

func (w *watch) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all.Write(b)
	if w.then != nil && strings.Contains(w.all.String(), w.on) {
		w.then()
		w.then = nil
	}
	return len(b), nil
}

// when calls then once a text has been written, at once where it has been.
func (w *watch) when(on string, then func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if strings.Contains(w.all.String(), on) {
		then()
		return
	}
	w.on, w.then = on, then
}

func (w *watch) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.String()
}

// do runs weir with drivers in a folder of its own and returns the exit code.
func do(t *testing.T, w World, args ...string) (code int, stdout, stderr *watch) {
	t.Helper()
	stdout, stderr = &watch{}, &watch{}
	if w.Stderr != nil {
		stderr = w.Stderr.(*watch)
	}
	w.Args, w.Stdout, w.Stderr = args, stdout, stderr
	w.Env = func(string) (string, bool) { return "", false }
	if w.Dir == "" {
		w.Dir = t.TempDir()
	}
	if w.Drivers == nil {
		w.Drivers = []driver.Definition{channel.Definition(), noop.Definition()}
	}
	since := time.Now()
	code = Main(t.Context(), w)
	if err := written(w.Dir, since); err != nil {
		t.Error(err)
	}
	return code, stdout, stderr
}

func TestOpenLoopRunIsWrittenCompletely(t *testing.T) {
	dir := t.TempDir()
	code, stdout, stderr := do(t, World{Dir: dir}, "run", "--driver", "chan", "--rate", "500/s", "--warmup", "200ms", "--measure", "1s", "--full", "--out", "r")
	// A busy host may make the figures invalid; what is counted it does not.
	if code != int(OK) && code != int(Invalid) {
		t.Fatalf("exit code %d; want 0 or 5\n%s", code, stderr)
	}
	saved := must.Get(result.Read(filepath.Join(dir, "r")))(t)
	r := saved.Result
	want := result.Messages{Scheduled: 500, Sent: 500, Confirmed: 500, Delivered: 500}
	golden.Equal(t, want, r.Messages, "messages")
	if r.MessagesAll.Delivered != 600 {
		t.Errorf("delivered in all = %d; want 600", r.MessagesAll.Delivered)
	}
	for name, d := range map[string]*result.Dist{
		"send.response": r.Latency.Send.Response, "send.service": r.Latency.Send.Service, "send.lateness": r.Latency.Send.Lateness,
		"e2e.response": r.Latency.E2E.Response, "e2e.service": r.Latency.E2E.Service,
	} {
		if d == nil || d.Count != 500 {
			t.Errorf("%s = %+v; want 500 samples", name, d)
		}
	}
	if p := r.Latency.Send.Response.Percentile(99.9); p == nil || p.Supported {
		t.Errorf("p99.9 of 500 samples = %+v; want it unsupported", p)
	}
	if !strings.Contains(stdout.String(), "higher percentiles need longer runs: 99.9 % from 10 s") {
		t.Errorf("the table does not say what p99.9 lacks:\n%s", stdout)
	}
	f := must.Get(os.Open(filepath.Join(dir, "r", result.FileIntervals)))(t)
	defer f.Close()
	totals := must.Get(result.Totals(f))(t)
	for tag, want := range map[string]uint64{"send.response.measure": 500, "send.response.warmup": 100, "e2e.service.measure": 500} {
		if got := totals[tag]; got == nil || got.Total() != want {
			t.Errorf("the lines of %s in intervals.hlog do not sum up to %d", tag, want)
		}
	}
	var sent, received uint64
	phases := map[string]bool{}
	for _, iv := range r.Intervals {
		sent += iv.Sent
		received += iv.Received
		phases[iv.Phase] = true
	}
	if sent != 600 || received != 600 || !phases["measure"] {
		t.Errorf("the intervals sum up to %d sent, %d received, phases %v; want 600, 600 and measure", sent, received, phases)
	}
	for _, name := range []string{"send.hgrm", "e2e.hgrm", result.FileScenario, result.FileEnvironment, result.FileEvents} {
		if !slices.Contains(saved.Files, name) {
			t.Errorf("%s is missing from %v", name, saved.Files)
		}
	}
}

func TestStdoutIsOnlyJSON(t *testing.T) {
	code, stdout, stderr := do(t, World{}, "run", "--driver", "noop", "--rate", "max", "--messages", "1000", "--warmup", "0s", "--json", "--out", "r")
	if code != int(OK) {
		t.Fatalf("exit code %d; want 0\n%s", code, stderr)
	}
	var r result.Result
	if err := json.Unmarshal([]byte(stdout.String()), &r); err != nil {
		t.Fatalf("stdout is not JSON: %v\n%s", err, stdout)
	}
	if r.Messages.Confirmed != 1000 || r.Run.Loop != result.LoopClosed {
		t.Errorf("confirmed %d, loop %s; want 1000, closed", r.Messages.Confirmed, r.Run.Loop)
	}
	if !strings.Contains(stderr.String(), "closed loop") {
		t.Errorf("the table is not on stderr:\n%s", stderr)
	}
}

func TestTheFirstSignalDrainsAndWrites(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := t.TempDir()
	signals := make(chan os.Signal, 2)
	stderr := &watch{on: "measuring", then: func() { signals <- os.Interrupt }}
	code, stdout, _ := do(t, World{Dir: dir, Signals: signals, Stderr: stderr}, "run", "--driver", "chan", "--warmup", "100ms", "--measure", "60s", "--out", "r")
	if code != int(Interrupted) {
		t.Fatalf("exit code %d; want 130\n%s", code, stderr)
	}
	saved := must.Get(result.Read(filepath.Join(dir, "r")))(t)
	m := saved.Result.Messages
	if !saved.Result.Run.Interrupted || m.Delivered == 0 || m.Delivered != m.Confirmed {
		t.Errorf("interrupted %v, messages %+v; want it marked, and all delivered", saved.Result.Run.Interrupted, m)
	}
	// What else was wrong stands beside it on a busy host.
	if said := strings.ToLower(strings.Join(strings.Fields(stdout.String()), " ")); !strings.Contains(said, "interrupted") || !strings.Contains(said, "the figures cover the part that") {
		t.Errorf("the table does not say that the run was interrupted:\n%s", stdout)
	}
}

func TestTheSecondSignalStopsAtOnce(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	signals := make(chan os.Signal, 2)
	stderr := &watch{on: "warming up", then: func() { signals <- os.Interrupt; signals <- os.Interrupt }}
	// Nothing is ever confirmed: draining would take a minute.
	stuck := broken0(func(uint64) fate { return swallow })
	code, _, _ := do(t, World{Signals: signals, Stderr: stderr, Drivers: []driver.Definition{stuck}},
		"run", "--driver", "odd", "--warmup", "10s", "--measure", "60s", "--drain", "60s", "--out", "r")
	if code != int(Interrupted) {
		t.Errorf("exit code %d; want 130\n%s", code, stderr)
	}
	if !strings.Contains(stderr.String(), "stopping now") {
		t.Errorf("the second signal is not told:\n%s", stderr)
	}
}

// Stops a verb while it waits for input. No verb waits for a pipe in place of a file: package userfile
// refuses it.
func TestSignalEndsReadingCommand(t *testing.T) {
	stdin, keyboard := io.Pipe()
	defer func() { _ = keyboard.Close() }()
	signals := make(chan os.Signal, 1)
	signals <- os.Interrupt
	code, stdout, stderr := do(t, World{Dir: t.TempDir(), Stdin: stdin, Signals: signals}, "run", "-")
	if code != int(Interrupted) || stdout.String() != "" || stderr.String() != "weir: interrupted\n" {
		t.Errorf("exit code %d, %q on stdout; want 130 and nothing\n%s", code, stdout, stderr)
	}
}

func TestSystemStartFailureIsUnreachable(t *testing.T) {
	dir := t.TempDir()
	code, _, stderr := do(t, World{Dir: dir, Self: filepath.Join(dir, "no-such-program"), Drivers: all.Definitions()}, "run")
	if code != int(Unreachable) || !strings.HasPrefix(stderr.String(), "weir: starting jetstream: ") {
		t.Errorf("exit code %d; want 3, and what could not be started named\n%s", code, stderr)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%v is left behind", left)
	}
}

// eighth is what happens to the eighth message alone.
func eighth(f fate) func(n uint64) fate {
	return func(n uint64) fate {
		if n == 7 {
			return f
		}
		return pass
	}
}

func eachFourth(n uint64) fate {
	if n%4 == 3 {
		return refuse
	}
	return pass
}

func TestCodesOfRunsWithFigures(t *testing.T) {
	tests := []struct {
		name string
		odd  func(n uint64) fate
		args []string
		want Code
		says string
	}{
		{"messages confirmed and never delivered", eighth(lose), nil, Lost, "lost 1"},
		{"messages changed on their way", eighth(change), nil, Lost, "corrupted 1"},
		{"messages delivered twice", eighth(double), nil, Lost, "duplicated 1"},
		{
			"a full producer that ends the run",
			func(uint64) fate { return swallow },
			[]string{"--rate", "100/s", "--in-flight", "1", "--when-full", "fail", "--drain", "100ms", "--measure", "5s"},
			Invalid, "the run ended at once",
		},
		{"messages that are refused", eachFourth, nil, Refused, "suspect failed messages: 12 of 50 messages failed (24 %) (limit 0 % of what was sent (limits.failed)) The system did not carry the load. The most frequent error, 12 times: overloaded: system overloaded: no room."},
		{"messages that are never confirmed", eighth(swallow), []string{"--rate", "500/s", "--measure", "100ms", "--drain", "100ms"}, Refused, "1 of 50 messages were never confirmed (2 %)"},
		{"as many refused as the scenario lets be", eachFourth, []string{"--rate", "max", "--messages", "50", "--in-flight", "5", "--limits.failed", "24%"}, OK, "the system failed 12 of 50 messages"},
		{"as many refused as an objective lets be", eachFourth, []string{"--rate", "max", "--messages", "50", "--in-flight", "5", "--slo", "failed <= 24%"}, OK, "the system failed 12 of 50 messages"},
		{"more refused than an objective lets be", eachFourth, []string{"--rate", "max", "--messages", "50", "--in-flight", "5", "--slo", "failed <= 11"}, Refused, "(limit 22 % of what was sent (limits.failed))"},
		{"a driver that completes twice", eighth(twice), nil, Failed, "driver broke its contract"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args := []string{"run", "--driver", "odd", "--warmup", "0s", "--full", "--out", "r"}
			if tt.args == nil {
				tt.args = []string{"--rate", "max", "--messages", "50", "--in-flight", "5"}
			}
			args = append(args, tt.args...)
			code, stdout, stderr := do(t, World{Drivers: []driver.Definition{broken0(tt.odd)}}, args...)
			if code != int(tt.want) {
				t.Errorf("exit code %d; want %d\n%s%s", code, tt.want, stdout, stderr)
			}
			if !strings.Contains(strings.Join(strings.Fields(stdout.String()+stderr.String()), " "), tt.says) {
				t.Errorf("it does not say %q:\n%s%s", tt.says, stdout, stderr)
			}
		})
	}
}

func TestVanishedFolderIsNamed(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	out := filepath.Join(dir, "r")
	stderr := &watch{on: "; confirmed", then: func() { _ = os.Rename(out, filepath.Join(elsewhere, "r")) }} // in the first line, at once
	code, stdout, _ := do(t, World{Dir: dir, Stderr: stderr}, "run", "--driver", "chan", "--rate", "100/s", "--warmup", "2500ms", "--measure", "100ms", "--full", "--out", "r")
	if code != int(Failed) {
		t.Errorf("exit code %d; want 1\n%s", code, stderr)
	}
	if !strings.Contains(stderr.String(), "weir: writing the result: write "+filepath.Join(out, result.FileResult)) {
		t.Errorf("the file is not named:\n%s", stderr)
	}
	if !strings.Contains(stdout.String(), "scheduled 10,") {
		t.Errorf("the table is not shown:\n%s", stdout)
	}
}

// A fate is what an odd driver does to a message.
type fate int

const (
	pass    fate = iota
	lose         // confirm it and send it nowhere
	swallow      // send it nowhere and confirm it never, until the end
	change       // send another in its place
	double       // send it twice
	twice        // confirm it twice
	refuse       // fail it
)

// broken0 is driver chan with producers that do what odd says of the n-th
// message, counting from 0.
func broken0(odd func(n uint64) fate) driver.Definition {
	d := channel.Definition()
	d.Name = "odd"
	inner := d.New
	d.New = func() driver.Config { return &oddConfig{Config: inner(), odd: odd} }
	d.Capabilities.Batch, d.Capabilities.PublishBlocks = false, true
	return d
}

type oddConfig struct {
	driver.Config
	odd func(uint64) fate
}

func (c *oddConfig) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	conn, err := c.Config.Open(ctx, run)
	holds, _ := conn.(driver.Backlogger)
	return &oddConn{conn, holds, c.odd}, err
}

type oddConn struct {
	driver.Conn
	driver.Backlogger
	odd func(uint64) fate
}

func (c *oddConn) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	p := &oddProducer{odd: c.odd, done: done}
	var err error
	p.Producer, err = c.Conn.Producer(ctx, spec, p)
	return p, err
}

type oddProducer struct {
	driver.Producer
	odd     func(uint64) fate
	done    driver.Completer
	n       uint64
	also    atomic.Pointer[driver.Message] // a copy that was sent beside a message
	instead atomic.Pointer[driver.Message] // the message that it stands for, where it does

	mu   sync.Mutex
	held []*driver.Message
}

func (p *oddProducer) Publish(ctx context.Context, m *driver.Message) {
	f := p.odd(p.n)
	p.n++
	switch f {
	case lose:
		p.done.Complete(m, nil)
	case swallow:
		p.mu.Lock()
		p.held = append(p.held, m)
		p.mu.Unlock()
	case change:
		again := *m
		again.Payload = slices.Clone(m.Payload)
		again.Payload[len(m.Payload)-1] ^= 1
		p.instead.Store(m)
		p.also.Store(&again)
		p.Producer.Publish(ctx, &again)
	case double:
		again := *m
		again.Payload = slices.Clone(m.Payload)
		p.also.Store(&again)
		p.Producer.Publish(ctx, &again)
		p.Producer.Publish(ctx, m)
	case refuse:
		p.done.Complete(m, fmt.Errorf("%w: no room", driver.ErrOverloaded))
	case twice:
		p.Producer.Publish(ctx, m)
		p.done.Complete(m, nil)
	default:
		p.Producer.Publish(ctx, m)
	}
}

func (p *oddProducer) Complete(m *driver.Message, err error) {
	if m == p.also.Load() { // a copy of ours
		m = p.instead.Load()
	}
	if m != nil {
		p.done.Complete(m, err)
	}
}

func (p *oddProducer) Close(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.held {
		p.done.Complete(m, driver.ErrClosed)
	}
	p.held = nil
	return p.Producer.Close(ctx)
}
