package netpartition

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/guard"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

// role is the environment variable that selects what a test process does.
const role = "WEIR_TEST_NODECUT"

func TestMain(m *testing.M) {
	if code, handled := guard.Main(os.Args); handled {
		os.Exit(code)
	}
	switch {
	case len(os.Args) == 4 && os.Args[1] == "internal" && os.Args[2] == "cut":
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM) // as weir does
		defer stop()
		_ = Main(ctx, os.Args[3:], os.Stdout)
		os.Exit(0)
	case os.Getenv(role) == "actor":
		act()
		os.Exit(0)
	case os.Getenv(role) == "holder":
		hold()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// silence is how long an actor waits for an answer.
const silence = 400 * time.Millisecond

// act listens, and executes the lines of stdin: it dials, sends a request over that connection, or
// sends a datagram. It echoes everything it receives.
func act() {
	l, err := net.Listen("tcp", os.Getenv("WEIR_TEST_AT"))
	if err != nil {
		fmt.Println(err)
		return
	}
	u, err := net.ListenPacket("udp", l.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c) }()
		}
	}()
	go func() {
		b := make([]byte, 8)
		for {
			n, from, err := u.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = u.WriteTo(b[:n], from)
		}
	}()
	fmt.Println(l.Addr())
	talks := map[string]net.Conn{}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		what, to, _ := strings.Cut(in.Text(), " ")
		var err error
		switch what {
		case "dial":
			var c net.Conn
			if c, err = net.DialTimeout("tcp", to, silence); err == nil {
				talks[to] = c
				err = ask(c)
			}
		case "ask":
			err = ask(talks[to])
		case "datagram":
			var c net.Conn
			if c, err = net.Dial("udp", to); err == nil {
				err = ask(c)
			}
		}
		timeout := net.Error(nil)
		switch {
		case err == nil:
			fmt.Println("yes")
		case errors.As(err, &timeout) && timeout.Timeout():
			fmt.Println("silence")
		default:
			fmt.Println(err)
		}
	}
}

// ask sends a byte and reads the reply.
func ask(c net.Conn) error {
	_ = c.SetDeadline(time.Now().Add(silence))
	if _, err := c.Write([]byte{7}); err != nil {
		return err
	}
	_, err := c.Read(make([]byte, 1))
	return err
}

// An actor is a process that runs act.
type actor struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
	at  string
}

// newActor starts an actor in the group of a node; 0: the shared group, -1: this process's group.
func newActor(t *testing.T, path string, node int, at string) *actor {
	t.Helper()
	self := must.Get(os.Executable())(t)
	a := &actor{t: t, cmd: exec.Command(self)}
	a.cmd.Env = append(os.Environ(), role+"=actor", "WEIR_TEST_AT="+at)
	if node >= 0 {
		g := must.Get(Open(path, node))(t)
		defer func() { _ = g.Close() }()
		a.cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(g.Fd())}
	}
	a.in = must.Get(a.cmd.StdinPipe())(t)
	out := must.Get(a.cmd.StdoutPipe())(t)
	must.Do(t, a.cmd.Start())
	t.Cleanup(func() {
		_ = a.cmd.Process.Kill()
		_ = a.cmd.Wait()
	})
	a.out = bufio.NewReader(out)
	a.at = a.says()
	return a
}

func (a *actor) says() string {
	line, err := a.out.ReadString('\n')
	if err != nil {
		a.t.Fatalf("an actor said %q: %v", line, err)
	}
	return strings.TrimSpace(line)
}

// does makes the actor act on another one, and returns the outcome.
func (a *actor) does(what string, other *actor) string {
	_, _ = fmt.Fprintln(a.in, what, other.at)
	return a.says()
}

// groups creates groups for nodes, and removes them after the test. It skips the test if this machine
// does not permit them.
func groups(t *testing.T, nodes int) string {
	t.Helper()
	able(t)
	path := must.Get(Path(filepath.Base(t.TempDir()) + fmt.Sprint("-weir-test-", os.Getpid(), "-", time.Now().UnixNano())))(t)
	must.Do(t, Make(path, nodes))
	t.Cleanup(func() {
		for n := range nodes + 1 {
			if err := syscall.Rmdir(folder(path, n)); err != nil {
				t.Error(err)
			}
		}
		must.Do(t, syscall.Rmdir(path))
	})
	return path
}

func able(t *testing.T) {
	t.Helper()
	needs.Time(t)
	needs.NoRace(t)
	self := must.Get(os.Executable())(t)
	if err := Check(t.Context(), self); err != nil {
		needs.Host(t, "cuts", err)
	}
}

func TestPartitionDropsOnlyPacketsBetweenNodes(t *testing.T) {
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			path := groups(t, 3)
			c := must.Get(New(path, 3))(t)
			defer func() { _ = c.Close() }()
			names := []string{"client", "1", "2", "3", "shared"}
			all := map[string]*actor{}
			for i, n := range []int{-1, 1, 2, 3, 0} {
				all[names[i]] = newActor(t, path, n, at)
			}
			part := func(pairs ...[2]int) {
				t.Helper()
				must.Do(t, c.Part(pairs))
			}
			// looks makes each actor ask every other one, and itself, and returns which get no answer.
			looks := func(what string) (silent []string) {
				t.Helper()
				for _, a := range names {
					for _, b := range names {
						switch said := all[a].does(what, all[b]); said {
						case "yes":
						case "silence":
							silent = append(silent, a+">"+b)
						default:
							t.Errorf("%s %s %s: %s", a, what, b, said)
						}
					}
				}
				return silent
			}
			want := func(what string, pairs ...string) {
				t.Helper()
				var want []string
				for _, p := range pairs {
					a, b, _ := strings.Cut(p, " ")
					want = append(want, a+">"+b, b+">"+a)
				}
				got := looks(what)
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Errorf("%s: %v are silent; want %v", what, got, want)
				}
			}
			want("dial")
			want("datagram")
			part([2]int{2, 1}, [2]int{2, 3})
			want("ask", "2 1", "2 3")
			want("datagram", "2 1", "2 3")
			part([2]int{0, 2})
			time.Sleep(3 * time.Second) // connections retry less and less often
			want("datagram", "client 2")
			part([2]int{0, 1}, [2]int{1, 2}, [2]int{1, 3})
			want("datagram", "client 1", "1 2", "1 3")
			want("dial", "client 1", "1 2", "1 3")
			part()
			want("dial")
			part([2]int{0, 1})
			want("ask", "client 1")
			part()
			want("dial")
			want("ask")
		})
	}
}

// TestPartitionSilencesClosedPorts: the kernel would answer for a process that is gone.
func TestPartitionSilencesClosedPorts(t *testing.T) {
	path := groups(t, 2)
	c := must.Get(New(path, 2))(t)
	defer func() { _ = c.Close() }()
	a, b := newActor(t, path, 1, "127.0.0.1:0"), newActor(t, path, 2, "127.0.0.1:0")
	if said := a.does("dial", b); said != "yes" {
		t.Fatal(said)
	}
	must.Do(t, c.Part([][2]int{{1, 2}}))
	_ = b.cmd.Process.Kill()
	_ = b.cmd.Wait()
	if said := a.does("ask", b); said != "silence" {
		t.Errorf("over a connection: %s", said)
	}
	if said := a.does("dial", b); said != "silence" {
		t.Errorf("a new connection: %s", said)
	}
	must.Do(t, c.Part(nil))
	if said := a.does("dial", b); !strings.Contains(said, "refused") {
		t.Errorf("without a cut: %s", said)
	}
}

// hold partitions node 1 from clients, reports it, and waits.
func hold() {
	c, err := New(os.Getenv("WEIR_TEST_GROUP"), 1)
	if err == nil {
		err = c.Part([][2]int{{0, 1}})
	}
	fmt.Println("held", err)
	select {}
}

// TestACutEndsWithItsProcess kills the process that holds the partition.
func TestACutEndsWithItsProcess(t *testing.T) {
	path := groups(t, 1)
	node, client := newActor(t, path, 1, "127.0.0.1:0"), newActor(t, path, -1, "127.0.0.1:0")
	self := must.Get(os.Executable())(t)
	holder := exec.Command(self)
	holder.Env = append(os.Environ(), role+"=holder", "WEIR_TEST_GROUP="+path)
	out := must.Get(holder.StdoutPipe())(t)
	must.Do(t, holder.Start())
	line, _ := bufio.NewReader(out).ReadString('\n')
	cut := client.does("dial", node)
	_ = holder.Process.Kill()
	_ = holder.Wait()
	if cut != "silence" {
		t.Errorf("%scut: %s", line, cut)
	}
	mended := ""
	for deadline := time.Now().Add(5 * time.Second); mended != "yes" && time.Now().Before(deadline); {
		mended = client.does("dial", node) // the kernel removes the programs a moment after their process
	}
	if mended != "yes" {
		t.Errorf("after SIGKILL of who cuts: %s", mended)
	}
}

func TestACheckLeavesNothing(t *testing.T) {
	able(t)
	own := must.Get(Path(""))(t)
	if left, _ := filepath.Glob(filepath.Join(own, "weir-cut-*")); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}
