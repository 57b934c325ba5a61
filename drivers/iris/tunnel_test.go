package iris

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// count returns the number of a consumer's messages.
func count(l *trial.Log) int {
	l.Lock()
	defer l.Unlock()
	return len(l.Got)
}

// consume runs a consumer of destination d, and waits until it is ready.
func consume(t *testing.T, c driver.Conn, index int, l *trial.Log) (stop func()) {
	t.Helper()
	return l.Consume(t, c, driver.ConsumerSpec{Index: index, Settle: driver.SettleNone})
}

// TestSlowConsumerStillAcceptsTunnels blocks a consumer for longer than the 3 s after which a node
// drops a connection that does not confirm a tunnel.
func TestSlowConsumerStillAcceptsTunnels(t *testing.T) {
	c := trial.Declared(t, Definition(), up(t).Options, "pattern", patternTunnel)
	hold := make(chan struct{})
	k := trial.NewLog()
	k.OnDeliver = func([]driver.Delivery) error { <-hold; return nil }
	consume(t, c, 0, k)
	p, fates := trial.Producer(t, c, "d")
	const n = 200
	if got := fates.Confirmed(t, p, n); got != n {
		t.Errorf("%d of %d confirmed, by a consumer that is held up", got, n)
	}
	release := time.AfterFunc(4*time.Second, func() { close(hold) })
	defer release.Stop()
	other, more := trial.Producer(t, c, "d")
	if got := more.Confirmed(t, other, n); got != n {
		t.Errorf("%d of %d confirmed by a second tunnel", got, n)
	}
	if left := trial.Backlog(t, c); left == 0 && count(k) < 2*n {
		t.Errorf("a backlog of 0, with %d of %d delivered", count(k), 2*n)
	}
	if !trial.Eventually(func() bool { return count(k) >= 2*n }) {
		t.Errorf("%d of %d delivered", count(k), 2*n)
	}
	if left := trial.Backlog(t, c); left != 0 {
		t.Errorf("a backlog of %d at the end", left)
	}
}

// TestMessagesMoveToRemainingConsumer makes the consumer with the tunnel leave, and sends at once.
func TestMessagesMoveToRemainingConsumer(t *testing.T) {
	c := trial.Declared(t, Definition(), up(t).Options, "pattern", patternTunnel)
	takers := []*trial.Log{trial.NewLog(), trial.NewLog()}
	var ends []func()
	for i, k := range takers {
		ends = append(ends, consume(t, c, i, k))
	}
	p, fates := trial.Producer(t, c, "d")
	const n = 100
	if got := fates.Confirmed(t, p, n); got != n {
		t.Fatalf("%d of %d confirmed", got, n)
	}
	with := 0
	if !trial.Eventually(func() bool {
		for i, k := range takers {
			if count(k) > 0 {
				with = i
			}
		}
		return count(takers[with]) == n
	}) {
		t.Fatalf("one consumer has %d, and the other %d, of %d messages by one tunnel", count(takers[0]), count(takers[1]), n)
	}
	ends[with]()
	if got := fates.Confirmed(t, p, n); got != n {
		t.Errorf("%d of %d confirmed after the consumer left", got, n)
	}
	other := takers[1-with]
	if !trial.Eventually(func() bool { return count(other) >= n }) {
		t.Errorf("%d of %d went to the other consumer", count(other), n)
	}
}

// stingy returns the address of a relay that creates each tunnel, with parts of at most 32 bytes
// and the given room, and returns the first message. It allows only as much as it receives on
// allow. It sends the sizes of further messages to came.
func stingy(t *testing.T, room uint64, allow <-chan uint64, came chan<- uint64) string {
	t.Helper()
	return trial.Serve(t, func(c net.Conn) { serveStingy(c, room, allow, came) })
}

func serveStingy(c net.Conn, room uint64, allow <-chan uint64, came chan<- uint64) {
	ended := make(chan struct{})
	var telling sync.WaitGroup
	defer telling.Wait()
	defer close(ended)
	defer func() { _ = c.Close() }()
	s := &session{r: bufio.NewReader(c), w: bufio.NewWriter(c)}
	number := func() uint64 { n, _ := binary.ReadUvarint(s.r); return n }
	say := func(b ...byte) {
		s.mu.Lock()
		defer s.mu.Unlock()
		_ = s.flush(b, nil)
	}
	for first := true; ; {
		op, err := s.r.ReadByte()
		if err != nil {
			return
		}
		switch op {
		case opInit:
			for range 3 {
				_, _ = s.text()
			}
			say(text(text([]byte{opInit}, relayMagic), protocol)...)
		case opTunnelInit:
			_ = number()
			_, _ = s.text()
			_ = number()
			say(opTunnelConfirm, 0, 0, 32)
			_ = s.tell(opTunnelAllow, 0, room)
		case opTunnelAllow:
			_, _ = number(), number()
		case opTunnelTransfer:
			_ = number()
			size := number()
			part, _ := s.bytes()
			switch {
			case first:
				first = false
				_ = s.transfer(0, int(size), part)
				_ = s.tell(opTunnelAllow, 0, size)
				telling.Go(func() {
					for {
						select {
						case n := <-allow:
							_ = s.tell(opTunnelAllow, 0, n)
						case <-ended:
							return
						}
					}
				})
			case size > 0:
				came <- size
			}
		case opTunnelClose:
			_ = number()
			say(opTunnelClose, 0, 0)
		case opClose:
			say(opClose, 0)
			return
		}
	}
}

// TestTunnelCountsRelayAcceptedMessages uses a relay that accepts nothing until told to.
func TestTunnelCountsRelayAcceptedMessages(t *testing.T) {
	allow, came := make(chan uint64), make(chan uint64, 10)
	cfg := Definition().New().(*Config)
	cfg.Address, cfg.Pattern, cfg.Timeout = []string{stingy(t, 1024, allow, came)}, patternTunnel, 200*time.Millisecond
	c := must.Get(cfg.Open(t.Context(), driver.Run{ID: "r"}))(t)
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	p, fates := trial.Producer(t, c, "d")
	for _, step := range []struct {
		size  int
		allow uint64
		want  error
	}{
		{100, 0, driver.ErrTimeout},      // never accepted
		{100, 150, driver.ErrTimeout},    // accepted: the previous one, and a part of this one
		{100, 150, nil},                  // both accepted
		{2000, 0, driver.ErrTimeout},     // not enough room for all of it
		{50, 4096, nil},                  // the rest of that message does not block this one
		{64 << 10, 0, driver.ErrTimeout}, // same
		{0, 0, driver.ErrUnsupported},    // tunnels do not carry empty messages
	} {
		p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: make([]byte, step.size)})
		if step.allow > 0 {
			allow <- step.allow
		}
		if step.size > 0 {
			if got := <-came; got != uint64(step.size) {
				t.Errorf("a message of %d bytes came, of %d", got, step.size)
			}
		}
		if err := fates.Next(t); !errors.Is(err, step.want) {
			t.Errorf("%+v: %v", step, err)
		}
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
