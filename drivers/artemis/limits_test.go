package artemis

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// discarded returns what the server counts as dropped.
func discarded(t *testing.T, c driver.Conn) (n uint64, f driver.Facts) {
	t.Helper()
	f = trial.Facts(t, c)
	for _, d := range f.Discarded {
		n += d.Messages
	}
	return n, f
}

// TestDroppedMessagesAreCounted fills an address that drops what has no room.
func TestDroppedMessagesAreCounted(t *testing.T) {
	s := served.Up(t, Definition(), 1, served.With{Settings: map[string]string{"max-size-bytes": "100000", "address-full-policy": fullDrops}})
	c := trial.Declared(t, Definition(), s.Options)
	p, f := trial.Producer(t, c, "d")
	if n, facts := discarded(t, c); n != 0 || len(facts.Discards) != 1 || !strings.Contains(facts.Discards[0], "address-full-policy DROP, max-size-bytes 100000") {
		t.Errorf("before: %d, %q", n, facts.Discards)
	}
	const n = 900
	trial.Publish(t, p, n, 1<<10)
	for range n {
		must.Do(t, f.Next(t))
	}
	dropped, facts := discarded(t, c)
	if has := trial.Backlog(t, c); dropped == 0 || has+dropped != n {
		t.Errorf("%d in the queue and %d dropped, of %d; %+v", has, dropped, n, facts.Discarded)
	}
}

// TestExpiredMessagesAreCounted lets messages expire in a queue.
func TestExpiredMessagesAreCounted(t *testing.T) {
	s := served.Up(t, Definition(), 1)
	must.Do(t, manage(t, plain(t, s), "broker", "addAddressSettings", nil, "weir.#", `{"expiryDelay": 1}`))
	c := trial.Declared(t, Definition(), s.Options)
	p, f := trial.Producer(t, c, "d")
	if n := f.Confirmed(t, p, 20); n != 20 {
		t.Fatalf("%d of 20 confirmed", n)
	}
	l := trial.NewLog() // expired messages are removed when they would be delivered
	t.Cleanup(l.Consume(t, c, driver.ConsumerSpec{}))
	var n uint64
	var facts driver.Facts
	if !trial.Eventually(func() bool { n, facts = discarded(t, c); return n == 20 }) {
		t.Errorf("%d of 20 counted: %+v", n, facts.Discarded)
	}
	if len(facts.Discards) != 1 || facts.Discards[0] != "messages expire after 1 ms (expiry-delay)" {
		t.Errorf("settings %q", facts.Discards)
	}
}

// TestAFullAddressSaysSo fills an address while a producer is open, and before another is.
func TestAFullAddressSaysSo(t *testing.T) {
	s := served.Up(t, Definition(), 1, served.With{Settings: map[string]string{"max-size-bytes": "100000", "address-full-policy": fullBlocks}})
	c, blocked := trial.Blocking(t, Definition(), s.Options)
	p, _ := trial.Producer(t, c, "d")
	go trial.Publish(t, p, 3000, 1<<10) // more than the credit of a link
	const full = "is full (address-full-policy BLOCK, max-size-bytes 100000"
	if !trial.Eventually(func() bool { return strings.Contains(blocked(), full) }) {
		t.Errorf("a producer that is open: %q", blocked())
	}
	trial.NoProducer(t, c, driver.ProducerSpec{Destinations: []string{"d"}}, "another", driver.ErrBlocked, full)
}
