package scenario

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/schedule"
)

// YAML renders the scenario with every default written out; resolving it again
// gives the same run again, from any folder. Secrets are written as the reference
// that gave them.
func (s *Scenario) YAML() []byte {
	var b bytes.Buffer
	for _, l := range s.lines() {
		b.WriteString(l.text)
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// A line is one of a rendered scenario.
type line struct {
	text string
	path string // of the key whose value it holds; "" for the head of a section
}

// lines renders the scenario. A key that the run has no use for is left out.
func (s *Scenario) lines() []line {
	w := &renderer{}
	w.line(0, "weir", "1")
	w.line(0, "name", quote(s.Name))
	w.open("system")
	w.line(1, "driver", s.System.Definition.Name)
	w.line(1, "start", s.System.Start.String())
	if s.System.Start == StartProcess {
		w.line(1, "recipe", s.System.Recipe.Name)
	}
	if s.System.Start != StartNone {
		w.line(1, "nodes", strconv.Itoa(s.System.Nodes))
	}
	if s.System.Guarantee != 0 {
		w.line(1, "guarantee", s.System.Guarantee.String())
	}
	w.options(&s.System, s.connected)
	w.topology(s)
	if s.sends() {
		w.load(s)
		w.open("message")
		if !s.Message.Fitted {
			w.line(1, "size", sizesText(s.Message.Sizes))
		}
		w.line(1, "payload", payloadText(&s.Message))
		w.line(1, "keys", keysText(s.Message.Keys))
	}
	if s.consumes() {
		w.open("consume")
		if len(s.System.Definition.Capabilities.Settle) > 0 {
			w.line(1, "settle", s.Consume.Settle.String())
		}
		w.line(1, "prefetch", strconv.Itoa(s.Consume.Prefetch))
		w.line(1, "work", s.Consume.Work.String())
		if s.Consume.From.At != driver.AtDefault {
			w.line(1, "from", positionText(s.Consume.From))
		}
		if s.Consume.Durable != "" {
			w.line(1, "durable", quote(s.Consume.Durable))
		}
	}
	w.line(0, "mode", modes[s.Mode])
	if s.sends() {
		w.line(0, "warmup", s.WarmUp.String())
	}
	if s.Measure > 0 {
		w.line(0, "measure", s.Measure.String())
	}
	if s.Messages > 0 {
		w.line(0, "messages", strconv.FormatUint(s.Messages, 10))
	}
	w.line(0, "drain", s.Drain.String())
	if s.AfterDrain > 0 {
		w.line(0, "after_drain", s.AfterDrain.String())
	}
	w.line(0, "repeat", strconv.Itoa(s.Repeat))
	if len(s.Objectives) > 0 {
		texts := make([]string, len(s.Objectives))
		for i, o := range s.Objectives {
			texts[i] = o.String()
		}
		w.line(0, "slo", flow("", texts))
	}
	if s.Until {
		w.line(0, "until_decided", "yes")
	}
	if p := placementText(s.Placement); p != "" {
		w.line(0, "placement", p)
	}
	w.open("limits")
	w.line(1, "memory", driver.FormatSize(s.Memory))
	w.line(1, "failed", strconv.FormatFloat(s.Failed, 'f', -1, 64))
	w.line(0, "seed", strconv.FormatUint(s.Seed, 10))
	return w.lines
}

func (s *Scenario) consumes() bool { return s.Mode != engine.Produce }
func (s *Scenario) sends() bool    { return s.Mode != engine.Consume }

type renderer struct {
	lines   []line
	section string
}

func (w *renderer) open(key string) {
	w.section = key
	w.lines = append(w.lines, line{text: key + ":"})
}

func (w *renderer) line(depth int, key, value string) {
	path := key
	if depth > 0 {
		path = w.section + "." + key
	}
	w.lines = append(w.lines, line{strings.Repeat("  ", depth) + key + ": " + value, path})
}

// options writes those given and the defaults of the others, so that the file
// means the same to a driver whose defaults have changed. What weir itself told
// the driver of a system that it started is left out.
func (w *renderer) options(sys *System, connected []string) {
	var lines [][2]string
	for _, o := range driver.Options(sys.Config) {
		i := slices.IndexFunc(sys.Options, func(g Option) bool { return g.Name == o.Name })
		switch {
		case o.Name == "address" && sys.Start != StartNone, slices.Contains(connected, o.Name):
		case strings.HasPrefix(o.Name, driver.ServerPrefix) && sys.Start != StartEmbedded:
		case i >= 0:
			lines = append(lines, [2]string{o.Name, sys.Options[i].yaml(o.Type)})
		case o.Type == "secret" || o.Default == "":
		case o.Type == "list":
			lines = append(lines, [2]string{o.Name, flow(o.Name, strings.Split(o.Default, ","))})
		default:
			lines = append(lines, [2]string{o.Name, quote(strip(o.Name, o.Default))})
		}
	}
	if sys.Start == StartProcess {
		for _, name := range slices.Sorted(maps.Keys(sys.Recipe.Settings)) {
			o := driver.ServerPrefix + name
			value := quote(sys.Recipe.Settings[name].Default)
			if i := slices.IndexFunc(sys.Options, func(g Option) bool { return g.Name == o }); i >= 0 {
				value = sys.Options[i].yaml("text")
			}
			lines = append(lines, [2]string{o, value})
		}
	}
	if len(lines) == 0 {
		return
	}
	w.lines = append(w.lines, line{text: "  options:"})
	for _, l := range lines {
		w.lines = append(w.lines, line{"    " + quote(l[0]) + ": " + l[1], "system.options." + l[0]})
	}
}

func (o *Option) yaml(kind string) string {
	switch {
	case o.File:
		return "{file: " + quote(o.Reference) + "}"
	case o.Reference != "":
		return quote(o.Reference)
	case o.Secret:
		return quote("***")
	case kind == "list":
		return flow(o.Name, o.Values)
	}
	return quote(strip(o.Name, o.Values[0]))
}

// Settings returns the given options as texts for a result: secrets and
// references as their reference or ***, URLs without user and password.
func (s *System) Settings() map[string]string {
	out := make(map[string]string, len(s.Options))
	for _, o := range s.Options {
		switch {
		case o.Reference != "":
			out[o.Name] = o.reference()
		case o.Secret:
			out[o.Name] = "***"
		default:
			vs := make([]string, len(o.Values))
			for i, v := range o.Values {
				vs[i] = strip(o.Name, v)
			}
			out[o.Name] = strings.Join(vs, ",")
		}
	}
	return out
}

func (w *renderer) topology(s *Scenario) {
	t := s.Topology
	w.open("topology")
	if len(t.Names) > 0 {
		w.line(1, "names", flow("", t.Names))
	} else {
		w.line(1, "destinations", strconv.Itoa(t.Destinations))
		w.line(1, "partitions", strconv.Itoa(t.Partitions))
		w.line(1, "replication", strconv.Itoa(t.Replication))
	}
	if s.sends() {
		w.line(1, "producers", strconv.Itoa(t.Producers))
	}
	if s.consumes() {
		w.line(1, "subscriptions", strconv.Itoa(t.Subscriptions))
		w.line(1, "consumers", strconv.Itoa(t.Consumers))
	}
}

func (w *renderer) load(s *Scenario) {
	l := s.Load
	w.open("load")
	switch {
	case l.Closed:
		w.line(1, "rate", "max")
	case l.Arrival.Kind == schedule.Trace:
	case len(l.Profile) > 0:
		w.line(1, "profile", profileText(l.Profile))
	default:
		w.line(1, "rate", l.Rate.String())
	}
	if !l.Closed {
		w.line(1, "arrival", arrivalText(l))
	}
	if l.BatchMin == l.BatchMax {
		w.line(1, "batch", strconv.Itoa(l.BatchMin))
	} else {
		w.line(1, "batch", fmt.Sprintf("%d..%d", l.BatchMin, l.BatchMax))
	}
	w.line(1, "in_flight", strconv.Itoa(l.InFlight))
	if !l.Closed {
		w.line(1, "when_full", l.WhenFull.String())
	}
}

func arrivalText(l Load) string {
	switch l.Arrival.Kind {
	case schedule.Gamma:
		return fmt.Sprintf("{gamma: {cv: %v}}", l.Arrival.CV)
	case schedule.Trace:
		return "{trace: " + quote(l.TraceFile) + "}"
	}
	return l.Arrival.Kind.String()
}

func profileText(ps []schedule.Phase) string {
	parts := make([]string, len(ps))
	for i, p := range ps {
		switch {
		case p.Burst > 0:
			parts[i] = fmt.Sprintf("{burst: %d, every: %v, for: %v}", p.Burst, p.Every, p.For)
		case p.From != p.To:
			parts[i] = fmt.Sprintf("{ramp: %v..%v, for: %v}", p.From, p.To, p.For)
		default:
			parts[i] = fmt.Sprintf("{rate: %v, for: %v}", p.From, p.For)
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func sizesText(sizes []schedule.WeightedSize) string {
	if len(sizes) == 1 {
		return driver.FormatSize(int64(sizes[0].Bytes))
	}
	parts := make([]string, len(sizes))
	for i, s := range sizes {
		parts[i] = fmt.Sprintf("{size: %s, weight: %d}", driver.FormatSize(int64(s.Bytes)), s.Weight)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func payloadText(m *Message) string {
	switch {
	case m.Source != "" && m.SourceDir:
		return "{dir: " + quote(m.Source) + "}"
	case m.Source != "":
		return "{file: " + quote(m.Source) + "}"
	case m.Payload.Kind == engine.Compressible:
		return fmt.Sprintf("{compressible: %v}", m.Payload.Saved)
	case m.Payload.Kind == engine.Zeros:
		return "zeros"
	}
	return "random"
}

func keysText(k schedule.Keys) string {
	switch k.Kind {
	case schedule.UniformKeys:
		return fmt.Sprintf("{uniform: %d}", k.N)
	case schedule.ZipfKeys:
		return fmt.Sprintf("{zipf: {n: %d, s: %v}}", k.N, k.S)
	case schedule.RoundRobinKeys:
		return fmt.Sprintf("{round_robin: %d}", k.N)
	}
	return "none"
}

func flow(name string, values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = quote(strip(name, v))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// plain are the texts that YAML reads as themselves, in a list or mapping too.
var plain = regexp.MustCompile(`^-?[A-Za-z0-9_./][A-Za-z0-9_./+-]*$`)

// quote writes s so that YAML reads it back.
func quote(s string) string {
	if plain.MatchString(s) && !strings.EqualFold(s, "null") {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch r {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case '\n':
			b.WriteString(`\n`)
		case '\t':
			b.WriteString(`\t`)
		case '\r':
			b.WriteString(`\r`)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// userInfo are user and password in URLs, also those that no URL may hold: with
// a comma inside, with a slash inside. Rather too much is cut than too little.
var userInfo = []*regexp.Regexp{
	regexp.MustCompile(`(://)[^/?#\s]*@`),
	regexp.MustCompile(`(://)[^,\s]*@`),
}

// stripUser removes user and password from every URL in s; other texts stay as
// they are.
func stripUser(s string) string {
	for _, r := range userInfo {
		s = r.ReplaceAllString(s, "$1")
	}
	return s
}

// bareUser are user and password of an address without a scheme.
var bareUser = regexp.MustCompile(`(^|,)[^,/]*@`)

// strip is stripUser for the option name; addresses need no scheme.
func strip(name, s string) string {
	s = stripUser(s)
	if name == "address" {
		s = bareUser.ReplaceAllString(s, "$1")
	}
	return s
}
