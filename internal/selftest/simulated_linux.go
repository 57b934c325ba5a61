package selftest

import (
	"container/heap"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weirmq/weir/internal/disturb"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/stamp"
)

// Frames of the protocol of the driver exec: docs/examples/exec/README.md.
const (
	frameHello    = 1
	frameAsk      = 2
	frameAnswer   = 3
	framePublish  = 4
	frameComplete = 5
	frameRun      = 6
	frameReady    = 7
	frameDeliver  = 8
	frameEnd      = 13
	mostFrame     = 1 << 20 // bytes of a frame, which are those of a few hundred messages
	sendBuffer    = 8 << 20 // bytes that a client that stands still leaves unread
)

// A process is a simulated system in a process of its own, to which weir speaks by the driver exec. It
// is one thread that waits for the next departure or the next message, whichever comes first, with
// real-time priority where the host allows it.
type process struct {
	clock   *pace.Clock
	system  simulated
	began   string // file to create at the first message
	control *stream
	senders []*stream // producers and consumers
	sink    *stream   // the consumer that has subscribed
	inside  departures
	last    int64 // planned departure of the latest message, with one server
	visits  []Visit
	number  uint32
	out     []byte
}

// A stream is a connection with the bytes of an incomplete frame.
type stream struct {
	fd     int
	in     []byte
	closed bool
}

// A departing is a message inside.
type departing struct {
	planned int64
	visit   int // index in visits
	slot    uint32
	from    *stream
	payload []byte
}

type departures []departing

func (d departures) Len() int           { return len(d) }
func (d departures) Less(i, j int) bool { return d[i].planned < d[j].planned }
func (d departures) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *departures) Push(x any)        { *d = append(*d, x.(departing)) }
func (d *departures) Pop() any {
	last := len(*d) - 1
	x := (*d)[last]
	*d = (*d)[:last]
	return x
}

// SystemMain is the main function of a simulated system: its name, the folder for its record, and the
// control group that it moves to or "". It returns when weir closes the control connection.
func SystemMain(args []string) error {
	if len(args) != 3 {
		return errors.New("internal simulated: wants the name of a system, a folder and a control group")
	}
	if err := disturb.Join(args[2]); err != nil {
		return err
	}
	system, ok := simulatedBy(args[0])
	if !ok {
		return fmt.Errorf("internal simulated: no system %q", args[0])
	}
	debug.SetGCPercent(-1) // it lives for seconds
	clock := pace.NewClock()
	runtime.LockOSThread()
	precede()
	p := &process{clock: clock, system: system, began: beganFile(args[1]), visits: make([]Visit, 0, system.messages())}
	var err error
	if p.control, err = dial("protocol", "1", "name", "simulated", "client", "weir", "order", "none", "can", "consumers", "can", "settle-none"); err != nil {
		return err
	}
	if err := p.serve(); err != nil {
		return err
	}
	text, err := json.Marshal(p.visits)
	if err != nil {
		return err
	}
	return os.WriteFile(recordFile(args[1]), text, 0o600)
}

// precede gives all threads of this process real-time priority where the host allows it. The system's own
// thread is not enough: a thread of Go's scheduler that lost its core may hold what that one needs.
func precede() {
	const priority = 20
	threads, _ := filepath.Glob("/proc/self/task/*")
	for _, t := range threads {
		tid, _ := strconv.Atoi(filepath.Base(t))
		_ = unix.SchedSetAttr(tid, &unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: priority}, 0) // threads that they start inherit it
	}
}

// dial connects to weir and says hello.
func dial(fields ...string) (*stream, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("making a socket: %w", err)
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, sendBuffer) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, sendBuffer)
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: os.Getenv("WEIR_SOCKET")}); err != nil {
		return nil, fmt.Errorf("connecting to weir: %w", err)
	}
	s := &stream{fd: fd}
	return s, s.write(frame(nil, frameHello, fieldsOf(nil, fields...)))
}

func (s *stream) write(b []byte) error {
	for len(b) > 0 {
		n, err := unix.Write(s.fd, b)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("writing to weir: %w", err)
		default:
			b = b[n:]
		}
	}
	return nil
}

// frame appends a frame.
func frame(b []byte, kind byte, body []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(1+len(body)))
	return append(append(b, kind), body...)
}

// fieldsOf appends names and values in turns.
func fieldsOf(b []byte, fields ...string) []byte {
	for i := 0; i+1 < len(fields); i += 2 {
		b = binary.BigEndian.AppendUint16(b, uint16(len(fields[i])))
		b = append(b, fields[i]...)
		b = binary.BigEndian.AppendUint32(b, uint32(len(fields[i+1])))
		b = append(b, fields[i+1]...)
	}
	return b
}

// serve runs the system until weir closes the control connection.
func (p *process) serve() error {
	var fds []unix.PollFd
	for !p.control.closed {
		fds = append(fds[:0], unix.PollFd{Fd: int32(p.control.fd), Events: unix.POLLIN})
		for _, s := range p.senders {
			if !s.closed {
				fds = append(fds, unix.PollFd{Fd: int32(s.fd), Events: unix.POLLIN})
			}
		}
		wait := unix.NsecToTimespec(int64(time.Second))
		if len(p.inside) > 0 {
			wait = unix.NsecToTimespec(max(0, p.inside[0].planned-p.clock.Now()))
		}
		if _, err := unix.Ppoll(fds, &wait, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("waiting for messages: %w", err)
		}
		for _, fd := range fds {
			if fd.Revents != 0 {
				if err := p.read(p.of(fd.Fd)); err != nil {
					return err
				}
			}
		}
		if err := p.depart(); err != nil {
			return err
		}
	}
	return nil
}

func (p *process) of(fd int32) *stream {
	for _, s := range p.senders {
		if !s.closed && int32(s.fd) == fd {
			return s
		}
	}
	return p.control
}

// read reads what has arrived on a connection and handles its whole frames.
func (p *process) read(s *stream) error {
	const most = 256 << 10
	have := len(s.in)
	s.in = append(s.in, make([]byte, most)...)
	n, err := unix.Read(s.fd, s.in[have:])
	s.in = s.in[:have+max(0, n)]
	switch {
	case errors.Is(err, unix.EINTR):
		return nil
	case n <= 0:
		s.closed = true
		return unix.Close(s.fd)
	}
	arrival := p.clock.Now()
	rest := s.in
	for len(rest) >= 5 {
		size := int(binary.BigEndian.Uint32(rest))
		if size < 1 || size > mostFrame {
			return fmt.Errorf("a frame of %d bytes", size)
		}
		if len(rest) < 4+size {
			break
		}
		if err := p.handle(s, rest[4], rest[5:4+size], arrival); err != nil {
			return err
		}
		rest = rest[4+size:]
	}
	s.in = append(s.in[:0], rest...)
	return nil
}

func (p *process) handle(s *stream, kind byte, body []byte, arrival int64) error {
	switch kind {
	case frameAsk:
		return p.answer(body)
	case framePublish:
		return p.take(s, body, arrival)
	case frameRun:
		p.sink = s
		return s.write(frame(nil, frameReady, nil))
	case frameEnd:
		s.closed = true
		return unix.Close(s.fd)
	}
	return nil
}

// answer answers a request of weir's.
func (p *process) answer(body []byte) error {
	asked := map[string]string{}
	c := reader{b: body}
	number := c.bytes(4)
	for len(c.b) > 0 {
		name := string(c.bytes(int(c.number(2))))
		asked[name] = string(c.bytes(int(c.number(4))))
	}
	said := append([]byte(nil), number...)
	switch asked["ask"] {
	case "facts":
		said = fieldsOf(said, "name", "simulated "+p.system.name, "version", "1", "guarantee", "received", "copies", "1", "stable", "none")
	case "backlog":
		said = fieldsOf(said, "count", "0")
	case "producer", "consumer":
		s, err := dial("channel", asked["channel"])
		if err != nil {
			return err
		}
		p.senders = append(p.senders, s)
	}
	return p.control.write(frame(nil, frameAnswer, said))
}

// take plans when each message of a frame departs.
func (p *process) take(s *stream, body []byte, arrival int64) error {
	if len(p.visits) == 0 {
		if err := os.WriteFile(p.began, nil, 0o600); err != nil {
			return err
		}
	}
	c := reader{b: body}
	for range c.number(4) {
		slot := uint32(c.number(4))
		c.bytes(3) // destination; flags: no key
		payload := c.bytes(int(c.number(4)))
		run, _ := stamp.RunOf(payload)
		var st stamp.Stamp
		if stamp.Read(payload, run, &st) != stamp.Good || len(p.visits) == p.system.messages() {
			return fmt.Errorf("message %d is not one of this run", len(p.visits))
		}
		begin := arrival
		if p.system.oneServer {
			begin = max(begin, p.last)
		}
		p.last = begin + p.system.service(st.Seq)
		p.visits = append(p.visits, Visit{Seq: st.Seq, Due: st.Due, Arrival: arrival, Planned: p.last})
		heap.Push(&p.inside, departing{planned: p.last, visit: len(p.visits) - 1, slot: slot, from: s, payload: append([]byte(nil), payload...)})
	}
	return nil
}

// depart confirms and delivers the messages whose time has come.
func (p *process) depart() error {
	for len(p.inside) > 0 {
		now := p.clock.Now()
		if now < p.inside[0].planned {
			return nil
		}
		d := heap.Pop(&p.inside).(departing)
		p.visits[d.visit].Replied = now
		if !d.from.closed {
			b := binary.BigEndian.AppendUint32(nil, d.slot)
			if err := d.from.write(frame(p.out[:0], frameComplete, append(b, make([]byte, 9)...))); err != nil {
				return err
			}
		}
		if p.sink == nil || p.sink.closed {
			continue
		}
		p.number++
		b := binary.BigEndian.AppendUint32(nil, p.number)
		b = append(b, 255, 255, 255, 255, 0, 0, 0) // no partition, destination 0, no flags
		b = binary.BigEndian.AppendUint32(b, uint32(len(d.payload)))
		if err := p.sink.write(frame(p.out[:0], frameDeliver, append(b, d.payload...))); err != nil {
			return err
		}
	}
	return nil
}

// A reader reads the parts of a body; of one that is cut off it reads zeros.
type reader struct{ b []byte }

func (r *reader) bytes(n int) []byte {
	if n > len(r.b) {
		r.b = nil
		return make([]byte, min(n, mostFrame))
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) number(size int) (n uint64) {
	for _, b := range r.bytes(size) {
		n = n<<8 | uint64(b)
	}
	return n
}
