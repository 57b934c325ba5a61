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
	"math/rand/v2"
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
	LeastBits     = 8_000          // a second
	MostBits      = 10_000_000_000 // a second
	pareto        = 3.0            // shape
	paretoMean    = pareto / (pareto - 1)
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

// delay draws how long a packet is under way. It is never negative.
func (c *Conditions) delay(r *rand.Rand) time.Duration {
	if c.Jitter == 0 {
		return c.Latency
	}
	x := 0.0
	switch c.Distribution {
	case Uniform:
		x = 2*r.Float64() - 1
	case Normal:
		x = r.NormFloat64()
	case Exponential:
		x = r.ExpFloat64()
	case Pareto:
		x = (math.Pow(1-r.Float64(), -1/pareto) - paretoMean) / deviationOf(Pareto)
	}
	return max(0, c.Latency+time.Duration(x*float64(c.Jitter)))
}

// deviationOf is the standard deviation of a distribution before it is scaled to the jitter
// (Pareto), and as a part of the jitter (the others).
func deviationOf(d Distribution) float64 {
	switch d {
	case Uniform:
		return 1 / math.Sqrt(3)
	case Pareto:
		return math.Sqrt(pareto/(pareto-2)) / (pareto - 1)
	}
	return 1
}

// mean is the mean delay, but for what cutting off at zero does.
func (c *Conditions) mean() time.Duration {
	if c.Distribution == Exponential {
		return c.Latency + c.Jitter
	}
	return c.Latency
}

// deviation is the standard deviation of the delay.
func (c *Conditions) deviation() time.Duration {
	if c.Distribution == Pareto {
		return c.Jitter
	}
	return time.Duration(deviationOf(c.Distribution) * float64(c.Jitter))
}

// gone is the share of packets that a receiver never gets: lost ones, and changed ones,
// which the checksums of IP, TCP and UDP find.
func (c *Conditions) gone() float64 { return 1 - (1-c.Loss)*(1-c.Corrupt) }
