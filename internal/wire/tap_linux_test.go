package wire

import (
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

func open(t *testing.T) *tap {
	t.Helper()
	p, err := openTap()
	if err != nil {
		needs.Host(t, "ebpf", err)
	}
	t.Cleanup(func() { _ = p.close() })
	return p
}

// echoed returns a connection to a listener in this process that sends back what it gets.
func echoed(t *testing.T, network, address string) net.Conn {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		needs.Host(t, "ipv6", err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}
	}()
	c := must.Get(net.Dial(network, l.Addr().String()))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// round sends b and reads it back.
func round(t *testing.T, c net.Conn, b []byte) {
	t.Helper()
	must.Get(c.Write(b))(t)
	must.Get(io.ReadFull(c, make([]byte, len(b))))(t)
}

// TestSegmentsAreRecordedWhole sends payloads of all classes.
func TestSegmentsAreRecordedWhole(t *testing.T) {
	for _, x := range []struct{ network, address string }{{"tcp4", "127.0.0.1:0"}, {"tcp6", "[::1]:0"}} {
		t.Run(x.network, func(t *testing.T) {
			p := open(t)
			c := echoed(t, x.network, x.address)
			round(t, c, []byte{1}) // the other end is accepted
			if n := p.scan(); n < 2 {
				t.Fatalf("%d sockets are known, want both ends", n)
			}
			must.Do(t, p.enable(true))
			for _, size := range []int{1, 200, 2000, 10_000, 100_000} {
				b := make([]byte, size)
				for i := range b {
					b[i] = byte(i * size)
				}
				round(t, c, b)
				var last int64
				got, next := map[direction][]byte{}, map[direction]uint32{}
				if err := p.read(func(s *segment) {
					if len(s.payload) != int(s.length) {
						t.Errorf("%d of %d bytes are recorded", len(s.payload), s.length)
					}
					last = max(last, s.at)
					d := direction{s.conn, s.out}
					end := s.seq + s.length
					n, ok := next[d]
					if !ok {
						n = s.seq
					}
					again := min(max(0, int32(n-s.seq)), int32(s.length)) // what a busy host acknowledged too late was sent again
					next[d] = later(n, end)
					got[d] = append(got[d], s.payload[again:]...)
				}); err != nil {
					t.Fatal(err)
				}
				if len(got) != 4 {
					t.Errorf("%d bytes: seen in %d directions, want both of both ends", size, len(got))
				}
				for d, data := range got {
					if !slices.Equal(data, b) {
						t.Errorf("%d bytes: %v has %d others", size, d, len(data))
					}
				}
			}
			must.Do(t, p.enable(false))
			round(t, c, []byte("not recorded"))
			must.Do(t, p.read(func(s *segment) { t.Errorf("recorded while off: %d bytes", s.length) }))
		})
	}
}

// TestFullRingEndsRecording: what is recorded has no hole.
func TestFullRingEndsRecording(t *testing.T) {
	p := open(t)
	c := echoed(t, "tcp", "127.0.0.1:0")
	round(t, c, []byte{1})
	p.scan()
	must.Do(t, p.enable(true))
	b := make([]byte, 20_000)
	for sent := 0; p.lost() == 0 && sent < 4*ringBytes; sent += len(b) {
		round(t, c, b)
	}
	if p.lost() == 0 {
		t.Fatal("nothing is lost")
	}
	lost := p.lost()
	next := map[direction]uint32{}
	must.Do(t, p.read(func(s *segment) {
		d := direction{s.conn, s.out}
		n, ok := next[d]
		if ok && int32(s.seq-n) > 0 {
			t.Errorf("a hole of %d bytes", s.seq-n)
		} else if !ok {
			n = s.seq
		}
		next[d] = later(n, s.seq+s.length)
	}))
	round(t, c, b)
	if p.lost() != lost {
		t.Error("recording continued")
	}
}

// TestOnlyKnownSocketsAreRecorded: other processes of the control group have the programs, too.
func TestOnlyKnownSocketsAreRecorded(t *testing.T) {
	p := open(t)
	must.Do(t, p.enable(true))
	p.scan()
	c := echoed(t, "tcp", "127.0.0.1:0")
	round(t, c, []byte("new"))
	must.Do(t, p.read(func(s *segment) { t.Errorf("recorded: %q", s.payload) }))
}

// TestRecorderSplitsRoundTrips uses a server that waits: only the middle is long.
func TestRecorderSplitsRoundTrips(t *testing.T) {
	needs.Time(t)
	const wait = 20 * time.Millisecond
	r, err := Open(nil)
	if err != nil {
		needs.Host(t, "ebpf", err)
	}
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer func() { _ = l.Close() }()
	go func() {
		c, err := l.Accept()
		b := make([]byte, 100)
		for err == nil {
			if _, err = io.ReadFull(c, b); err == nil {
				time.Sleep(wait)
				_, err = c.Write([]byte("ok"))
			}
		}
	}()
	c := must.Get(net.Dial("tcp", l.Addr().String()))(t)
	defer func() { _ = c.Close() }()
	epoch := monotonic()
	now := func() int64 { return monotonic() - epoch }
	r.Start(Config{Run: testRun, EpochNS: epoch, Now: now, To: never, Share: 1})
	sampled := 0
	for seq := uint64(0); seq < 1000 && sampled < 20; seq++ {
		m := Message{Stream: 1, Seq: seq, Bytes: 100, Start: now()}
		m.Due = m.Start
		is := r.Handed(m.Start)
		must.Get(c.Write(payload(1, seq, 100)))(t)
		must.Get(io.ReadFull(c, make([]byte, 2)))(t)
		if m.End = now(); is {
			sampled++
			r.Confirmed(&m)
		}
	}
	report := r.Stop()
	p := &report.Send
	if p.Exact < uint64(sampled)/2 || p.Sampled() > uint64(sampled) {
		t.Fatalf("%d messages are sampled: %+v", sampled, p)
	}
	if p.System.Min() < int64(wait) {
		t.Errorf("wire and system took %v, want %v at least", time.Duration(p.System.Min()), wait)
	}
	if ends := time.Duration(p.HostOut.At(p.Exact/2) + p.HostIn.At(p.Exact/2)); ends > wait {
		t.Errorf("half of the messages spent %v in this host", ends)
	}
}

// monotonic reads CLOCK_MONOTONIC.
func monotonic() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}
