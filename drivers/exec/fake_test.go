package exec

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// role makes the test binary act as a child. Its value lists the faults.
const role = "WEIR_EXEC_TEST_CHILD"

// A fake is a child that confirms all messages and delivers none.
type fake struct {
	faults  string
	control net.Conn
}

// playChild is the main function of a child.
func playChild(faults string) {
	f := &fake{faults: faults}
	if dir := os.Getenv(role + "_PIDS"); dir != "" {
		sleeper := osexec.Command("sleep", "300") // a descendant of the child
		if sleeper.Start() == nil {
			_ = os.WriteFile(filepath.Join(dir, "sleeper"), []byte(strconv.Itoa(sleeper.Process.Pid)), 0o600)
		}
		_ = os.WriteFile(filepath.Join(dir, "child"), []byte(strconv.Itoa(os.Getpid())), 0o600)
	}
	switch {
	case f.is("exits"):
		fmt.Fprintln(os.Stderr, "the broker's address is missing")
		os.Exit(3)
	case f.is("mute"):
		time.Sleep(5 * time.Minute)
	}
	version := protocol
	if f.is("future") {
		version = "2"
	}
	can := []string{"consumers", "settle-each", "settle-confirmed", "keys"}
	f.control = f.dial(fields{"protocol": {version}, "name": {"fake"}, "can": can, "order": {"key"}})
	in := newFrames(f.control)
	for {
		k, body, err := in.next()
		if err != nil {
			os.Exit(0)
		}
		c := cursor{b: body}
		n := c.number(4)
		f.serve(k, uint32(n), readFields(&c))
	}
}

func (f *fake) is(fault string) bool { return strings.Contains(f.faults, fault) }

// dial connects and sends hello.
func (f *fake) dial(says fields) net.Conn {
	conn, err := net.Dial("unix", os.Getenv("WEIR_SOCKET"))
	if err == nil {
		_, err = conn.Write(frame(hello, says.append(nil)...))
	}
	if err != nil {
		panic(err)
	}
	return conn
}

// serve answers one request.
func (f *fake) serve(_ kind, n uint32, asked fields) {
	got := fields{}
	what := asked.get("ask")
	if f.is("hangs at " + what) {
		return
	}
	switch what {
	case "facts":
		got = fields{"name": {"fake"}, "version": {"1"}, "guarantee": {"buffered"}, "copies": {"1"}, "stable": {"none"}}
		if f.is("says nonsense") {
			got["guarantee"] = []string{"absolute"}
		}
	case "producer", "consumer":
		if f.is("refuses") {
			got = fields{"error": {"auth"}, "text": {"the password is wrong"}}
			break
		}
		conn := f.dial(fields{"channel": asked["channel"]})
		if what == "producer" {
			go f.produce(conn)
		} else {
			go f.consume(conn)
		}
	}
	b := frame(answer, got.append(binary.BigEndian.AppendUint32(nil, n))...)
	if f.is("shouts at " + what) {
		b = []byte("HTTP/1.1 400 Bad Request\r\n\r\n")
	}
	_, _ = f.control.Write(b)
}

// produce confirms each message and reports a latency of 1 ms.
func (f *fake) produce(conn net.Conn) {
	in := newFrames(conn)
	for {
		k, body, err := in.next()
		if err != nil || k == end {
			_ = conn.Close()
			return
		}
		c := cursor{b: body}
		var out []byte
		for range c.number(4) {
			slot := uint32(c.number(4))
			c.take(2)
			if c.number(1)&hasKey != 0 {
				c.take(int(c.number(4)))
			}
			c.take(int(c.number(4)))
			if f.is("confirms another") {
				slot += 1000
			}
			out = binary.BigEndian.AppendUint32(out, slot)
			out = append(binary.BigEndian.AppendUint64(out, uint64(time.Millisecond)), 0)
		}
		switch {
		case f.is("dies"):
			os.Exit(7)
		case f.is("confirms nothing"):
		case f.is("confirms twice"):
			_, _ = conn.Write(append(frame(complete, out...), frame(complete, out...)...))
		default:
			_, _ = conn.Write(frame(complete, out...))
		}
	}
}

// consume reports ready, and delivers only invalid messages.
func (f *fake) consume(conn net.Conn) {
	in := newFrames(conn)
	for {
		k, _, err := in.next()
		switch {
		case err != nil || k == end:
			_ = conn.Close()
			return
		case k != run:
			continue
		}
		_, _ = conn.Write(frame(ready))
		switch {
		case f.is("is from elsewhere"):
			_, _ = conn.Write(frame(deliver, 0, 0, 0, 1, 255, 255, 255, 255, 0, 9, 0, 0, 0, 0, 1, 'p'))
		case f.is("settles what it was not given"):
			_, _ = conn.Write(frame(settled, 0, 0, 0, 9, 0))
		case f.is("loses"):
			_, _ = conn.Write(frame(lost, fields{"error": {"unsupported"}, "text": {"the group is gone"}}.append(nil)...))
		}
	}
}

// alive reports whether a process recorded by a child exists and is not a zombie.
func alive(t *testing.T, dir, name string) bool {
	t.Helper()
	pid, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return false // it was killed before it could record it
	}
	stat, err := os.ReadFile("/proc/" + string(pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z")
}
