//go:build !libzmq

package zeromq

import (
	"context"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/weirmq/weir/drivers/internal/trial"
)

// These tests show defects of the client library that the driver works around or refuses.
// One that fails says what the driver can then do without.

// pair returns a PUSH socket that is connected to a PULL socket, and the address of that.
func pair(t testing.TB, address string) (push, pull zmq4.Socket, at string) {
	t.Helper()
	pull = zmq4.NewPull(context.Background(), options()...)
	push = zmq4.NewPush(context.Background(), options()...)
	t.Cleanup(func() { _ = push.Close(); _ = pull.Close() })
	if err := pull.Listen(address); err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(address, "tcp") {
		address = "tcp://" + pull.Addr().String()
	}
	if err := push.Dial(address); err != nil {
		t.Fatal(err)
	}
	return push, pull, address
}

// receive returns how many messages a socket yields until it is silent.
func receive(s zmq4.Socket) (n int) {
	got := make(chan bool, 100)
	go func() {
		for {
			_, err := s.Recv()
			got <- err == nil
			if err != nil {
				return
			}
		}
	}()
	for {
		select {
		case ok := <-got:
			if !ok {
				return n
			}
			n++
		case <-time.After(300 * time.Millisecond):
			return n
		}
	}
}

// TestAPushSocketSendsToEveryPeer: ZeroMQ sends each message to one peer in turn.
func TestAPushSocketSendsToEveryPeer(t *testing.T) {
	push, first, _ := pair(t, "tcp://127.0.0.1:0")
	second := zmq4.NewPull(t.Context(), options()...)
	defer func() { _ = second.Close() }()
	if err := second.Listen("tcp://127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	if err := push.Dial("tcp://" + second.Addr().String()); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if err := push.Send(zmq4.NewMsgString("x")); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := receive(first), receive(second); a+b == 10 {
		t.Error("the library shares messages among consumers now: let several consumers share a pipeline")
	} else {
		t.Logf("of 10 messages one consumer has %d, the other %d", a, b)
	}
}

// TestAPushSocketConfirmsWithoutAPeer: ZeroMQ waits when the last peer has left.
func TestAPushSocketConfirmsWithoutAPeer(t *testing.T) {
	push, pull, _ := pair(t, "tcp://127.0.0.1:0")
	if err := pull.Close(); err != nil {
		t.Fatal(err)
	}
	confirmed := 0
	for range 20 {
		if push.Send(zmq4.NewMsgString("x")) == nil {
			confirmed++
		}
		time.Sleep(5 * time.Millisecond)
	}
	if confirmed == 0 {
		t.Error("the library sees now that a consumer has left: let producers bind in a pipeline")
	}
	t.Logf("%d of 20 messages are confirmed that no consumer can get", confirmed)
}

// TestInprocCarriesNoLongMessages: one of 256 bytes comes without its bytes. With other
// bytes than zeros, the library panics.
func TestInprocCarriesNoLongMessages(t *testing.T) {
	for size, want := range map[int]int{255: 255, 256: 0} {
		push, pull, _ := pair(t, "inproc://long-"+strconv.Itoa(size))
		go func() { _ = push.Send(zmq4.NewMsg(make([]byte, size))) }()
		m, err := pull.Recv()
		if err != nil || len(m.Frames) != 1 || len(m.Frames[0]) != want {
			t.Errorf("of %d bytes came %v, %v, want %d: offer transport inproc if this is mended", size, m, err, want)
		}
	}
}

// TestAClosedSocketLeavesAGoroutine: the goroutine of a PUB socket's queue outlives it.
func TestAClosedSocketLeavesAGoroutine(t *testing.T) {
	count := func() int {
		stacks := make([]byte, 8<<20)
		return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), left[0]+"(")
	}
	before := count()
	s := zmq4.NewPub(t.Context(), options()...)
	trial.Eventually(func() bool { return count() > before })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	if count() == before {
		t.Error("the library ends the goroutine now: take it out of left")
	}
}
