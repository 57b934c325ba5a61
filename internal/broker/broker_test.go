//go:build unix

package broker

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/jetstream"
	"github.com/weirmq/weir/drivers/nats"
	"github.com/weirmq/weir/internal/guard"
	"github.com/weirmq/weir/internal/must"
)

// registry has a driver whose server never answers (silent) and one that fails (talker).
func registry() *driver.Registry {
	silent, talker := jetstream.Definition(), jetstream.Definition()
	silent.Name, talker.Name = "silent", "talker"
	silent.Serve = func(ctx context.Context, _ driver.Service) error { <-ctx.Done(); return nil }
	talker.Serve = func(context.Context, driver.Service) error { return errors.New("no licence") }
	r, err := driver.NewRegistry(jetstream.Definition(), nats.Definition(), silent, talker, fakeDefinition())
	if err != nil {
		panic(err)
	}
	return r
}

func start(t *testing.T, name string, change func(*Embedded)) (*Running, error) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("GORACE", "atexit_sleep_ms=0") // or each process of the race detector ends 1 s late
	self := must.Get(os.Executable())(t)
	def := must.Get(registry().Lookup(name))(t)
	e := Embedded{Self: self, Definition: def}
	if change != nil {
		change(&e)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r, err := StartEmbedded(ctx, e)
	if err == nil {
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			var exit *guard.ExitError // the exit of the process that a test killed
			if err := r.Stop(ctx); err != nil && !errors.As(err, &exit) {
				t.Error(err)
			}
			folders(t, 0)
		})
	}
	return r, err
}

func folders(t *testing.T, want int) {
	t.Helper()
	if got, _ := filepath.Glob(filepath.Join(os.TempDir(), "weir-*")); len(got) != want {
		t.Errorf("folders %q; want %d", got, want)
	}
}

// facts connects to a system and reads its facts.
func facts(t *testing.T, def driver.Definition, address []string) driver.Facts {
	t.Helper()
	cfg := def.New()
	must.Do(t, driver.SetOption(cfg, "address", address...))
	c := must.Get(cfg.Open(t.Context(), driver.Run{ID: "t", Log: slog.New(slog.DiscardHandler)}))(t)
	defer func() { _ = c.Close(context.Background()) }()
	return must.Get(c.Facts(t.Context()))(t)
}

func TestEmbeddedSystemRunsInOwnProcess(t *testing.T) {
	for _, c := range []struct {
		name, driver string
		change       func(*Embedded)
		nodes        int
		want         driver.Confirms
	}{
		{"core NATS", "nats", nil, 1, driver.Confirms{Guarantee: driver.Buffered}},
		{"JetStream", "jetstream", nil, 1, driver.Confirms{Guarantee: driver.Received, Stable: driver.StableOS}},
		{
			"JetStream that always syncs", "jetstream", func(e *Embedded) { e.Options = map[string]string{"sync-always": "true"} },
			1,
			driver.Confirms{Guarantee: driver.Persisted, Stable: driver.StableFsync},
		},
		{
			"JetStream of three nodes", "jetstream", func(e *Embedded) { e.Nodes = 3 }, 3,
			driver.Confirms{Guarantee: driver.Received, Stable: driver.StableOS},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var def driver.Definition
			r := must.Get(start(t, c.driver, func(e *Embedded) {
				def = e.Definition
				if c.change != nil {
					c.change(e)
				}
			}))(t)
			if len(r.Address) != c.nodes || len(r.Pids) != 1 || r.Pids[0] == os.Getpid() {
				t.Errorf("addresses %q, processes %v", r.Address, r.Pids)
			}
			folders(t, 1)
			f := facts(t, def, r.Address)
			if diff := cmp.Diff(c.want, f.Confirms); diff != "" || f.Nodes != c.nodes {
				t.Errorf("%d nodes; confirms (-want +got):\n%s", f.Nodes, diff)
			}
		})
	}
}

func TestFailedEmbeddedStartExplainsAndCleansUp(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	for _, c := range []struct {
		name, driver, want string
		change             func(*Embedded)
	}{
		{"a port that is taken", "jetstream", "port taken", func(e *Embedded) { e.Port = port }},
		{"an unknown option", "jetstream", `did you mean "server.sync-always"`, func(e *Embedded) { e.Options = map[string]string{"sync-alway": "true"} }},
		{"an option of another driver", "nats", "has none for its server", func(e *Embedded) { e.Options = map[string]string{"sync-always": "true"} }},
		{"a server that fails", "talker", "no licence", nil},
		{"two nodes", "jetstream", "two have no majority", func(e *Embedded) { e.Nodes = 2 }},
		{"a driver that is not embedded", "silent", "cannot be embedded", func(e *Embedded) { e.Definition.Serve = nil }},
		{"no binary", "jetstream", "no such file", func(e *Embedded) { e.Self = "/nowhere" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := start(t, c.driver, c.change)
			if !errors.Is(err, ErrStart) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("StartEmbedded: %v; want ErrStart with %q", err, c.want)
			}
			folders(t, 0)
		})
	}
}

func TestStartIsBoundedByItsContext(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("GORACE", "atexit_sleep_ms=0") // or each process of the race detector ends 1 s late
	self, _ := os.Executable()
	def, _ := registry().Lookup("silent")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := StartEmbedded(ctx, Embedded{Self: self, Definition: def})
	if !errors.Is(err, ErrStart) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("StartEmbedded of a server that never answers: %v; want ErrStart and the context's error", err)
	}
	folders(t, 0)
}

func TestKilledSystemIsReported(t *testing.T) {
	r := must.Get(start(t, "nats", nil))(t)
	must.Do(t, syscall.Kill(r.Pids[0], syscall.SIGKILL))
	select {
	case <-r.Done():
	case <-time.After(time.Minute):
		t.Fatal("Done is not closed")
	}
	var exit *guard.ExitError
	if !errors.As(r.Err(), &exit) || exit.Code != 128+9 {
		t.Errorf("Err() = %v; want exit code 137", r.Err())
	}
	folders(t, 0)
}

func TestKillingWeirLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("GORACE", "atexit_sleep_ms=0") // or each process of the race detector ends 1 s late
	cmd, said := weirThat(t, "embedded", t.TempDir())
	if !said.Scan() || !strings.HasPrefix(said.Text(), "true") {
		t.Fatalf("weir said %q", said.Text())
	}
	said.Scan()
	address := strings.TrimPrefix(said.Text(), "nats://")
	folders(t, 1)
	_ = cmd.Process.Kill()
	untilGone(t, filepath.Join(os.TempDir(), "weir-*"))
	must.Until(t, "the server is gone", func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
}

func TestUnsupportedNodeCountRejectedBeforeStart(t *testing.T) {
	_, err := StartEmbedded(t.Context(), Embedded{Self: "/nowhere", Definition: jetstream.Definition(), Nodes: 2})
	if !errors.Is(err, ErrStart) || !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "two have no majority") {
		t.Errorf("StartEmbedded of two nodes: %v; want ErrStart and ErrUnsupported", err)
	}
}

func TestLinesOfTheProcessKeepTheirLevel(t *testing.T) {
	for _, c := range []struct {
		name, line string
		level      slog.Level
		text       string
		attrs      []slog.Attr
	}{
		{
			"a record of its log", `{"time":"2026-01-02T03:04:05Z","level":"ERROR","msg":"disk full","server":"weir-1"}`,
			slog.LevelError, "disk full",
			[]slog.Attr{slog.String("server", "weir-1")},
		},
		{"one of a level between", `{"level":"DEBUG-2","msg":"m"}`, slog.LevelDebug - 2, "m", nil},
		{"a plain line", "fatal error: out of memory", slog.LevelWarn, "fatal error: out of memory", nil},
		{"JSON that is not a record", `{"level":"high"}`, slog.LevelWarn, `{"level":"high"}`, nil},
		{"nothing", "", slog.LevelWarn, "", nil},
	} {
		level, text, attrs := record(c.line)
		if level != c.level || text != c.text || !slices.EqualFunc(attrs, c.attrs, slog.Attr.Equal) {
			t.Errorf("%s: %v %q %v; want %v %q %v", c.name, level, text, attrs, c.level, c.text, c.attrs)
		}
	}
}

func TestStartOfAClusterIsQuiet(t *testing.T) {
	var mu sync.Mutex
	var log strings.Builder
	h := slog.NewTextHandler(writer(func(b []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return log.Write(b)
	}), &slog.HandlerOptions{Level: slog.LevelInfo})
	r := must.Get(start(t, "jetstream", func(e *Embedded) { e.Nodes, e.Log = 3, slog.New(h) }))(t)
	if err := r.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if log.Len() > 0 {
		t.Errorf("a start and a stop without trouble say:\n%s", log.String())
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }
