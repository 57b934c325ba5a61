// Package natstest gives the tests of the NATS drivers a server in its own process, which can be
// stalled, resumed and restarted. A test binary that uses it calls Main from its TestMain.
package natstest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/internal/guard"
	"github.com/weirmq/weir/internal/natsd"
)

// variable holds the options (JSON) of a test binary that acts as the server.
const variable = "WEIR_TEST_NATSD"

// quick makes processes built with the race detector exit without its 1 s pause.
const quick = "GORACE=atexit_sleep_ms=0"

// limit limits each start and stop.
const limit = time.Minute

// Main turns this process into a guard or a server if it was started as one; otherwise it returns
// at once.
func Main() {
	if code, ok := guard.Main(os.Args); ok {
		os.Exit(code)
	}
	text, ok := os.LookupEnv(variable)
	if !ok {
		return
	}
	var o natsd.Options
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		err = natsd.Run(ctx, o, func(address []string) { fmt.Println(strings.Join(address, ",")) }, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// A Server is a server, or a cluster, in its own process.
type Server struct {
	Address []string

	t       testing.TB
	options natsd.Options
	process *guard.Process
}

func Start(t testing.TB, o natsd.Options) *Server {
	t.Helper()
	s := &Server{t: t, options: o}
	s.options.Dir = t.TempDir()
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// start starts the process and waits for its ready line.
func (s *Server) start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := json.Marshal(s.options)
	if err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	s.process, err = guard.Start(ctx, self, guard.Spec{
		Args: []string{self}, Env: append(os.Environ(), variable+"="+string(text), quick), Dir: s.options.Dir, Stdout: w,
	})
	_ = w.Close()
	if err != nil {
		return err
	}
	// An exiting process closes the pipe; a hanging process is killed.
	hung := context.AfterFunc(ctx, func() { _ = s.stop() })
	defer hung()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		said, _ := os.ReadFile(filepath.Join(s.options.Dir, guard.StderrFile))
		return fmt.Errorf("server did not start: %w: %s", err, said)
	}
	s.Address = strings.Split(strings.TrimSpace(line), ",")
	return nil
}

func (s *Server) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return s.process.Stop(ctx)
}

// Restart breaks all connections by stopping the server, and starts it again at the same address
// with its stored data. It works for a single server only.
func (s *Server) Restart() error {
	u, err := url.Parse(s.Address[0])
	if err != nil {
		return err
	}
	if s.options.Port, err = strconv.Atoi(u.Port()); err != nil {
		return err
	}
	if err := s.stop(); err != nil {
		return err
	}
	return s.start()
}

// Stall stops the server from reading until resume is called.
func (s *Server) Stall() (resume func(), err error) { return served.Stall(s.process.Pid()) }
