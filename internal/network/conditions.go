// Package network puts a network between the clients of a run and the servers that weir
// starts: with latency, jitter, loss, duplication, reordering, corruption and a bandwidth,
// each way for itself, and with partitions.
//
// weir itself is that network. The clients are in one network namespace and the servers in
// another. All that joins the two is a process of weir's own, the link, which holds a
// TUN device in each and carries every IP packet from one to the other, late, twice,
// changed or not at all. It needs Linux, root and /dev/net/tun, and no module for
// queueing. It works below TCP and UDP, so that every protocol meets it, and servers may
// tell clients their own addresses. Nothing of the host's own network is touched. The
// devices are gone when the link is, and the namespaces when all processes in them are.
package network

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// A Distribution is how jitter varies.
type Distribution uint8

// The distributions. J is the jitter.
const (
	Uniform     Distribution = iota // even from -J to +J
	Normal                          // standard deviation J, cut off where the delay would be negative
	Exponential                     // mean J, added: the latency is the least
	Pareto                          // shape 3, standard deviation J, mean 0: a long tail
)

// distributions are their words.
var distributions = [...]string{"uniform", "normal", "exponential", "pareto"}

// Distributions returns the words of the distributions, in the order of the constants.
func Distributions() []string { return distributions[:] }

// String returns the word of scenarios.
func (d Distribution) String() string { return distributions[d] }

// Conditions are what one direction does to packets. The zero value does nothing.
type Conditions struct {
	Latency      time.Duration `json:"latency_ns,omitempty"` // one way
	Jitter       time.Duration `json:"jitter_ns,omitempty"`
	Distribution Distribution  `json:"distribution,omitempty"` // of the jitter
	Loss         float64       `json:"loss,omitempty"`         // share of the packets, 0 to 1, as the next three
	Duplicate    float64       `json:"duplicate,omitempty"`    // that arrive twice
	Reorder      float64       `json:"reorder,omitempty"`      // that skip latency and jitter, and so overtake others
	Corrupt      float64       `json:"corrupt,omitempty"`      // in which one bit is changed
	Bandwidth    int64         `json:"bandwidth,omitempty"`    // bits of IP packets per second; 0: not bounded
}

// Most of what conditions may be.
const (
	MostLatency   = time.Minute
	LeastBits     = 8_000           // a second
	MostBits      = 10_000_000_000  // a second
	maxHeldBytes  = 256 << 20       // that one direction holds; more is dropped and counted
	queueTime     = time.Second / 4 // of packets that wait for bandwidth
	leastQueue    = 10 * mtu
	mtu           = 1500 // as Ethernet has
	mostPartition = 1000
)

// Check refuses conditions that make no sense, naming the part.
func (c Conditions) Check() error {
	switch {
	case c.Distribution != Uniform && c.Jitter == 0:
		return fmt.Errorf("distribution: is %s without a jitter (jitter: 5ms)", c.Distribution)
	case c.Distribution == Uniform && c.Jitter > c.Latency:
		return fmt.Errorf("jitter: is %v, more than the latency of %v, and no packet arrives before it is sent (less, or distribution: exponential)", c.Jitter, c.Latency)
	case c.Distribution == Normal && 2*c.Jitter > c.Latency, c.Distribution == Pareto && c.Jitter > c.Latency:
		return fmt.Errorf("jitter: is %v, and %s jitter of so much is often below zero with a latency of %v (a greater latency, or distribution: exponential)", c.Jitter, c.Distribution, c.Latency)
	case c.Reorder > 0 && c.Latency == 0:
		return errors.New("reorder: needs a latency, which the packets that overtake others leave out (latency: 10ms)")
	case c.Loss == 1:
		return errors.New("loss: is all packets (less; partition cuts the network for a time)")
	}
	return nil
}

// Nothing reports whether they leave packets as they are.
func (c Conditions) Nothing() bool { return c == Conditions{} }

// String says in words what they do: "20ms, 9 Mbit/s, loss 1 %".
func (c Conditions) String() string {
	text := c.Latency.String()
	if c.Jitter > 0 {
		text += fmt.Sprintf(" ± %v %s", c.Jitter, c.Distribution)
	}
	if c.Bandwidth > 0 {
		text += ", " + perSecond(c.Bandwidth)
	}
	for _, x := range []struct {
		name  string
		share float64
	}{{"loss", c.Loss}, {"duplication", c.Duplicate}, {"reordering", c.Reorder}, {"corruption", c.Corrupt}} {
		if x.share > 0 {
			text += fmt.Sprintf(", %s %.4g %%", x.name, 100*x.share)
		}
	}
	return text
}

// at is the quantile p of a distribution, for a jitter of 1.
func (d Distribution) at(p float64) float64 {
	switch d {
	case Normal:
		return math.Sqrt2 * math.Erfinv(2*p-1)
	case Exponential:
		return -math.Log1p(-p)
	case Pareto: // mean 3/2 and deviation √3/2, before it is moved and scaled
		return (math.Pow(1-p, -1./3) - 1.5) / (math.Sqrt(3) / 2)
	}
	return 2*p - 1
}

// delay is how long a packet is under way that meets quantile p of the jitter. It is never
// negative.
func (c *Conditions) delay(p float64) time.Duration {
	if c.Jitter == 0 {
		return c.Latency
	}
	return max(0, c.Latency+time.Duration(c.Distribution.at(p)*float64(c.Jitter)))
}

// gone is the share of packets that a receiver never gets: lost ones, and changed ones,
// which the checksums of IP, TCP and UDP find.
func (c *Conditions) gone() float64 { return 1 - (1-c.Loss)*(1-c.Corrupt) }
