// Package network simulates a network between a run's clients and the servers that weir starts, with
// latency, jitter, loss, duplication, reordering, corruption and limited bandwidth, separately for
// each direction, and with partitions.
//
// weir itself carries the packets. The clients are in one network namespace and the servers in
// another. The only connection is a process of weir's own, the link, which holds a TUN device in each
// namespace and carries every IP packet from one to the other: late, twice, modified or not at all. It
// requires Linux, root and /dev/net/tun, but no kernel queueing module. It works below TCP and UDP, so
// that it applies to every protocol, and servers may advertise their own addresses to clients. The
// host's own network is not changed. The devices disappear with the link, the namespaces with the last
// process in them.
package network

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// A Distribution is the distribution of jitter.
type Distribution uint8

// The distributions. J is the jitter.
const (
	Uniform     Distribution = iota // uniform from -J to +J
	Normal                          // standard deviation J, truncated where the delay would be negative
	Exponential                     // mean J, added: the latency is the minimum
	Pareto                          // shape 3, standard deviation J, mean 0: a long tail
)

// distributions are the names used in scenarios.
var distributions = [...]string{"uniform", "normal", "exponential", "pareto"}

// Distributions returns the names of the distributions, in the order of the constants.
func Distributions() []string { return distributions[:] }

// String returns the name used in scenarios.
func (d Distribution) String() string { return distributions[d] }

// Conditions describes what one direction does to packets. The zero value does nothing.
type Conditions struct {
	Latency      time.Duration `json:"latency_ns,omitempty"` // one way
	Jitter       time.Duration `json:"jitter_ns,omitempty"`
	Distribution Distribution  `json:"distribution,omitempty"` // of the jitter
	Loss         float64       `json:"loss,omitempty"`         // share of the packets, 0 to 1, like the next three
	Duplicate    float64       `json:"duplicate,omitempty"`    // share that arrives twice
	Reorder      float64       `json:"reorder,omitempty"`      // share that skips the delay
	Corrupt      float64       `json:"corrupt,omitempty"`      // share in which one bit is changed
	Bandwidth    int64         `json:"bandwidth,omitempty"`    // bits of IP packets per second; 0: unlimited
}

// Limits of conditions.
const (
	MostLatency   = time.Minute
	LeastBits     = 8_000           // per second
	MostBits      = 10_000_000_000  // per second
	maxHeldBytes  = 256 << 20       // held in one direction; more is dropped and counted
	queueTime     = time.Second / 4 // of packets that wait for bandwidth
	leastQueue    = 10 * mtu
	mtu           = 1500 // that of Ethernet
	mostPartition = 1000
)

// Check returns an error that names the first invalid condition.
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

// Nothing reports whether the conditions leave packets unchanged.
func (c Conditions) Nothing() bool { return c == Conditions{} }

// String describes the conditions: "20ms, 9 Mbit/s, loss 1 %".
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

// at returns quantile p of a distribution, for a jitter of 1.
func (d Distribution) at(p float64) float64 {
	switch d {
	case Normal:
		return math.Sqrt2 * math.Erfinv(2*p-1)
	case Exponential:
		return -math.Log1p(-p)
	case Pareto: // mean 3/2 and deviation √3/2 before shifting and scaling
		return (math.Pow(1-p, -1./3) - 1.5) / (math.Sqrt(3) / 2)
	}
	return 2*p - 1
}

// delay returns the delay of a packet at quantile p of the jitter. It is never negative.
func (c *Conditions) delay(p float64) time.Duration {
	if c.Jitter == 0 {
		return c.Latency
	}
	return max(0, c.Latency+time.Duration(c.Distribution.at(p)*float64(c.Jitter)))
}

// gone returns the share of packets that the receiver never gets: lost packets, and corrupted ones,
// which the checksums of IP, TCP and UDP detect.
func (c *Conditions) gone() float64 { return 1 - (1-c.Loss)*(1-c.Corrupt) }
