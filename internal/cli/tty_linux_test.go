package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/result"
)

// A tty is a pseudo-terminal with a program on it.
type tty struct {
	t      *testing.T
	master *os.File
	before unix.Termios
	cmd    *exec.Cmd
	out    *watch
	read   chan struct{} // closed when all has been read
}

// start runs weir on a terminal of this many columns.
func start(t *testing.T, cols uint16, environ []string, args ...string) *tty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		needs.Host(t, "ptmx", err)
	}
	fd := int(master.Fd())
	must.Do(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n := must.Get(unix.IoctlGetInt(fd, unix.TIOCGPTN))(t)
	slave := must.Get(os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0))(t)
	self := must.Get(os.Executable())(t)
	x := &tty{t: t, master: master, out: &watch{}, read: make(chan struct{})}
	x.resize(cols)
	x.before = x.termios()
	x.cmd = &exec.Cmd{
		Path: self, Args: append([]string{"weir"}, args...), Dir: t.TempDir(), Env: append(os.Environ(), environ...),
		Stdin: slave, Stdout: slave, Stderr: slave,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Setctty: true}, // so that Ctrl-C is a signal to it
	}
	must.Do(t, x.cmd.Start())
	go func() {
		defer close(x.read)
		_, _ = io.Copy(x.out, master) // ends with an error when the slave is closed everywhere
	}()
	t.Cleanup(func() { _ = master.Close() })
	_ = slave.Close()
	return x
}

func (x *tty) resize(cols uint16) {
	if err := unix.IoctlSetWinsize(int(x.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: cols}); err != nil {
		x.t.Fatal(err)
	}
}

func (x *tty) termios() unix.Termios {
	s, err := unix.IoctlGetTermios(int(x.master.Fd()), unix.TCGETS)
	if err != nil {
		x.t.Fatal(err)
	}
	return *s
}

// until waits for a text.
func (x *tty) until(text string) {
	x.t.Helper()
	x.untilIt(fmt.Sprintf("%q", text), func(out string) bool { return strings.Contains(out, text) })
}

// untilIt waits for what is written to be so, two minutes at most.
func (x *tty) untilIt(what string, so func(out string) bool) {
	x.t.Helper()
	for range 6000 {
		if so(x.out.String()) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	x.t.Fatalf("%s did not come:\n%q", what, x.out)
}

// end waits for the program and returns its exit code and what it wrote.
func (x *tty) end() (code int, out string) {
	x.t.Helper()
	_ = x.cmd.Wait()
	if after := x.termios(); cmp.Diff(x.before, after) != "" {
		x.t.Errorf("the terminal was left with other settings: %s", cmp.Diff(x.before, after))
	}
	_ = x.master.SetReadDeadline(time.Now().Add(time.Minute))
	<-x.read
	return x.cmd.ProcessState.ExitCode(), x.out.String()
}

var sequence = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")

// Runs weir on a pseudo-terminal that becomes narrower.
func TestTheViewOnATerminal(t *testing.T) {
	t.Parallel()
	x := start(t, 80, []string{"TERM=xterm"}, "run", "--driver", "chan", "--warmup", "1s", "--measure", "5m", "--out", "r")
	x.until("lateness")
	x.resize(40)
	at := len(x.out.String())
	// The run is ended when all has been seen, however long a busy host takes.
	x.untilIt("the narrow view", func(out string) bool {
		return strings.Contains(out[at:], "measuring, ") && strings.Count(out[at:], "\x1b[J") >= 4
	})
	narrow := x.out.String()[at:]
	must.Do(t, x.cmd.Process.Signal(os.Interrupt))
	code, out := x.end()
	if code != int(Interrupted) {
		t.Fatalf("exit code %d; want 130\n%s", code, out)
	}
	for _, want := range []string{"warming up, 1 s left", "measuring, ", "draining", "offered", "confirmed", "delivered", "backlog"} {
		if !strings.Contains(out, want) {
			t.Errorf("the view does not say %q:\n%q", want, out)
		}
	}
	view, table, ok := cutLast(out, "\x1b[J")
	if !ok || !strings.Contains(table, "written to") {
		t.Errorf("the block is not taken away before the table:\n%q", out)
	}
	kinds := map[string]bool{}
	for _, s := range sequence.FindAllString(view, -1) {
		kinds[s[len(s)-1:]] = true
	}
	golden.Equal(t, map[string]bool{"A": true, "J": true, "K": true, "m": true}, kinds, "kinds of control sequences")
	for _, f := range strings.Split(narrow, "\x1b[J")[2:] { // the one under way then may still be wide
		for line := range strings.SplitSeq(f, "\r\n") {
			if plain := strings.ReplaceAll(sequence.ReplaceAllString(line, ""), "\r", ""); utf8.RuneCountInString(plain) > 39 {
				t.Errorf("%q is too wide for 40 columns", plain)
			}
		}
	}
}

func oneLine(s string) string {
	return strings.Join(strings.Fields(sequence.ReplaceAllString(s, "")), " ")
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

func TestCtrlCRestoresTerminal(t *testing.T) {
	t.Parallel()
	x := start(t, 80, []string{"TERM=xterm"}, "run", "--driver", "chan", "--warmup", "0s", "--measure", "60s", "--out", "r")
	x.until("lateness")
	must.Get(x.master.Write([]byte{3}))(t)
	code, out := x.end()
	if code != int(Interrupted) {
		t.Errorf("exit code %d; want 130\n%s", code, out)
	}
	// Where the line breaks follows from what a busy host adds to it.
	if _, table, _ := cutLast(out, "\x1b[J"); !strings.Contains(oneLine(table), "interrupted: the figures") || !strings.HasSuffix(out, "\n") {
		t.Errorf("the table does not follow the block:\n%q", out)
	}
	if _, err := result.Read(filepath.Join(x.cmd.Dir, "r")); err != nil {
		t.Error(err)
	}
}

func TestDumbTerminalsGetPlainLines(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ env, flag string }{
		"a dumb one":              {"TERM=dumb", "--quiet=false"},
		"NO_COLOR":                {"NO_COLOR=1", "--quiet=false"},
		"WEIR_NO_COLOR":           {"WEIR_NO_COLOR=yes", "--quiet=false"},
		"--no-color":              {"TERM=xterm", "--no-color"},
		"--quiet, which has none": {"NO_COLOR=1", "--quiet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := start(t, 80, []string{"TERM=xterm", tt.env}, "run", "--driver", "chan", "--warmup", "0s", "--measure", "3s", "--out", "r", tt.flag)
			_, out := x.end()
			if i := bytes.IndexByte([]byte(out), 0x1b); i >= 0 {
				t.Errorf("a control sequence: %q", out[i:min(len(out), i+40)])
			}
			if got, want := regexp.MustCompile(`(measuring, |draining).*; confirmed `).MatchString(out), tt.flag != "--quiet"; got != want {
				t.Errorf("plain lines = %v; want %v:\n%s", got, want, out)
			}
		})
	}
}
