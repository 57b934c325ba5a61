package resulttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// Check validates the folder of a finished run against docs/formats and returns every error,
// joined: undocumented files, fields that no schema has, logs that do not add up to result.json,
// tables that differ from it.
func Check(dir string) error {
	saved, err := result.Read(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range saved.Files {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = checkFile(name, b, saved.Result)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", filepath.Join(dir, name), err))
		}
	}
	for _, name := range []string{result.FileIntervals, result.FileEnvironment, result.FileEvents, result.FileScenario} {
		if !slices.Contains(saved.Files, name) {
			errs = append(errs, fmt.Errorf("%s is missing from %s", name, dir))
		}
	}
	return errors.Join(errs...)
}

// checkFile validates one whole file.
func checkFile(name string, b []byte, r *result.Result) error {
	switch {
	case name == result.FileResult:
		return errors.Join(CheckResult(b), checkFleet(r), checkSlowest(r), checkStages(r))
	case name == result.FileEnvironment:
		return validate(EnvironmentSchema, b)
	case name == result.FileEvents:
		return checkEvents(b, r.Events)
	case name == result.FileHost:
		return checkHost(b, r)
	case name == result.FileIntervals:
		return checkLog(b, r)
	case name == result.FileScenario:
		if !bytes.Contains(b, []byte("weir: 1\n")) {
			return errors.New("does not say weir: 1")
		}
		return nil
	case strings.HasSuffix(name, ".hgrm"):
		return checkTable(strings.TrimSuffix(name, ".hgrm"), b, r)
	case name == result.FileReport:
		if !bytes.Contains(b, []byte(`content="`+result.SchemaReport+`"`)) {
			return fmt.Errorf("does not name the schema %s", result.SchemaReport)
		}
		return nil
	}
	return errors.New("is a file that docs/formats does not know")
}

// CheckResult validates the text of a result.json against its schema.
func CheckResult(b []byte) error { return validate(ResultSchema, b) }

// checkStages checks that a result's stages add up to the window.
func checkStages(r *result.Result) error {
	if len(r.Stages) == 0 {
		return nil
	}
	var errs []error
	var offered, samples uint64
	for i := range r.Stages {
		g := &r.Stages[i]
		if g.ToNS <= g.FromNS || i > 0 && g.FromNS != r.Stages[i-1].ToNS {
			errs = append(errs, fmt.Errorf("stage %d is from %d to %d ns", i+1, g.FromNS, g.ToNS))
		}
		offered += g.Offered
		for _, p := range []*result.Pair{g.Send, g.RTT, g.E2E} {
			if p != nil {
				samples += p.Response.Count + p.Response.Censored
			}
		}
	}
	var want uint64
	for _, d := range []*result.Dist{r.Latency.Send.Response, r.Latency.RTT.Response, r.Latency.E2E.Response} {
		if d != nil {
			want += d.Count + d.Censored
		}
	}
	if offered != r.Messages.Scheduled || samples != want {
		errs = append(errs, fmt.Errorf("the stages offered %d messages and have %d samples; the window %d and %d", offered, samples, r.Messages.Scheduled, want))
	}
	return errors.Join(errs...)
}

// checkFleet checks the consistency of a result's agents and clocks, according to docs/formats.
func checkFleet(r *result.Result) error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if (r.Clock != nil) != (len(r.Agents) > 0) {
		wrong("agents and clock are both there, or neither is")
	}
	pacers := 0
	for i, a := range r.Agents {
		if slices.ContainsFunc(r.Agents[:i], func(x result.Agent) bool { return x.Name == a.Name }) {
			wrong("two agents are called %s", a.Name)
		}
		if a.Missing != (a.Host == nil) {
			wrong("agent %s: missing is %v, and its host is there: %v", a.Name, a.Missing, a.Host != nil)
		}
		if a.StartsNS != nil && (a.Missing || a.Producers == 0) {
			wrong("agent %s: began to send, and is missing or has no producers", a.Name)
		}
		if a.Host != nil {
			pacers += a.Host.Pacers
		}
	}
	if len(r.Agents) > 0 && (pacers != r.Host.Pacers || r.Host.Usage != nil) {
		wrong("the agents have %d pacers, the run %d; what one host used is the agent's alone", pacers, r.Host.Pacers)
	}
	if k := r.Clock; k != nil && !k.Crosses && (k.BoundNS != nil || k.Negative > 0) {
		wrong("nothing crosses, and the clock has a bound, or negatives")
	}
	dists, err := distributions(r)
	if err != nil {
		return err
	}
	lost := r.Lost()
	for name, d := range dists {
		withheld := len(lost.Senders) > 0 && strings.HasPrefix(name, "send.") && name != "send.lateness" && name != "send.held_up" && name != "send.blocked" ||
			lost.Any() && !strings.HasPrefix(name, "send.") && name != "hiccups" // of no message
		crosses := strings.HasPrefix(name, "e2e.") && r.Clock != nil && r.Clock.Crosses && !r.Clock.Same
		if d.ClockBoundNS != nil && (!crosses || r.Clock.BoundNS == nil || *r.Clock.BoundNS != *d.ClockBoundNS) {
			wrong("%s: a bound that is not the clocks'", name)
		}
		for _, p := range d.Percentiles {
			finer := d.ClockBoundNS != nil && p.NS < *d.ClockBoundNS
			switch {
			case p.UnsupportedBy != "" && p.Supported,
				p.UnsupportedBy == result.ByClock && !finer, finer && p.Supported,
				(p.UnsupportedBy == result.ByUnknownClock) != (crosses && r.Clock.BoundNS == nil && !withheld),
				withheld && p.Supported, p.UnsupportedBy == result.ByLostAgents && !withheld:
				wrong("%s: p%v, supported %v, by %q", name, p.P, p.Supported, p.UnsupportedBy)
			}
		}
	}
	return errors.Join(errs...)
}

// checkSlowest checks the slowest messages against their distributions.
func checkSlowest(r *result.Result) error {
	dists, err := distributions(r)
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range r.Slowest {
		name := s.Of + ".response"
		if r.Run.Loop == result.LoopClosed {
			name = s.Of + ".service"
		}
		d := dists[name]
		if d == nil || d.MaxNS == nil || len(s.Messages) == 0 || uint64(len(s.Messages)) > d.Count {
			errs = append(errs, fmt.Errorf("%s has %d slowest messages, and no such distribution", name, len(s.Messages)))
			continue
		}
		for i, c := range s.Clusters {
			if c.Log == nil {
				continue
			}
			from := c.FromNS - 1e9
			if i > 0 {
				from = max(from, s.Clusters[i-1].ToNS)
			}
			for _, l := range c.Log.Lines {
				if l.TNS < from || l.TNS > c.ToNS+1e8 {
					errs = append(errs, fmt.Errorf("%s: a line of a log at %d, beside messages from %d to %d", name, l.TNS, c.FromNS, c.ToNS))
				}
			}
		}
		lost := slices.ContainsFunc(r.Agents, func(a result.Agent) bool { return a.Missing }) // a missing agent did not report its slowest
		for i, m := range s.Messages {
			if m.NS != m.AtNS-m.DueNS || i > 0 && m.NS > s.Messages[i-1].NS || i == 0 && m.NS != *d.MaxNS && !lost {
				errs = append(errs, fmt.Errorf("%s: slowest message %d took %d ns from %d to %d; the maximum is %d", name, i, m.NS, m.DueNS, m.AtNS, *d.MaxNS))
			}
		}
	}
	return errors.Join(errs...)
}

// validate validates a document against the closed schema.
func validate(name string, b []byte) error {
	schemas, err := compiled()
	if err != nil {
		return err
	}
	return hold(schemas[name], b)
}

// compiled returns the closed schemas, of a third-party implementation of the standard. It compiles
// them once: that takes as long as a short run.
var compiled = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	out := map[string]*jsonschema.Schema{}
	c := jsonschema.NewCompiler()
	for name, text := range Schemas(true) {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err := c.AddResource(name, doc); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if out[name], err = c.Compile(name); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return out, nil
})

func hold(schema *jsonschema.Schema, b []byte) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		return err
	}
	return schema.Validate(v)
}

// checkEvents validates each line, and checks their number against result.json.
func checkEvents(b []byte, want int) error {
	n, err := checkRecords(b, EventsSchema)
	if err != nil {
		return err
	}
	if n != want {
		return fmt.Errorf("has %d events, result.json says %d", n, want)
	}
	for _, err := range result.Events(bytes.NewReader(b)) {
		if err != nil {
			return err
		}
	}
	return nil
}

// checkRecords validates each line of a log against its schema, and returns the number of lines
// after the first.
func checkRecords(b []byte, name string) (records int, err error) {
	schemas, err := compiled()
	if err != nil {
		return 0, err
	}
	n := 0
	for line := range bytes.Lines(b) {
		n++
		if err := hold(schemas[name], line); err != nil {
			return 0, fmt.Errorf("line %d: %w", n, err)
		}
		var head struct{ Schema string }
		if err := json.Unmarshal(line, &head); err != nil || (head.Schema != "") != (n == 1) {
			return 0, fmt.Errorf("line %d: the first line, and no other, names the schema (%w)", n, errors.Join(err))
		}
	}
	return n - 1, nil
}

// checkHost validates each line of host.jsonl, and checks that those of the measured window add up
// to result.json.
func checkHost(b []byte, r *result.Result) error {
	if _, err := checkRecords(b, HostSchema); err != nil {
		return err
	}
	until := map[string]int64{}
	sums := make([]*host.Sample, len(r.Resources))
	n := 1
	for x, err := range result.Samples(bytes.NewReader(b)) {
		if err != nil {
			return err
		}
		n++
		before, seen := until[x.Agent]
		if x.ToNS <= x.FromNS || seen && x.FromNS < before {
			return fmt.Errorf("line %d: from %d to %d ns, after one until %d", n, x.FromNS, x.ToNS, before)
		}
		until[x.Agent] = x.ToNS
		for i, want := range r.Resources {
			switch {
			case want.Agent != x.Agent || x.FromNS < want.FromNS || x.ToNS > want.ToNS:
			case sums[i] == nil:
				sums[i] = &x
			default:
				sums[i] = new(sums[i].Then(x))
			}
		}
	}
	for i := range r.Resources {
		want := r.Resources[i]
		if sums[i] == nil {
			return fmt.Errorf("has no line of what result.json sums up (agent %q)", want.Agent)
		}
		got := *sums[i]
		got.Absent, want.Absent = nil, nil // lines report it where it changes
		if d := cmp.Diff(want, got, cmpopts.EquateApprox(1e-6, 1e-6), cmpopts.IgnoreFields(host.ProcessSample{}, "Pids")); d != "" {
			return fmt.Errorf("result.json (-) and the lines (+) differ:\n%s", d)
		}
	}
	return nil
}

// distributions returns the distributions of a result by their names in logs.
func distributions(r *result.Result) (map[string]*result.Dist, error) {
	b, err := json.Marshal(r.Latency)
	if err != nil {
		return nil, err
	}
	var groups map[string]json.RawMessage
	if err := json.Unmarshal(b, &groups); err != nil {
		return nil, err
	}
	out := map[string]*result.Dist{}
	for group, text := range groups {
		var parts map[string]json.RawMessage
		if err := json.Unmarshal(text, &parts); err != nil {
			return nil, err
		}
		if _, itself := parts["count"]; itself {
			parts = map[string]json.RawMessage{"": text}
		}
		for part, text := range parts {
			d := new(result.Dist)
			if err := json.Unmarshal(text, d); err != nil {
				return nil, err
			}
			out[strings.TrimSuffix(group+"."+part, ".")] = d
		}
	}
	return out, nil
}

// A sum is the total of a tag's lines.
type sum struct {
	counts measure.Counts
	max    int64
}

// checkLog checks that the lines of each tag add up to the distribution in result.json.
func checkLog(b []byte, r *result.Result) error {
	if !bytes.HasPrefix(b, []byte("#[Schema: "+result.SchemaIntervals+"]\n")) {
		return errors.New("does not name its schema in its first line")
	}
	sums := map[string]*sum{}
	for log := result.NewLogReader(bytes.NewReader(b)); ; {
		line, err := log.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		s := sums[line.Tag]
		if s == nil {
			s = new(sum)
			sums[line.Tag] = s
		}
		s.counts.Merge(line.Counts)
		s.max = max(s.max, line.Max)
	}
	dists, err := distributions(r)
	if err != nil {
		return err
	}
	var errs []error
	for name, d := range dists {
		tag := name + "." + measure.Measure.String()
		if err := agree(d, sums[tag], sums[tag+".censored"]); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", tag, err))
		}
	}
	for tag := range sums {
		name, measured := strings.CutSuffix(strings.TrimSuffix(tag, ".censored"), "."+measure.Measure.String())
		if measured && dists[name] == nil && name != measure.Hiccups.String() {
			errs = append(errs, fmt.Errorf("%s has lines, and result.json no such distribution", tag))
		}
		if !measured && !strings.HasSuffix(name, "."+measure.WarmUp.String()) {
			errs = append(errs, fmt.Errorf("%s: no tag that docs/formats knows", tag))
		}
	}
	return errors.Join(errs...)
}

// agree compares a distribution with the sums of its lines, by the rules of docs/formats.
func agree(d *result.Dist, observed, censored *sum) error {
	none := func(s *sum) *sum {
		if s == nil {
			return new(sum)
		}
		return s
	}
	observed, censored = none(observed), none(censored)
	if n := observed.counts.Total(); n != d.Count {
		return fmt.Errorf("the lines hold %d samples, result.json says %d", n, d.Count)
	}
	if n := censored.counts.Total(); n != d.Censored {
		return fmt.Errorf("the censored lines hold %d samples, result.json says %d", n, d.Censored)
	}
	if d.MaxNS != nil && observed.max != *d.MaxNS {
		return fmt.Errorf("the largest of the lines is %d ns, result.json says %d", observed.max, *d.MaxNS)
	}
	all := new(measure.Counts)
	all.Merge(&observed.counts)
	all.Merge(&censored.counts)
	most := max(observed.max, censored.max)
	for _, p := range d.Percentiles {
		got, want := p.NS, most
		if p.P < 100 {
			rank := measure.Rank(p.P, all.Total())
			if want = min(all.At(rank), most); p.AtLeast {
				// The lines do not hold the smallest value, which may be above
				// the lowest of its bucket.
				got, want = measure.LowestEquivalent(p.NS), all.LowestAt(rank)
			}
		}
		if got != want {
			return fmt.Errorf("p%v of the lines is %d ns, result.json says %d", p.P, want, p.NS)
		}
	}
	return nil
}

// checkTable compares a percentile table with its distribution.
func checkTable(name string, b []byte, r *result.Result) error {
	t, err := result.ReadHGRM(bytes.NewReader(b))
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(b, []byte("#[Schema: "+result.SchemaHGRM+"]\n")) {
		return errors.New("does not name its schema in its first line")
	}
	if h := r.Host.Hiccups; name == measure.Hiccups.String() { // of the host, not of messages; of a fleet each agent has its own
		if h != nil && (t.Total != h.Count || t.Max != float64(h.MaxNS)) {
			return fmt.Errorf("has %d samples up to %v ns, result.json says %d and %d", t.Total, t.Max, h.Count, h.MaxNS)
		}
		return nil
	}
	dists, err := distributions(r)
	if err != nil {
		return err
	}
	d := dists[name]
	if d == nil {
		d = dists[name+".response"]
	}
	switch {
	case d == nil:
		return errors.New("result.json has no such distribution")
	case t.Total != d.Count || t.Censored != d.Censored:
		return fmt.Errorf("has %d samples and %d censored, result.json says %d and %d", t.Total, t.Censored, d.Count, d.Censored)
	case d.MaxNS == nil || t.Max != float64(*d.MaxNS):
		return fmt.Errorf("its maximum is %v ns, not result.json's", t.Max)
	}
	return nil
}
