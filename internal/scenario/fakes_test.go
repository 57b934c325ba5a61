package scenario

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/must"
)

// fake is the Config of these tests' drivers.
type fake struct {
	Address  []string      `option:"address" help:"Where."`
	Storage  string        `option:"storage" allowed:"file,memory" help:"What keeps messages."`
	Timeout  time.Duration `option:"timeout" help:"How long."`
	Password driver.Secret `option:"password" help:"Secret."`
	User     string        `option:"user" help:"Who."`
	TLS      struct {
		CA string `option:"ca" file:"yes" help:"Authority."`
	} `option:"tls"`
	Sync bool `option:"server.sync" help:"Of the embedded server."`
}

func (f *fake) Validate() error {
	var errs []error
	if f.Timeout < 0 {
		errs = append(errs, &driver.OptionError{Name: "timeout", Err: errors.New("is negative (0s and more)")})
	}
	if f.Storage == "memory" && f.TLS.CA == "odd" {
		errs = append(errs, errors.New("storage and tls do not go together"))
	}
	return errors.Join(errs...)
}

func (f *fake) Open(context.Context, driver.Run) (driver.Conn, error) {
	return nil, errors.New("never opened")
}

func newFake() driver.Config {
	return &fake{Address: []string{"nats://127.0.0.1:4222"}, Storage: "file", Timeout: time.Second}
}

// narrowed supports a second subscription only with one value of an option.
type narrowed struct {
	fake
	Pattern string `option:"pattern" allowed:"queue,fanout" help:"Who receives."`
}

func (n *narrowed) Narrow(to driver.Capabilities) driver.Capabilities {
	to.Subscriptions = n.Pattern == "fanout"
	return to
}

func registry(t testing.TB) *driver.Registry {
	t.Helper()
	r := must.Get(driver.NewRegistry(
		driver.Definition{
			Name: "jetstream",
			Capabilities: driver.Capabilities{
				Consume: true, Replicas: true, Retains: true, Subscriptions: true, Competing: true, Keys: true,
				Settle:     []driver.Settle{driver.SettleEach, driver.SettleBatch},
				Replays:    []driver.Start{driver.AtEarliest, driver.AtLatest, driver.AtOffset, driver.AtTime},
				Resumes:    true,
				Guarantees: []driver.Guarantee{driver.Received, driver.Persisted},
				MaxPayload: 1 << 20,
			},
			New:   newFake,
			Serve: func(context.Context, driver.Service) error { return nil },
		},
		driver.Definition{
			Name:         "plain",
			Capabilities: driver.Capabilities{Consume: true, Guarantees: []driver.Guarantee{driver.Buffered}},
			New:          newFake,
		},
		driver.Definition{
			Name:         "sink",
			Capabilities: driver.Capabilities{Batch: true, Keys: true, Partitions: true},
			New:          newFake,
		},
		driver.Definition{
			Name:         "narrowed",
			Capabilities: driver.Capabilities{Consume: true},
			New:          func() driver.Config { return &narrowed{Pattern: "queue"} },
		},
		driver.Definition{
			Name:         "near",
			Capabilities: driver.Capabilities{Consume: true, InProcess: true, Batch: true, Settle: []driver.Settle{driver.SettleAuto}},
			New:          newFake,
		},
	))(t)
	return r
}

// files are the files that the tests' scenarios name.
var files = map[string]string{
	"/at/dir/trace.txt":  "# instants\n0\n1ms\n1500000\n\n3s\n",
	"/at/dir/back.txt":   "5ms\n4ms\n",
	"/at/dir/words.txt":  "soon\n",
	"/at/dir/empty.txt":  "# nothing\n",
	"/at/dir/secret.txt": "canary\n",
	"/at/dir/one.json":   `{"hello": "world"}`,
	"/at/dir/none.json":  "",

	"/at/dir/docs/b.txt":     "bb",
	"/at/dir/docs/a.txt":     "a",
	"/at/dir/docs/c.txt":     "cc",
	"/at/dir/holes/a.txt":    "a",
	"/at/dir/holes/b.txt":    "",
	"/at/dir/deep/sub/a.txt": "a",

	"/at/dir/dir/secret.txt": "canary\n",
}

// filesystem returns files as a file system.
func filesystem() fs.FS {
	m := fstest.MapFS{"at/dir/void": {Mode: fs.ModeDir | 0o755}, "at/dir/pipe": {Mode: fs.ModeNamedPipe}}
	for path, text := range files {
		m[strings.TrimPrefix(path, "/")] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func inputs(t testing.TB, file string, overrides ...Override) Inputs {
	in := Inputs{
		Drivers:   registry(t),
		Overrides: overrides,
		Dir:       "/at/dir",
		Env: func(name string) (string, bool) {
			v, ok := map[string]string{"PASSWORD": "canary", "ME": "somebody", "ADDRESS": "me:canary@one:1"}[name]
			return v, ok
		},
		ReadFile: func(path string) ([]byte, error) {
			if s, ok := files[path]; ok {
				return []byte(s), nil
			}
			return nil, fmt.Errorf("open %s: %w", path, os.ErrNotExist)
		},
	}
	in.Stat = func(path string) (fs.FileInfo, error) { return fs.Stat(filesystem(), strings.TrimPrefix(path, "/")) }
	in.ReadDir = func(path string) ([]fs.DirEntry, error) {
		return fs.ReadDir(filesystem(), strings.TrimPrefix(path, "/"))
	}
	if file != "" {
		in.File, in.Text = "f.yaml", []byte(file)
	}
	return in
}
