package nsq

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/broker"
)

// startLimit bounds each start and stop of a server.
const startLimit = 20 * time.Second

// A server is an nsqd or an nsqlookupd.
type server struct {
	tcp, http string // host:port

	t    testing.TB
	args []string
	cmd  *exec.Cmd
	said *bytes.Buffer
}

// pair returns two free ports that follow one another.
func pair(t testing.TB) (first, second string) {
	t.Helper()
	for range 100 {
		a, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := a.Addr().(*net.TCPAddr).Port
		b, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port+1))
		a.Close()
		if err == nil {
			b.Close()
			return a.Addr().String(), b.Addr().String()
		}
	}
	t.Fatal("no two free ports that follow one another")
	return "", ""
}

// startServer starts a program with two ports, for the length of the test.
func startServer(t testing.TB, name string, args ...string) *server {
	t.Helper()
	s := &server{t: t}
	s.tcp, s.http = pair(t)
	s.args = append([]string{program(t, name), "-tcp-address=" + s.tcp, "-http-address=" + s.http, "-broadcast-address=127.0.0.1"}, args...)
	if name == "nsqd" {
		s.args = append(s.args, "-data-path="+t.TempDir())
	}
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.stop(syscall.SIGKILL) })
	return s
}

func (s *server) start() error {
	s.said = &bytes.Buffer{}
	s.cmd = exec.Command(s.args[0], s.args[1:]...)
	s.cmd.Stderr = s.said
	if err := s.cmd.Start(); err != nil {
		return err
	}
	for end := time.Now().Add(startLimit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		r, err := http.Get("http://" + s.http + "/ping")
		if err == nil {
			r.Body.Close()
			http.DefaultClient.CloseIdleConnections()
			return nil
		}
	}
	s.stop(syscall.SIGKILL)
	return fmt.Errorf("%s did not start: %s", s.args[0], s.said)
}

func (s *server) stop(sig syscall.Signal) {
	_ = s.cmd.Process.Signal(sig)
	_ = s.cmd.Process.Signal(syscall.SIGCONT)
	_ = s.cmd.Wait()
}

// stall makes the server stop until resume is called.
func (s *server) stall() (resume func(), err error) {
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return nil, err
	}
	time.Sleep(20 * time.Millisecond) // the signal is on its way
	return func() { _ = s.cmd.Process.Signal(syscall.SIGCONT) }, nil
}

// program returns where a program of the recipe is, and installs it where it is
// not there yet.
func program(t testing.TB, name string) string {
	t.Helper()
	r, err := broker.RecipeOf(Definition(), "")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := broker.CacheDir(os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	in, err := broker.Ensure(t.Context(), broker.Installing{Self: self, Driver: "nsq", Recipe: r, Cache: cache})
	if ci, _ := strconv.ParseBool(os.Getenv("CI")); errors.Is(err, broker.ErrMissing) && !ci {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return in.Programs[name]
}

// open connects with options.
func open(t testing.TB, run driver.Run, options map[string][]string) driver.Conn {
	t.Helper()
	c, err := tryOpen(t, run, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func tryOpen(t testing.TB, run driver.Run, options map[string][]string) (driver.Conn, error) {
	t.Helper()
	cfg := Definition().New()
	for k, v := range options {
		if err := driver.SetOption(cfg, k, v...); err != nil {
			t.Fatal(err)
		}
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	return cfg.Open(ctx, run)
}
