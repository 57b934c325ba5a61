package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/stamp"
	"github.com/weirmq/weir/schedule"
)

// Bounds of what a scenario may ask for; a run beyond them does not fit one
// process.
const (
	maxSize      = 64 << 20 // bytes of one message
	maxCount     = 100_000  // of producers, consumers, destinations, partitions
	maxBatch     = 100_000  // messages
	maxKeys      = 1 << 40
	maxTrace     = 10 << 20  // instants
	maxTraceFile = 256 << 20 // bytes
)

// sizes reads message.size.
func (d *decoder) sizes() []schedule.WeightedSize {
	const path = "message.size"
	n := d.find(path)
	if n == nil {
		return []schedule.WeightedSize{{Bytes: 1 << 10, Weight: 1}}
	}
	if n.shape != list {
		if b, ok := d.size(n, path); ok {
			return []schedule.WeightedSize{{Bytes: b, Weight: 1}}
		}
		return nil
	}
	var out []schedule.WeightedSize
	for i, item := range n.items {
		at := fmt.Sprintf("%s[%d]", path, i)
		if item.shape != mapping {
			d.fault(item.at, at, "is %s ({size: 256B, weight: 3})", item.shape)
			continue
		}
		if !d.only(item, at, "size", "weight") {
			continue
		}
		b, ok1 := d.size(item.field("size"), at+".size")
		w, ok2 := d.number(item.field("weight"), at+".weight", 1, 1_000_000)
		if ok1 && ok2 {
			out = append(out, schedule.WeightedSize{Bytes: b, Weight: int(w)})
		}
	}
	if len(n.items) == 0 || len(n.items) > 1000 {
		d.fault(n.at, path, "has %d sizes (1 to 1000)", len(n.items))
	}
	return out
}

func (d *decoder) size(n *node, path string) (int, bool) {
	b, ok := d.sized(n, path, 0, maxSize, stamp.Size)
	if ok && b < stamp.Size {
		d.fault(n.at, path, "%s is less than the %d bytes of the stamp that weir puts into each message (%dB to 64MiB)",
			strings.TrimSpace(n.text), stamp.Size, stamp.Size)
		return 0, false
	}
	return int(b), ok
}

// messageKeys reads message.keys.
func (d *decoder) messageKeys() schedule.Keys {
	const path, allowed = "message.keys", "none, {uniform: N}, {zipf: {n: N, s: S}}, {round_robin: N}"
	n := d.find(path)
	if n == nil {
		return schedule.Keys{}
	}
	if n.shape == text {
		if n.text != "none" {
			d.fault(n.at, path, "%q is not known (%s)", n.text, allowed)
		}
		return schedule.Keys{}
	}
	switch kind, v := d.choice(n, path, allowed, []string{"uniform", "zipf", "round_robin"}); kind {
	case "uniform":
		if c, ok := d.number(v, path+".uniform", 1, maxKeys); ok {
			return schedule.Keys{Kind: schedule.UniformKeys, N: uint64(c)}
		}
	case "round_robin":
		if c, ok := d.number(v, path+".round_robin", 1, maxKeys); ok {
			return schedule.Keys{Kind: schedule.RoundRobinKeys, N: uint64(c)}
		}
	case "zipf":
		p := path + ".zipf"
		if v.shape != mapping {
			d.fault(v.at, p, "is %s ({n: 10000, s: 1.1})", v.shape)
			break
		}
		if !d.only(v, p, "n", "s") {
			break
		}
		c, ok1 := d.number(v.field("n"), p+".n", 1, maxKeys)
		s, ok2 := d.float(v.field("s"), p+".s", 0.01, 10)
		if ok1 && ok2 {
			return schedule.Keys{Kind: schedule.ZipfKeys, N: uint64(c), S: s}
		}
	}
	return schedule.Keys{}
}

// arrival reads load.arrival.
func (d *decoder) arrival(in Inputs) (schedule.Arrival, string) {
	const path, allowed = "load.arrival", "constant, poisson, {gamma: {cv: 3}}, {trace: FILE}"
	n := d.find(path)
	if n == nil {
		return schedule.Arrival{}, ""
	}
	if n.shape == text {
		switch strings.TrimSpace(n.text) {
		case "constant":
		case "poisson":
			return schedule.Arrival{Kind: schedule.Poisson}, ""
		default:
			d.fault(n.at, path, "%q is not known (%s)", n.text, allowed)
		}
		return schedule.Arrival{}, ""
	}
	switch kind, v := d.choice(n, path, allowed, []string{"gamma", "trace"}); kind {
	case "gamma":
		if v.shape != mapping {
			d.fault(v.at, path+".gamma", "is %s ({cv: 3})", v.shape)
			break
		}
		if !d.only(v, path+".gamma", "cv") {
			break
		}
		if cv, ok := d.float(v.field("cv"), path+".gamma.cv", 0.1, 10); ok {
			return schedule.Arrival{Kind: schedule.Gamma, CV: cv}, ""
		}
	case "trace":
		file, ok := d.textOf(v, path+".trace", "the path of a file")
		if !ok {
			break
		}
		file = in.path(file, v.at)
		instants, err := recall(in.memory.traces, file, func(file string) ([]int64, error) { return readTrace(in, file) })
		if err != nil {
			d.fault(v.at, path+".trace", "%v (a file with one instant since the start a line, as 1.5ms or a number of ns, none before the one above)", err)
			break
		}
		return schedule.Arrival{Kind: schedule.Trace, Trace: instants}, file
	}
	return schedule.Arrival{}, ""
}

// readTrace reads the due instants of a trace: one a line, a duration or a
// number of nanoseconds since the start; blank lines and those beginning with
// # are left out.
func readTrace(in Inputs, file string) ([]int64, error) {
	src, err := in.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the trace: %w", err)
	}
	if len(src) > maxTraceFile {
		return nil, fmt.Errorf("%s is longer than 256 MiB", filepath.Base(file))
	}
	var out []int64
	number, last := 0, int64(0)
	for line := range bytes.Lines(src) {
		number++
		s := strings.TrimSpace(string(line))
		if s == "" || strings.HasPrefix(s, "#") {
			continue
		}
		t, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			var v time.Duration
			if v, err = time.ParseDuration(s); err != nil {
				return nil, fmt.Errorf("%s, line %d: %q is not an instant", filepath.Base(file), number, cut(s))
			}
			t = int64(v)
		}
		switch {
		case t < last:
			return nil, fmt.Errorf("%s, line %d: %s is before the line above", filepath.Base(file), number, cut(s))
		case t > int64(MaxDuration):
			return nil, fmt.Errorf("%s, line %d: %s is after %v", filepath.Base(file), number, cut(s), MaxDuration)
		case len(out) == maxTrace:
			return nil, fmt.Errorf("%s has more than %d instants", filepath.Base(file), maxTrace)
		}
		last = t
		out = append(out, t)
	}
	if len(out) == 0 {
		return nil, errors.New("holds no instant")
	}
	return out, nil
}

func cut(s string) string { return s[:min(len(s), 40)] }

// profile reads load.profile.
func (d *decoder) profile() []schedule.Phase {
	const path = "load.profile"
	n := d.find(path)
	if n == nil {
		return nil
	}
	if n.shape != list {
		d.fault(n.at, path, "is %s (a list such as [{rate: 1000/s, for: 30s}, {ramp: 1000/s..9000/s, for: 1m}, {burst: 5000, every: 1s, for: 1m}])", n.shape)
		return nil
	}
	if len(n.items) > 10_000 {
		d.fault(n.at, path, "has %d phases (up to 10000)", len(n.items))
		return nil
	}
	var out []schedule.Phase
	for i, item := range n.items {
		if p, ok := d.phase(item, fmt.Sprintf("%s[%d]", path, i)); ok {
			out = append(out, p)
		}
	}
	return out
}

func (d *decoder) phase(n *node, path string) (schedule.Phase, bool) {
	var p schedule.Phase
	const allowed = "{rate: R, for: T}, {ramp: R..R, for: T} or {burst: N, every: T, for: T}"
	if n.shape != mapping {
		d.fault(n.at, path, "is %s (%s)", n.shape, allowed)
		return p, false
	}
	var ok bool
	switch {
	case n.field("rate") != nil:
		if !d.only(n, path, "rate", "for") {
			return p, false
		}
		p.From, ok = d.rate(n.field("rate"), path+".rate")
		p.To = p.From
	case n.field("ramp") != nil:
		if !d.only(n, path, "ramp", "for") {
			return p, false
		}
		r := n.field("ramp")
		s, isText := d.textOf(r, path+".ramp", "two rates such as 1000/s..9000/s")
		if !isText {
			return p, false
		}
		from, to, two := strings.Cut(s, "..")
		if !two {
			d.fault(r.at, path+".ramp", "%q is not a ramp (two rates such as 1000/s..9000/s)", s)
			return p, false
		}
		var ok2 bool
		p.From, ok = d.parseRate(r, path+".ramp", strings.TrimSpace(from))
		p.To, ok2 = d.parseRate(r, path+".ramp", strings.TrimSpace(to))
		ok = ok && ok2
	case n.field("burst") != nil:
		if !d.only(n, path, "burst", "every", "for") {
			return p, false
		}
		c, ok1 := d.number(n.field("burst"), path+".burst", 1, 1_000_000_000)
		e, ok2 := d.duration(n.field("every"), path+".every", 1)
		p.Burst, p.Every, ok = uint64(c), e, ok1 && ok2
	default:
		d.fault(n.at, path, "is not a phase (%s)", allowed)
		return p, false
	}
	t, okFor := d.duration(n.field("for"), path+".for", 1)
	p.For = t
	return p, ok && okFor
}

// batch reads load.batch: "8" or "1..10".
func (d *decoder) batch() (lo, hi int) {
	const path = "load.batch"
	allowed := fmt.Sprintf("a whole number from 1 to %d, or a range such as 1..10", maxBatch)
	s, n, ok := d.scalar(path, allowed)
	if !ok {
		return 1, 1
	}
	a, b, two := strings.Cut(s, "..")
	if !two {
		b = a
	}
	x, err1 := strconv.Atoi(strings.TrimSpace(a))
	y, err2 := strconv.Atoi(strings.TrimSpace(b))
	switch {
	case err1 != nil || err2 != nil || x < 1 || y > maxBatch:
		d.fault(n.at, path, "%q is not a batch size (%s)", s, allowed)
	case x > y:
		d.fault(n.at, path, "%q is reversed (%s)", s, allowed)
	default:
		return x, y
	}
	return 1, 1
}

// names reads topology.names.
func (d *decoder) names() []string {
	const path = "topology.names"
	n := d.find(path)
	if n == nil {
		return nil
	}
	items := n.items
	if n.shape == text && n.at.Line == 0 { // a flag
		for s := range strings.SplitSeq(n.text, ",") {
			items = append(items, &node{shape: text, text: s, at: n.at})
		}
	} else if n.shape != list {
		d.fault(n.at, path, "is %s (a list of names)", n.shape)
		return nil
	}
	var out []string
	seen := map[string]bool{}
	for i, item := range items {
		s, ok := d.textOf(item, fmt.Sprintf("%s[%d]", path, i), "a name")
		switch {
		case !ok:
		case s == "":
			d.fault(item.at, path, "holds an empty name (a list of names)")
		case seen[s]:
			d.fault(item.at, path, "holds %q twice (a list of different names)", s)
		default:
			seen[s] = true
			out = append(out, s)
		}
	}
	if len(items) == 0 || len(items) > maxCount {
		d.fault(n.at, path, "has %d names (1 to %d)", len(items), maxCount)
	}
	return out
}
