package scenario

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/scenario/tree"
	"github.com/weirmq/weir/internal/stamp"
	"github.com/weirmq/weir/schedule"
)

// Limits of a scenario; a larger run does not fit one process.
const (
	maxSize      = 64 << 20 // bytes of one message
	maxCount     = 100_000  // producers, consumers, destinations, partitions
	maxBatch     = 100_000  // messages
	maxKeys      = 1 << 40
	maxTrace     = 10 << 20  // instants
	maxTraceFile = 256 << 20 // bytes
)

// version is the file format's version, which a Scenario does not store.
var version = placed(single("1", wholeNumber(1, 1), func(s string) (string, error) {
	if s != "1" {
		return "", inFull{fmt.Errorf("format %q is not known to this build (1)", s)}
	}
	return s, nil
}, func(string) string { return "1" }), func(*Scenario) *string { return new(string) })

// count is a number of things, at least one.
var count = whole[int](1, maxCount)

// pace is the rate of messages, or a closed loop.
var pace = kind[Load]{
	schema: either(texts(`^ *([mM][aA][xX]|[uU][nN][lL][iI][mM][iI][tT][eE][dD]) *$`), rate.schema),
	read: func(d *decoder, n *tree.Node, path string, l *Load) bool {
		l.Rate, l.Closed = 0, n.Shape == tree.Text && isMax(n.Text)
		return l.Closed || rate.read(d, n, path, &l.Rate)
	},
	text: func(l *Load) string {
		switch {
		case l.Closed:
			return "max"
		case l.Rate == 0:
			return ""
		}
		return l.Rate.String()
	},
}

// isMax reports whether a rate means a closed loop.
func isMax(rate string) bool {
	rate = strings.TrimSpace(rate)
	return strings.EqualFold(rate, "max") || strings.EqualFold(rate, "unlimited")
}

// batch is how many messages are handed over at once: "8" or "1..10".
var batch = single(fmt.Sprintf("a whole number from 1 to %d, or a range such as 1..10", maxBatch),
	either(object{"type": "integer", "minimum": 1, "maximum": maxBatch}, texts(`^ *\+?[0-9]+ *(\.\. *\+?[0-9]+ *)?$`)),
	func(s string) (Batch, error) {
		a, b, two := strings.Cut(s, "..")
		if !two {
			b = a
		}
		x, err1 := strconv.Atoi(strings.TrimSpace(a))
		y, err2 := strconv.Atoi(strings.TrimSpace(b))
		switch {
		case err1 != nil || err2 != nil || x < 1 || y > maxBatch:
			return Batch{}, fmt.Errorf("%q is not a batch size", s)
		case x > y:
			return Batch{}, fmt.Errorf("%q is reversed", s)
		}
		return Batch{x, y}, nil
	}, func(b Batch) string {
		if b.Min == b.Max {
			return strconv.Itoa(b.Min)
		}
		return fmt.Sprintf("%d..%d", b.Min, b.Max)
	})

// sizes is the size of all messages, or several sizes with weights.
var sizes = func() kind[[]schedule.WeightedSize] {
	one := sized[int](stamp.Size, maxSize, fmt.Sprintf("the %d bytes of the stamp that weir puts into each message", stamp.Size))
	weighted := several(record("{size: 256B, weight: 3}",
		part[schedule.WeightedSize]{"size", placed(one, func(s *schedule.WeightedSize) *int { return &s.Bytes })},
		part[schedule.WeightedSize]{"weight", placed(whole[int](1, 1_000_000), func(s *schedule.WeightedSize) *int { return &s.Weight })},
	), 1000, "has %d sizes (1 to %d)", "", false)
	return kind[[]schedule.WeightedSize]{
		schema: either(one.schema, weighted.schema),
		read: func(d *decoder, n *tree.Node, path string, into *[]schedule.WeightedSize) bool {
			*into = nil // nothing to check against if it is invalid
			if n.Shape == tree.List {
				return weighted.read(d, n, path, into)
			}
			s := schedule.WeightedSize{Weight: 1}
			ok := one.read(d, n, path, &s.Bytes)
			if ok {
				*into = []schedule.WeightedSize{s}
			}
			return ok
		},
		text: func(sizes *[]schedule.WeightedSize) string {
			if len(*sizes) == 1 {
				return one.text(&(*sizes)[0].Bytes)
			}
			return weighted.text(sizes)
		},
	}
}()

// messageKeys says which keys messages have.
var messageKeys = func() kind[schedule.Keys] {
	n := placed(whole[uint64](1, maxKeys), func(k *schedule.Keys) *uint64 { return &k.N })
	zipf := record("{n: 10000, s: 1.1}", part[schedule.Keys]{"n", n},
		part[schedule.Keys]{"s", placed(number(0.01, 10), func(k *schedule.Keys) *float64 { return &k.S })})
	kinds := map[schedule.KeyKind]string{schedule.UniformKeys: "uniform", schedule.ZipfKeys: "zipf", schedule.RoundRobinKeys: "round_robin", schedule.NoKeys: "none"}
	return choice("none, {uniform: N}, {zipf: {n: N, s: S}}, {round_robin: N}", func(k *schedule.Keys) string { return kinds[k.Kind] },
		branch[schedule.Keys]{name: "none"},
		branch[schedule.Keys]{"uniform", func(k *schedule.Keys) { k.Kind = schedule.UniformKeys }, &n},
		branch[schedule.Keys]{"zipf", func(k *schedule.Keys) { k.Kind = schedule.ZipfKeys }, &zipf},
		branch[schedule.Keys]{"round_robin", func(k *schedule.Keys) { k.Kind = schedule.RoundRobinKeys }, &n},
	)
}()

// arrival is the spacing of messages.
var arrival = func() kind[Load] {
	set := func(k schedule.ArrivalKind) func(*Load) { return func(l *Load) { l.Arrival.Kind = k } }
	gamma := record("{cv: 3}", part[Load]{"cv", placed(number(0.1, 10), func(l *Load) *float64 { return &l.Arrival.CV })})
	return choice("constant, poisson, {gamma: {cv: 3}}, {trace: FILE}", func(l *Load) string { return l.Arrival.Kind.String() },
		branch[Load]{name: "constant"},
		branch[Load]{name: "poisson", set: set(schedule.Poisson)},
		branch[Load]{"gamma", set(schedule.Gamma), &gamma},
		branch[Load]{"trace", set(schedule.Trace), &trace},
	)
}()

// trace is a file of instants.
var trace = kind[Load]{
	schema: anyText(),
	read: func(d *decoder, n *tree.Node, path string, l *Load) bool {
		file, ok := d.textOf(n, path, "the path of a file")
		if !ok {
			return false
		}
		file = d.in.path(file, n.At)
		instants, err := recall(d.in.memory.traces, file, func(file string) ([]int64, error) { return readTrace(d.in, file) })
		if err != nil {
			d.fault(n.At, path, "%v (a file with one instant since the start a line, as 1.5ms or a number of ns, none before the one above)", err)
			return false
		}
		l.Arrival.Trace, l.TraceFile = instants, file
		return true
	},
	text: func(l *Load) string { return quote(l.TraceFile) },
}

// readTrace reads the due instants of a trace, one per line: a duration or a number of nanoseconds
// since the start. It skips blank lines and those starting with #.
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
			if v, err = quantity.Duration(s); err != nil {
				return nil, fmt.Errorf("%s, line %d: %q is not an instant", filepath.Base(file), number, cut(s))
			}
			t = int64(v)
		}
		switch {
		case t < last:
			return nil, fmt.Errorf("%s, line %d: %s is before the line above", filepath.Base(file), number, cut(s))
		case t > int64(MaxDuration):
			return nil, fmt.Errorf("%s, line %d: %s is after %s", filepath.Base(file), number, cut(s), longest)
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

// profile is the rate over time.
var profile = several(phase, 10_000, "has %d phases (1 to %d)",
	"a list such as [{rate: 1000/s, for: 30s}, {ramp: 1000/s..9000/s, for: 1m}, {burst: 5000, every: 1s, for: 1m}]", false)

// phase is one phase of a profile.
var phase = func() kind[schedule.Phase] {
	const allowed, ramps = "{rate: R, for: T}, {ramp: R..R, for: T} or {burst: N, every: T, for: T}", "two rates such as 1000/s..9000/s"
	type phase = schedule.Phase
	long := part[phase]{"for", placed(span(1), func(p *phase) *time.Duration { return &p.For })}
	steady := kind[phase]{
		schema: stageRate.schema,
		read: func(d *decoder, n *tree.Node, path string, p *phase) bool {
			ok := stageRate.read(d, n, path, &p.From)
			p.To = p.From
			return ok
		},
		text: func(p *phase) string { return p.From.String() },
	}
	rates := single(ramps, amounts(rampPattern), func(s string) (phase, error) {
		a, b, two := strings.Cut(s, "..")
		if !two {
			return phase{}, fmt.Errorf("%q is not a ramp", s)
		}
		from, err1 := parseStageRate(strings.TrimSpace(a))
		to, err2 := parseStageRate(strings.TrimSpace(b))
		return phase{From: from, To: to}, cmp.Or(err1, err2)
	}, func(p phase) string { return p.From.String() + ".." + p.To.String() })
	forms := map[string]kind[phase]{
		"rate": record(allowed, part[phase]{"rate", steady}, long),
		"ramp": record(allowed, part[phase]{"ramp", rates}, long),
		"burst": record(allowed,
			part[phase]{"burst", placed(whole[uint64](1, 1_000_000_000), func(p *phase) *uint64 { return &p.Burst })},
			part[phase]{"every", placed(span(1), func(p *phase) *time.Duration { return &p.Every })}, long),
	}
	return kind[phase]{
		schema: either(forms["rate"].schema, forms["ramp"].schema, forms["burst"].schema),
		read: func(d *decoder, n *tree.Node, path string, p *phase) bool {
			if n.Shape != tree.Mapping {
				d.fault(n.At, path, "is %s (%s)", n.Shape, allowed)
				return false
			}
			for _, form := range []string{"rate", "ramp", "burst"} {
				if n.Field(form) != nil {
					return forms[form].read(d, n, path, p)
				}
			}
			d.fault(n.At, path, "is not a phase (%s)", allowed)
			return false
		},
		text: func(p *phase) string {
			switch {
			case p.Burst > 0:
				return forms["burst"].text(p)
			case p.From != p.To:
				return forms["ramp"].text(p)
			}
			return forms["rate"].text(p)
		},
	}
}()

// names is a list of existing destinations, comma-separated in a flag.
var names = func() kind[[]string] {
	one := single("a name", object{"type": []string{"string", "number", "boolean"}, "minLength": 1}, func(s string) (string, error) {
		if s == "" {
			return "", errors.New("is empty")
		}
		return s, nil
	}, func(s string) string { return quote(stripUser(s)) })
	return commas(several(one, maxCount, "has %d names (1 to %d)", "a list of names", true))
}()

// maxWatched is the largest number of processes that a scenario watches.
const maxWatched = 64

// processes is a list of pids.
var processes = commas(several(whole[int](1, 1<<22), maxWatched, "has %d processes (1 to %d)", "a list of the numbers of processes", true))

// commas is k, but also accepts comma-separated items in a flag.
func commas[T any](k kind[[]T]) kind[[]T] {
	read := k.read
	k.read = func(d *decoder, n *tree.Node, path string, into *[]T) bool {
		if n.Shape == tree.Text && n.At.Line == 0 { // a flag
			split := &tree.Node{Shape: tree.List, At: n.At}
			for s := range strings.SplitSeq(n.Text, ",") {
				split.Items = append(split.Items, &tree.Node{Shape: tree.Text, Text: s, At: n.At})
			}
			n = split
		}
		return read(d, n, path, into)
	}
	return k
}
