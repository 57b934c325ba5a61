//go:build unix

// Package redistest gives the tests of the Redis drivers a redis-server with custom settings, such
// as passwords and TLS, or several as a master with replicas. All other tests use the driver's
// recipe (served.Up).
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

// Definition returns the definition to pass to served.Main besides the driver's own.
func Definition() driver.Definition {
	return driver.Definition{
		Name: "redis-test", New: func() driver.Config { return config{} }, Page: driver.Page{Recipe: []byte(redisserver.Recipe())},
	}
}

// config belongs to no driver: the definition only carries the recipe.
type config struct{}

func (config) Validate() error { return nil }

func (config) Open(context.Context, driver.Run) (driver.Conn, error) {
	return nil, fmt.Errorf("%w: no driver", driver.ErrUnsupported)
}

// A Server is a redis-server in its own process.
type Server struct {
	*served.Process
	Address string // host:port
	Port    int
}

// grace is short, because a server that writes its first append-only file refuses to exit.
const grace = time.Second

// Start starts a server with these arguments for the duration of the test, on a free port unless
// they say port 0. If the host lacks what the installation needs, the test is skipped; with CI set,
// it fails.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	port := FreePort(t)
	log := filepath.Join(t.TempDir(), "log")
	own := []string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--logfile", log}
	p := served.Start(t, Definition(), served.Spec{
		Program: "redis-server", Args: append(own, args...), Grace: grace,
		// A loading server answers PING with an error, and one with a password or TLS with another;
		// the log line is the same for all.
		Ready: func() error {
			said, err := os.ReadFile(log)
			if err == nil && !bytes.Contains(said, []byte("Ready to accept connections")) {
				err = errors.New("it says: " + string(said))
			}
			if err != nil {
				return err
			}
			return os.Remove(log) // the next start writes a new one
		},
	})
	return &Server{Process: p, Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Port: port}
}

// FreePort returns a free port.
func FreePort(t testing.TB) int {
	t.Helper()
	return served.FreePorts(t, 1)[0]
}
