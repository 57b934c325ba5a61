//go:build unix

package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/jetstream"
	"github.com/weirmq/weir/internal/clockstep"
	"github.com/weirmq/weir/internal/guard"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/slowdisk"
)

// role is the environment variable with which the test binary plays a weir that starts something and
// waits to be killed.
const role = "BROKER_TEST_WEIR"

// fakeServer is the first argument that makes the test binary a server.
const fakeServer = "fakeserver"

func TestMain(m *testing.M) {
	if code, ok := guard.Main(os.Args); ok {
		os.Exit(code)
	}
	if len(os.Args) > 1 && os.Args[1] == fakeServer {
		serveFake(os.Args[2:])
	}
	if len(os.Args) > 2 && os.Args[1] == "internal" {
		if err := internalMain(os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	if what := os.Getenv(role); what != "" {
		playWeir(what)
	}
	// Started by a variable of RocketMQ's client.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/patrickmn/go-cache.(*janitor).Run"))
}

func internalMain(what string, rest []string) error {
	switch ctx := context.Background(); what {
	case "serve":
		return ServeMain(ctx, rest, registry(), os.Stdout, os.Stderr)
	case "install":
		return InstallMain(ctx, rest, registry(), os.Stdout)
	case "system":
		return SystemMain(ctx, rest, registry(), os.Stdout, os.Stderr)
	case "clock":
		return clockstep.Main(os.Stdin, os.Stdout)
	case "disk":
		return slowdisk.Main(rest, os.Stdin, os.Stdout)
	case "keep":
		self, err := os.Executable()
		if err != nil {
			return err
		}
		return KeepMain(ctx, self, rest, registry(), os.Stdin, os.Stdout)
	}
	return errors.New("no such process")
}

// playWeir plays a weir that does one thing, reports the outcome, and waits.
func playWeir(what string) {
	self, _ := os.Executable()
	var err error
	var said string
	switch def := fakeDefinition(); what {
	case "embedded":
		var r *Running
		r, err = StartEmbedded(context.Background(), Embedded{Self: self, Definition: jetstream.Definition()})
		if err == nil {
			said = r.Address[0]
		}
	case "system", "hanging", "stubborn":
		r, _ := RecipeOf(def, map[string]string{"system": "fake", "hanging": "hanging", "stubborn": "fake"}[what])
		var run *Running
		run, err = StartSystem(context.Background(), Serving{
			Self: self, Definition: def, Recipe: r, Nodes: 1, Cache: os.Getenv(VariableCache),
			Settings: map[string]map[string]string{"stubborn": {"mode": "stubborn"}}[what],
		})
		if err == nil {
			said = run.Address[0]
		}
	case "keep":
		r, _ := RecipeOf(def, "hanging")
		_, err = Keep(context.Background(), Serving{Self: self, Definition: def, Recipe: r, Nodes: 1, Cache: os.Getenv(VariableCache)})
	case "install":
		r, _ := RecipeOf(def, "slow")
		_, err = Ensure(context.Background(), Installing{
			Self: self, Driver: def.Name, Recipe: r, Cache: os.Getenv(VariableCache), Note: func(line string) { fmt.Println(line) },
		})
	}
	fmt.Println(err == nil, err)
	if err == nil {
		fmt.Println(said)
		select {}
	}
	os.Exit(1)
}

// serveFake is a server that greets its client and reports its number of nodes. Modes: ok; die (exits
// at once, after a last message); mute (accepts connections and says nothing); full (reports a full
// disk); stubborn (ignores SIGTERM, and has a child that does too); late (answers after half a
// second); behind (tells its first three connections that it confirms nothing); logs (on SIGTERM it
// appends its kind to a file, the kind server a moment later); thief (holds the port, reports so in a
// file, and serves nobody).
func serveFake(args []string) {
	port, nodes, mode := args[0], args[1], args[2]
	switch mode {
	case "die":
		fmt.Println("no licence for this host")
		os.Exit(7)
	case "stubborn":
		signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM) // caught and ignored
		child := exec.Command(os.Args[0], fakeServer, "0", nodes, "deaf")
		_ = child.Start()
	case "deaf":
		signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM)
		select {}
	case "late":
		time.Sleep(500 * time.Millisecond)
	case "logs":
		kind, file := args[3], args[4]
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM)
		go func() {
			<-asked
			if kind == "server" {
				time.Sleep(100 * time.Millisecond)
			}
			f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
			if err == nil {
				_, err = fmt.Fprintln(f, kind)
			}
			if err != nil {
				os.Exit(1)
			}
			os.Exit(0)
		}()
	}
	l, err := net.Listen("tcp", net.JoinHostPort(loopback, port))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	if mode == "thief" {
		_ = os.WriteFile("taken", nil, 0o600)
		select {}
	}
	for n := 1; ; n++ {
		c, err := l.Accept()
		if err != nil {
			os.Exit(1)
		}
		switch mode {
		case "mute":
		case "full":
			fmt.Fprint(c, "no room")
			_ = c.Close()
		default:
			fmt.Fprintf(c, "hello %s\n%d\n%t\n", nodes, time.Now().Unix(), mode != "behind" || n > 3)
			_ = c.Close()
		}
	}
}

// fakeConfig is the Config of the fake server's driver.
type fakeConfig struct {
	Address []string `option:"address" help:"Where."`
	Recipe  []string `option:"told" help:"What the recipe says."`
}

func (c *fakeConfig) Validate() error { return nil }

func (c *fakeConfig) Open(ctx context.Context, _ driver.Run) (driver.Conn, error) {
	return &fakeConn{c: c}, nil
}

type fakeConn struct {
	driver.Conn
	c *fakeConfig
}

func (c *fakeConn) Facts(ctx context.Context) (driver.Facts, error) {
	f := driver.Facts{Name: "fake"}
	for _, a := range c.c.Address {
		said, err := c.hear(ctx, a)
		if err != nil {
			return f, err
		}
		f.Nodes, _ = strconv.Atoi(said[0])
	}
	return f, nil
}

// hear parses a server's greeting: its number of nodes, its time, whether it confirms.
func (c *fakeConn) hear(ctx context.Context, address string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // some modes never answer
	defer cancel()
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrUnreachable, err)
	}
	defer func() { _ = nc.Close() }()
	defer context.AfterFunc(ctx, func() { _ = nc.Close() })()
	b, err := io.ReadAll(nc)
	if string(b) == "no room" {
		return nil, fmt.Errorf("%w: no room", driver.ErrBlocked)
	}
	text, found := strings.CutPrefix(string(b), "hello ")
	said := strings.Fields(text)
	if err != nil || !found || len(said) != 3 {
		return nil, fmt.Errorf("%w: it said %q", driver.ErrUnreachable, b)
	}
	return said, nil
}

// Producer returns a producer that asks a server for each message whether it confirms.
func (c *fakeConn) Producer(_ context.Context, _ driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	return &fakeProducer{c: c, done: done}, nil
}

type fakeProducer struct {
	driver.Producer
	c    *fakeConn
	done driver.Completer
}

func (p *fakeProducer) Publish(ctx context.Context, m *driver.Message) {
	said, err := p.c.hear(ctx, p.c.c.Address[0])
	if err == nil && said[2] != "true" {
		err = fmt.Errorf("%w: its copies are behind", driver.ErrTimeout)
	}
	p.done.Complete(m, err)
}

func (p *fakeProducer) Close(context.Context) error { return nil }

func (c *fakeConn) Declare(context.Context, ...driver.Destination) error { return nil }

func (c *fakeConn) Delete(context.Context, ...driver.Destination) error { return nil }

func (c *fakeConn) Close(context.Context) error { return nil }

// fakeRecipe returns a recipe whose server is the test binary in the given mode.
func fakeRecipe(name, mode, more string) string {
	return fmt.Sprintf(`recipe: 1
name: %s
title: A fake
version: "1"
nodes: [1, 2, 3]
install: {pypi: {package: fake, version: "1", programs: {fake: fake}}}
settings:
  mode: {default: %s, help: "How it behaves."}
processes:
  - name: server
    ports: {client: 4000}
    files: {deep/er.conf: "node {{.Node}} of {{len .Nodes}} at {{.At \"client\"}}\n"}
    before: [{run: [sh, -c, "echo before >> order"]}]
    start: ['{{program "fake"}}', %s, '{{.Port.client}}', '{{len .Nodes}}', '{{set "mode"}}']
    after: [{run: [sh, -c, "test -f once && echo after >> order || { touch once; false; }"], retry: true}]
    logs: ['{{.Dir}}/other.log']
connect:
  address: '{{.At "client"}}'
  options: {fake: {told: "node {{.Node}}", unknown: x}}
%s---
`, name, mode, fakeServer, more)
}

// robbed returns a recipe whose port is taken by another process between choice and start, the given
// number of times.
func robbed(name string, times int) string {
	return strings.Replace(fakeRecipe(name, "ok", ""), `before: [{run: [sh, -c, "echo before >> order"]}]`, fmt.Sprintf(`before:
      - run:
          - sh
          - -c
          - 'echo x >> "$1/attempts"; test $(wc -l < "$1/attempts") -gt %d || { "$2" %s "$3" 1 thief & while ! test -f taken; do sleep 0.05; done; }'
          - sh
          - '{{.Root}}'
          - '{{program "fake"}}'
          - '{{.Port.client}}'`, times, fakeServer), 1)
}

func fakeDefinition() driver.Definition {
	text := fakeRecipe("fake", "ok", "ready: {declare: true, within: 20s}\n") +
		fakeRecipe("hanging", "mute", "ready: {within: 5m}\n") +
		fakeRecipe("mute", "mute", "ready: {within: 4s}\nstop: {grace: 1s}\n") +
		fakeRecipe("full", "full", "ready: {within: 5s}\nstop: {grace: 1s}\n") +
		fakeRecipe("behind", "behind", "ready: {confirm: true, within: 20s}\n") +
		`recipe: 1
name: kinds
title: A fake with two kinds of servers
version: "1"
nodes: [1, 2]
install: {pypi: {package: fake, version: "1", programs: {fake: fake}}}
settings: {log: {default: none, help: "Where servers say that they end."}}
processes:
  - name: base
    on: first
    ports: {inner: 4001}
    start: ['{{program "fake"}}', ` + fakeServer + `, '{{.Port.inner}}', '{{len .Nodes}}', logs, base, '{{set "log"}}']
  - name: server
    ports: {client: 4000}
    start: ['{{program "fake"}}', ` + fakeServer + `, '{{.Port.client}}', '{{len .Nodes}}', logs, server, '{{set "log"}}']
connect: {address: '{{.At "client"}}'}
---
` + robbed("robbed", 1) + robbed("hopeless", 9) +
		`recipe: 1
name: slow
title: Slow to install
version: "1"
nodes: [1]
install: {go: {module: example.com/slow, version: v1.0.0, programs: {slow: .}}}
processes: [{name: s, ports: {client: 1}, start: [x]}]
connect: {address: '{{.At "client"}}'}
---
recipe: 1
name: boxed
title: Only as a container
version: "1"
nodes: [1]
processes: [{name: s, ports: {client: 1}, docker: {image: "a:1"}}]
connect: {address: '{{.At "client"}}'}
`
	return driver.Definition{
		Name: "fake", New: func() driver.Config { return &fakeConfig{Address: []string{"nowhere:1"}} },
		Capabilities: driver.Capabilities{Replicas: true}, Page: driver.Page{Recipe: []byte(text)},
	}
}

// cacheOf returns a cache in which the recipe's program is the test binary.
func cacheOf(t *testing.T, recipes ...string) string {
	t.Helper()
	cache := t.TempDir()
	self := must.Get(os.Executable())(t)
	for _, name := range recipes {
		r := must.Get(RecipeOf(fakeDefinition(), name))(t)
		home := r.home(cache)
		must.Do(t, os.MkdirAll(home, 0o755))
		must.Do(t, os.Symlink(self, filepath.Join(home, "fake")))
		b := must.Get(json.Marshal(&Installation{Schema: schemaInstalled, Name: name, Version: "1", Source: "pypi", Programs: map[string]string{"fake": "fake"}}))(t)
		must.Do(t, os.WriteFile(filepath.Join(home, installedFile), b, 0o644))
	}
	return cache
}

// alive reports whether a process runs, zombies not counted.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return errors.Is(err, os.ErrNotExist) && syscall.Kill(pid, 0) == nil && noProc()
	}
	i := strings.LastIndexByte(string(b), ')')
	return i+2 < len(b) && b[i+2] != 'Z' && b[i+2] != 'X'
}

// noProc reports whether the host lacks /proc.
func noProc() bool {
	_, err := os.Stat("/proc/self/stat")
	return err != nil
}
