package view

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/result"
)

// network writes the network between clients and servers: requested, measured, carried.
func (t *single) network() {
	n := t.r.Network
	if n == nil {
		return
	}
	t.networkMeans()
	t.Labelled("", plain("to the system: "+wayOf(&n.ToSystem)))
	t.Labelled("", plain("from the system: "+wayOf(&n.FromSystem)))
}

// networkMeans summarizes the network between clients and servers, with its round-trip time.
func (t *single) networkMeans() {
	n := t.r.Network
	head := n.Means
	if n.Profile != "" {
		head += ", profile " + n.Profile
	}
	head += fmt.Sprintf("; round trip %s before the run", quantity.Time(n.RoundTripNS))
	if n.ToSystem.Asked != (result.Conditions{}) || n.FromSystem.Asked != (result.Conditions{}) {
		head += fmt.Sprintf(" (%s of it is the link's own)", quantity.Time(n.BareRoundTripNS))
	}
	t.Labelled("network", plain(head))
}

// wayOf describes one direction: what it was configured to do, what was measured, and what it did.
func wayOf(d *result.Direction) string {
	a, m := &d.Asked, &d.Measured
	says := []string{fmt.Sprintf("latency %s (measured %s)", quantity.Time(a.LatencyNS), quantity.Time(m.LatencyNS))}
	if a.LatencyNS == 0 {
		says[0] = "no latency added (measured " + quantity.Time(m.LatencyNS) + ")"
	}
	if a.JitterNS > 0 {
		says = append(says, fmt.Sprintf("jitter %s %s (standard deviation %s)", quantity.Time(a.JitterNS), a.Distribution, quantity.Time(m.JitterNS)))
	}
	for _, x := range []struct {
		name            string
		asked, measured *float64
	}{{"loss", a.Loss, m.Loss}, {"duplication", a.Duplicate, m.Duplicate}, {"reordering", a.Reorder, m.Reorder}, {"corruption", a.Corrupt, nil}} {
		switch {
		case x.asked == nil:
		case x.measured == nil:
			says = append(says, fmt.Sprintf("%s %s", x.name, percentage(*x.asked)))
		default:
			says = append(says, fmt.Sprintf("%s %s (%s)", x.name, percentage(*x.asked), percentage(*x.measured)))
		}
	}
	if a.BitsPerS != nil && m.BitsPerS != nil {
		says = append(says, fmt.Sprintf("bandwidth %s (%s)", bandwidth(*a.BitsPerS), bandwidth(*m.BitsPerS)))
	}
	c := &d.Carried
	carried := quantity.Count(uint64(c.Packets)) + " packets"
	for _, x := range []struct {
		n    int64
		what string
	}{
		{c.Lost, "lost"},
		{c.Duplicated, "duplicated"},
		{c.Reordered, "reordered"},
		{c.Corrupted, "corrupted"},
		{c.Cut, "cut off"},
		{c.Queue, "dropped by the full queue"},
		{c.Overflow, "dropped by the link, not asked for"},
	} {
		if x.n > 0 {
			carried += ", " + quantity.Count(uint64(x.n)) + " " + x.what
		}
	}
	return strings.Join(says, ", ") + "; " + carried
}

func percentage(p float64) string { return strconv.FormatFloat(100*p, 'g', 3, 64) + " %" }

// bandwidth writes bits per second.
func bandwidth(bits int64) string {
	v, unit := float64(bits), "bit/s"
	for _, u := range []string{"kbit/s", "Mbit/s", "Gbit/s"} {
		if v < 1000 {
			break
		}
		v, unit = v/1000, u
	}
	return strconv.FormatFloat(v, 'g', 4, 64) + " " + unit
}
