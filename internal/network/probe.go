package network

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// Probes are UDP packets with which the link measures itself; both ends use one clock.
const (
	heads     = 28 // of IP and UDP
	probeSize = 16 // bytes of a probe without these headers
	spread    = 5  // standard deviations by which a figure may be off by chance
	patience  = 300 * time.Millisecond
)

// A train is a series of probes.
type train struct {
	n       int
	payload int           // bytes
	gap     time.Duration // between two probes
	twice   bool          // duplicates are expected
}

// An arrival is a received probe.
type arrival struct {
	number int
	at     time.Duration // since the start of the train
	took   time.Duration
}

// send sends a train from one socket to another. It returns the arrivals: all of them, or those until
// nothing more can be expected after the last probe.
func (t train) send(from, to net.PacketConn, expect time.Duration) ([]arrival, error) {
	began, id := time.Now(), rand.Uint32()
	arrived := make(chan []arrival, 1)
	go func() {
		var all []arrival
		b := make([]byte, 1<<16)
		for {
			n, _, err := to.ReadFrom(b)
			at := time.Since(began)
			if err != nil {
				arrived <- all
				return
			}
			if n < probeSize || binary.BigEndian.Uint32(b[4:]) != id { // from an earlier train
				continue
			}
			sent := time.Duration(binary.BigEndian.Uint64(b[8:]))
			all = append(all, arrival{int(binary.BigEndian.Uint32(b)), at, at - sent})
			if len(all) == t.n && !t.twice {
				arrived <- all
				return
			}
		}
	}()
	b := make([]byte, max(t.payload, probeSize))
	var failed error
	for i := range t.n {
		time.Sleep(time.Duration(i)*t.gap - time.Since(began))
		binary.BigEndian.PutUint32(b, uint32(i))
		binary.BigEndian.PutUint32(b[4:], id)
		binary.BigEndian.PutUint64(b[8:], uint64(time.Since(began)))
		if _, err := from.WriteTo(b, to.LocalAddr()); err != nil {
			failed = err
			break
		}
	}
	failed = errors.Join(failed, to.SetReadDeadline(time.Now().Add(expect+patience)))
	all := <-arrived
	return all, errors.Join(failed, to.SetReadDeadline(time.Time{}))
}

// onWire returns how long a packet occupies the bandwidth.
func (c *Conditions) onWire(bytes int) time.Duration {
	if c.Bandwidth == 0 {
		return 0
	}
	return time.Duration(float64(bytes) * 8 / float64(c.Bandwidth) * float64(time.Second))
}

// slowest returns a packet's longest delay, apart from a long tail.
func (c *Conditions) slowest() time.Duration { return c.Latency + 10*c.Jitter }

// delays returns the train that measures latency and jitter: no probe meets the one before it.
func (c *Conditions) delays() train {
	gap := max(2*time.Millisecond, 2*c.onWire(heads+probeSize), 4*c.Jitter)
	return train{n: min(max(int(2*time.Second/gap), 12), 100), payload: probeSize, gap: gap, twice: c.Duplicate > 0}
}

// shares returns the train that measures loss, duplication and reordering.
func (c *Conditions) shares() train {
	if c.gone()+c.Duplicate+c.Reorder == 0 {
		return train{}
	}
	gap := max(100*time.Microsecond, 2*c.onWire(heads+probeSize))
	return train{n: min(max(int(2*time.Second/gap), 20), 2000), payload: probeSize, gap: gap, twice: c.Duplicate > 0}
}

// rate returns the train that measures the bandwidth: a quarter more than fits, on top of what is lost
// before.
func (c *Conditions) rate() train {
	if c.Bandwidth == 0 {
		return train{}
	}
	bytes := min(max(int(c.Bandwidth/8/100), 100), mtu)
	gap := time.Duration(float64(c.onWire(bytes)) / 1.25 * (1 - c.Loss))
	span := min(max(time.Second/2, 20*c.Jitter), 2*time.Second)
	return train{n: min(max(int(span/gap), 20), 6000), payload: bytes - heads, gap: gap, twice: c.Duplicate > 0}
}

// measured is what the trains measured in one direction.
type measured struct {
	delays []time.Duration // sorted
	mean   time.Duration
	dev    time.Duration

	shares                       int // probes sent
	gone, duplicated, overtaking int
	rate                         int64 // bits per second; 0: not measured
	rated                        int   // probes that arrived for rate
}

// measure sends the conditions' trains.
func (c *Conditions) measure(from, to net.PacketConn) (m measured, err error) {
	all, err := c.delays().send(from, to, c.slowest())
	if err != nil {
		return m, err
	}
	m.take(all)
	if t := c.shares(); t.n > 0 {
		if all, err = t.send(from, to, c.slowest()); err != nil {
			return m, err
		}
		m.shares = t.n
		m.count(all, c.Latency/2)
	}
	if t := c.rate(); t.n > 0 {
		if all, err = t.send(from, to, c.slowest()+2*queueTime); err != nil {
			return m, err
		}
		m.rate, m.rated = bits(all, t.payload+heads), len(all)
	}
	return m, nil
}

// take computes the delay figures.
func (m *measured) take(all []arrival) {
	if len(all) == 0 {
		return
	}
	sum := 0.0
	for _, a := range all {
		m.delays = append(m.delays, a.took)
		sum += float64(a.took)
	}
	slices.Sort(m.delays)
	mean, squares := sum/float64(len(all)), 0.0
	for _, d := range m.delays {
		squares += (float64(d) - mean) * (float64(d) - mean)
	}
	m.mean, m.dev = time.Duration(mean), time.Duration(math.Sqrt(squares/float64(max(1, len(all)-1))))
}

// count counts the outcomes of the probes. Those faster than quick skipped the latency.
func (m *measured) count(all []arrival, quick time.Duration) {
	seen := map[int]bool{}
	for _, a := range all {
		if seen[a.number] {
			m.duplicated++
			continue
		}
		seen[a.number] = true
		if a.took < quick {
			m.overtaking++
		}
	}
	m.gone = m.shares - len(seen)
}

// bits returns the rate at which packets of the given size arrived, each counted once; 0 if there were
// too few.
func bits(all []arrival, bytes int) int64 {
	seen := map[int]bool{}
	for _, a := range all {
		seen[a.number] = true
	}
	if len(seen) < 10 {
		return 0
	}
	span := all[len(all)-1].at - all[0].at
	return int64(float64(len(seen)-1) * float64(bytes) * 8 / max(span.Seconds(), 1e-9))
}

// at returns percentile p of the delays; 0 if there are none.
func (m *measured) at(p float64) time.Duration {
	if len(m.delays) == 0 {
		return 0
	}
	return m.delays[measure.Rank(p, uint64(len(m.delays)))-1]
}

// Tolerances of the check before a run.
const (
	slackTime = time.Millisecond // of a delay, or a twentieth of it if that is more
	slackRate = 0.1              // of a bandwidth
)

// ErrNotAsAsked is returned when the network does not behave as configured.
var ErrNotAsAsked = errors.New("the network is not as asked")

// width returns the distance between the quartiles of the delays.
func (m *measured) width() time.Duration { return m.at(75) - m.at(25) }

// verify returns an error if figures are off by more than tolerance and chance. bare is the same direction
// without conditions.
func (c *Conditions) verify(m, bare *measured) error {
	var wrong []error
	fault := func(what string, asked, is any) {
		wrong = append(wrong, fmt.Errorf("%s: asked for %v, measured %v", what, asked, is))
	}
	quick := c.Reorder > 0.2 || c.gone() > 0.5 // many probes skip the latency, or few arrive
	want := c.delay(0.5) + c.onWire(heads+probeSize)
	slack := max(slackTime, want/20)
	switch n := len(m.delays); {
	case n < 5 && !quick:
		fault("latency", want, fmt.Sprintf("too few packets (%d)", n))
	case quick:
	default:
		// The error of a median is at most 1.26 J/√n for each of the distributions. Probes that skipped the
		// latency shift its rank.
		chance := time.Duration((spread*1.26/math.Sqrt(float64(n)) + 2*c.Reorder) * float64(c.Jitter))
		if d := m.at(50) - want; d < -chance-want/1000-10*time.Microsecond || d > chance+slack {
			fault("median latency", want, m.at(50))
		}
		// A busy host delays single packets, which does not affect the quartiles. A very busy one widens those of
		// the bare link too.
		if wide := c.delay(0.75) - c.delay(0.25); n >= 20 {
			if is := m.width(); is < wide/2 || is > 2*wide+slackTime+bare.width() {
				fault("latency between its quartiles", wide, is)
			}
		}
	}
	share := func(what string, k, n int, p float64) {
		if n > 0 && math.Abs(float64(k)-float64(n)*p) > spread*math.Sqrt(float64(n)*p*(1-p))+2 {
			fault(what, fmt.Sprintf("%.4g %%", 100*p), fmt.Sprintf("%d of %d", k, n))
		}
	}
	share("loss (with corrupted packets)", m.gone, m.shares, c.gone())
	share("duplication", m.duplicated, m.shares-m.gone, c.Duplicate)
	if c.Jitter == 0 {
		share("reordering", m.overtaking, m.shares-m.gone, c.Reorder)
	}
	// Corrupted packets take bandwidth and do not arrive.
	if c.Bandwidth > 0 && math.Abs(float64(m.rate)/(float64(c.Bandwidth)*(1-c.Corrupt))-1) > slackRate {
		fault("bandwidth", perSecond(c.Bandwidth), perSecond(m.rate))
	}
	return errors.Join(wrong...)
}

// asked returns the conditions in the result's format.
func (c *Conditions) asked() result.Conditions {
	r := result.Conditions{LatencyNS: int64(c.Latency), JitterNS: int64(c.Jitter)}
	if c.Jitter > 0 {
		r.Distribution = c.Distribution.String()
	}
	for _, x := range []struct {
		share float64
		into  **float64
	}{{c.Loss, &r.Loss}, {c.Duplicate, &r.Duplicate}, {c.Reorder, &r.Reorder}, {c.Corrupt, &r.Corrupt}} {
		if x.share > 0 {
			*x.into = &x.share
		}
	}
	if c.Bandwidth > 0 {
		r.BitsPerS = &c.Bandwidth
	}
	return r
}

// direction returns a measured direction in the result's format.
func (c *Conditions) direction(m *measured) result.Direction {
	d := result.Direction{Asked: c.asked(), Probes: result.Probes{Delays: len(m.delays), Shares: m.shares, Rate: m.rated}}
	r := &d.Measured
	r.LatencyNS, r.MeanNS = int64(m.at(50)), int64(m.mean)
	if len(m.delays) > 0 {
		r.LeastNS = int64(m.delays[0])
	}
	if c.Jitter > 0 {
		r.JitterNS = int64(m.dev)
	}
	part := func(k, n int) *float64 {
		p := float64(k) / float64(max(1, n))
		return &p
	}
	if c.gone() > 0 {
		r.Loss = part(m.gone, m.shares)
	}
	if c.Duplicate > 0 {
		r.Duplicate = part(m.duplicated, m.shares-m.gone)
	}
	if c.Reorder > 0 {
		r.Reorder = part(m.overtaking, m.shares-m.gone)
	}
	if c.Bandwidth > 0 {
		r.BitsPerS = &m.rate
	}
	return d
}
