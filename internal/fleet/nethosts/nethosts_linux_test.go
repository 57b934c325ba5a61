package nethosts_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/fleet/nethosts"
)

// TestMain makes the test binary a server, and a client of it, for the hosts.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 {
		var err error
		switch os.Args[1] {
		case "serve":
			err = serve(os.Args[2])
		case "ask":
			err = ask(os.Args[2])
		default:
			os.Exit(m.Run())
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func serve(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Println("listening")
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		_, _ = io.WriteString(c, "hello")
		_ = c.Close()
	}
}

func ask(address string) error {
	c, err := net.DialTimeout("tcp", address, 5*time.Second) // a crowded host, or a cut cable
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	_, err = io.Copy(os.Stdout, c)
	return err
}

// TestHostsReachEachOther has a server on one and clients on others: they reach it over the
// cable, and not where it is pulled, and nobody else does.
func TestHostsReachEachOther(t *testing.T) {
	h := nethosts.New(t, "a", "b", "c")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort(h.Addr("a"), "7000")
	server := exec.Command(self, "serve", address)
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start("a", server); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
	if _, err := io.ReadFull(out, make([]byte, len("listening\n"))); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{"b", "c", "a"} {
		if got, err := h.Run(from, self, "ask", address); got != "hello" || err != nil {
			t.Errorf("from %s: %q, %v", from, got, err)
		}
	}
	h.Cut("b")
	if got, err := h.Run("b", self, "ask", address); err == nil {
		t.Errorf("from b, cut off: %q", got)
	}
	if got, err := h.Run("c", self, "ask", address); err != nil {
		t.Errorf("from c, while b is cut off: %q, %v", got, err)
	}
	h.Mend("b")
	// A neighbour that was not found is looked for again within a second.
	for deadline := time.Now().Add(30 * time.Second); ; {
		got, err := h.Run("b", self, "ask", address)
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("from b, mended: %q, %v", got, err)
		}
	}
	if c, err := net.DialTimeout("tcp", address, 300*time.Millisecond); err == nil {
		// Somebody else's network may have that address too.
		_ = c.SetDeadline(time.Now().Add(300 * time.Millisecond))
		if got, _ := io.ReadAll(c); string(got) == "hello" {
			t.Error("the server is reached from outside")
		}
		_ = c.Close()
	}
}

// TestHostsLeaveACommandToWhoStartedIt: the thread that stays with it does not
// take its exit code.
func TestHostsLeaveACommandToWhoStartedIt(t *testing.T) {
	h := nethosts.New(t, "a")
	cmd := exec.Command("sh", "-c", "exit 7")
	if err := h.Start("a", cmd); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("it ended with %v; want 7", err)
	}
	if err := h.Start("a", exec.Command("/nowhere")); err == nil {
		t.Error("a program that is not there was started")
	}
	var b bytes.Buffer
	cmd = exec.Command("ip", "-o", "addr")
	cmd.Stdout = &b
	if err := h.Start("a", cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || strings.Count(b.String(), "inet 10.77.0.1/24") != 1 || !strings.Contains(b.String(), "inet 127.0.0.1/8") {
		t.Errorf("its addresses: %v\n%s", err, &b)
	}
}
