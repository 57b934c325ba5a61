//go:build unix

// Package redistest gives the tests of the Redis drivers a redis-server with
// settings of their own, such as passwords and TLS, and several of them as a
// master with replicas. A test binary that uses it calls Main from its TestMain.
package redistest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/guard"
)

const (
	limit = 20 * time.Second // bounds each start and stop
	grace = time.Second      // a server that writes its first append-only file refuses to end
)

// Main makes this process a guard where it was started as one, and returns at once
// where it was not.
func Main() {
	if code, ok := guard.Main(os.Args); ok {
		os.Exit(code)
	}
}

// A Server is a redis-server in a process of its own.
type Server struct {
	Address string // host:port
	Port    int

	t       testing.TB
	program string
	dir     string
	args    []string
	process *guard.Process
}

// Start starts a server with these arguments for the length of the test, on a
// port of its own unless they say port 0. Where the host has no redis-server the
// test is skipped, unless the environment has CI set: then it fails.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return StartProgram(t, "redis-server", args...)
}

// StartProgram is Start for another program that takes the same arguments.
func StartProgram(t testing.TB, program string, args ...string) *Server {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s: %v", program, err)
		}
		t.Skipf("the host has no %s", program)
	}
	s := &Server{t: t, program: path, dir: t.TempDir(), args: args, Port: FreePort(t)}
	s.Address = net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port))
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// FreePort returns a port that nobody listens on.
func FreePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// start starts the process and waits until it listens and has loaded its data.
func (s *Server) start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := []string{
		s.program, "--port", strconv.Itoa(s.Port), "--bind", "127.0.0.1", "--dir", s.dir,
		"--save", "", "--logfile", filepath.Join(s.dir, "log"),
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	s.process, err = guard.Start(ctx, self, guard.Spec{Args: append(args, s.args...), Env: os.Environ(), Dir: s.dir, Grace: grace})
	if err != nil {
		return err
	}
	// A server that is loading answers PING with an error, one with a password or
	// TLS with another; what it logs is the same with all.
	for ctx.Err() == nil {
		said, _ := os.ReadFile(filepath.Join(s.dir, "log"))
		if ready(said) {
			return os.Remove(filepath.Join(s.dir, "log"))
		}
		select {
		case <-s.process.Done():
			cancel()
		case <-time.After(5 * time.Millisecond):
		}
	}
	said, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	return fmt.Errorf("server did not start: %s", said)
}

// Stop ends the server. It is idempotent.
func (s *Server) Stop() error {
	if s.process == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	p := s.process
	s.process = nil
	return p.Stop(ctx)
}

// Restart breaks all connections by ending the server, and starts it again at the
// same port with what it had stored.
func (s *Server) Restart() error {
	if err := s.Stop(); err != nil {
		return err
	}
	return s.start()
}

// Stall makes the server stop reading until resume is called.
func (s *Server) Stall() (resume func(), err error) {
	pid := s.process.Pid()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return nil, err
	}
	return func() { _ = syscall.Kill(pid, syscall.SIGCONT) }, nil
}

// ready reports whether a server's log says that it takes connections.
func ready(log []byte) bool {
	return bytes.Contains(log, []byte("Ready to accept connections"))
}
