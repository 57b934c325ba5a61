//go:build unix

// Package redistest gives the tests of the Redis drivers a redis-server with
// settings of their own, such as passwords and TLS, and several of them as a
// master with replicas. The driver's recipe is used for all others (served.Up).
package redistest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/redisserver"
	"github.com/weirmq/weir/drivers/internal/served"
)

// Definition is what served.Main must be told of beside the driver's own.
func Definition() driver.Definition {
	return driver.Definition{
		Name: "redis-test", New: func() driver.Config { return config{} }, Recipe: redisserver.Recipe(),
	}
}

// config is that of no driver: the definition is for the recipe.
type config struct{}

func (config) Validate() error { return nil }

func (config) Open(context.Context, driver.Run) (driver.Conn, error) {
	return nil, fmt.Errorf("%w: no driver", driver.ErrUnsupported)
}

// A Server is a redis-server in a process of its own.
type Server struct {
	*served.Process
	Address string // host:port
	Port    int
}

// grace is short: a server that writes its first append-only file refuses to end.
const grace = time.Second

// Start starts a server with these arguments for the length of the test, on a port
// of its own unless they say port 0. Where the host lacks what its install needs the
// test is skipped, unless the environment has CI set: then it fails.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	port := FreePort(t)
	log := filepath.Join(t.TempDir(), "log")
	own := []string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--logfile", log}
	p := served.Start(t, Definition(), served.Spec{
		Program: "redis-server", Args: append(own, args...), Grace: grace,
		// A server that is loading answers PING with an error, one with a password or
		// TLS with another; what it logs is the same with all.
		Ready: func() error {
			said, err := os.ReadFile(log)
			if err == nil && !bytes.Contains(said, []byte("Ready to accept connections")) {
				err = errors.New("it says: " + string(said))
			}
			if err != nil {
				return err
			}
			return os.Remove(log) // and the next start writes another
		},
	})
	return &Server{Process: p, Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Port: port}
}

// FreePort returns a port without a listener.
func FreePort(t testing.TB) int {
	t.Helper()
	return served.FreePorts(t, 1)[0]
}
