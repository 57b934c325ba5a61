package series

import "testing"

func TestLoopbackOnlyAddresses(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:4222": true, "nats://127.0.0.1:4222": true, "127.0.0.2:1": true,
		"10.0.0.5:4222": false, "nats://10.0.0.5:4222": false, "": false, "x": false,
	} {
		if got := loopbackOnly(address); got != want {
			t.Errorf("%q: %v; want %v", address, got, want)
		}
	}
}
