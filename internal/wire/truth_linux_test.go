package wire

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

// role is the environment variable that selects what a test process does.
const role = "WEIR_TEST_WIRE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "server":
		serve()
	case "client":
		ask(os.Getenv("WEIR_TEST_AT"))
	default:
		os.Exit(m.Run())
	}
}

const truthSize = 100

// serve answers each message, one after the other.
func serve() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(l.Addr())
	c, err := l.Accept()
	b := make([]byte, truthSize)
	for err == nil {
		if _, err = io.ReadFull(c, b); err == nil {
			_, err = c.Write([]byte("ok"))
		}
	}
}

// ask prints the numbers of its programs, and sends messages, one at a time, until it is killed.
func ask(at string) {
	r, err := Open(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := net.Dial("tcp", at)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range r.tap.programs {
		if info, err := p.Info(); err == nil {
			id, _ := info.ID()
			fmt.Print(id, " ")
		}
	}
	fmt.Println()
	epoch := monotonic()
	now := func() int64 { return monotonic() - epoch }
	r.Start(Config{Run: testRun, EpochNS: epoch, Now: now, To: never, Share: 1})
	for seq := uint64(0); ; seq++ {
		m := Message{Stream: 1, Seq: seq, Bytes: truthSize, Start: now()}
		m.Due = m.Start
		is := r.Handed(m.Start)
		if _, err := c.Write(payload(1, seq, truthSize)); err != nil {
			return
		}
		if _, err := io.ReadFull(c, make([]byte, 2)); err != nil {
			return
		}
		if m.End = now(); is {
			r.Confirmed(&m)
		}
	}
}

// An actor is a test process in a role.
type actor struct {
	cmd   *exec.Cmd
	out   *bufio.Reader
	stdin io.Closer
}

// start starts one, and returns the first line that it prints.
func start(t *testing.T, as, at string) (*actor, string) {
	t.Helper()
	self := must.Get(os.Executable())(t)
	a := &actor{cmd: exec.Command(self)}
	a.cmd.Env = append(os.Environ(), role+"="+as, "WEIR_TEST_AT="+at)
	out, err1 := a.cmd.StdoutPipe()
	in, err2 := a.cmd.StdinPipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	a.out, a.stdin = bufio.NewReader(out), in
	must.Do(t, a.cmd.Start())
	t.Cleanup(func() {
		_ = a.cmd.Process.Kill()
		_ = a.cmd.Wait()
	})
	line := must.Get(a.out.ReadString('\n'))(t)
	return a, strings.TrimSpace(line)
}

// able skips t where the host does not allow kernel instants.
func able(t *testing.T) {
	t.Helper()
	if err := Check(); err != nil {
		needs.Host(t, "ebpf", err)
	}
}

// TestKilledClientLeavesNothing looks for its programs.
func TestKilledClientLeavesNothing(t *testing.T) {
	able(t)
	_, at := start(t, "server", "")
	client, said := start(t, "client", at)
	var ids [2]ebpf.ProgramID
	if n, err := fmt.Sscan(said, &ids[0], &ids[1]); n != 2 {
		t.Fatal(said, err)
	}
	there := func() (n int) {
		for _, id := range ids {
			if p, err := ebpf.NewProgramFromID(id); err == nil {
				_ = p.Close()
				n++
			}
		}
		return n
	}
	if there() != 2 {
		t.Error("the programs are not there while it lives")
	}
	_ = client.cmd.Process.Kill()
	_ = client.cmd.Wait()
	deadline := time.Now().Add(10 * time.Second)
	for there() > 0 {
		if time.Now().After(deadline) {
			t.Fatalf("%d programs are left", there())
		}
		time.Sleep(10 * time.Millisecond) // the kernel removes them a moment after their process
	}
}
