package broker

import (
	"net"
	"testing"
)

// A server that a fault stopped gets its port back, which no outgoing connection may take meanwhile.
func TestPortsBelowEphemeralOnes(t *testing.T) {
	for low, want := range map[int][2]int{
		32768: {20_000, 29_999}, // Linux
		49152: {20_000, 29_999},
		15000: {5_000, 14_999},
		1024:  {1024, 65535}, // the kernel uses all
	} {
		for range 50 {
			l, err := listenBelow(loopback, low)
			if err != nil {
				t.Fatal(err)
			}
			if port := l.Addr().(*net.TCPAddr).Port; port < want[0] || port > want[1] {
				t.Errorf("with ephemeral ports from %d: port %d; want %d to %d", low, port, want[0], want[1])
			}
			_ = l.Close()
		}
	}
}
