package compare

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"unique"

	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/stats"
	"github.com/weirmq/weir/result"
)

// A Record is what comparisons and histories read of a run, in about 1.8 KB: ten thousand of them fit where a
// few hundred results do.
type Record struct {
	ID        string
	Name      string
	Scenario  string // Run.Scenario of the result
	StartedAt string // RFC 3339
	Version   string // of the server
	Verdict   result.Status
	Left      string // why comparisons leave the run out; "": they do not

	Facts       []unique.Handle[Fact] // each name once; almost all are those of other runs
	HasScenario bool                  // whether these files were there, and hosts in the last one
	HasEnv      bool
	HasHosts    bool

	Dists     [numDists]*Quantiles // by dists; nil: the run has no such distribution
	Rates     [numRates]*float64   // sent, confirmed, received; nil: unknown
	Outcomes  [numOutcomes]uint64  // of the whole run
	Resources [numResources]*float64
	Cost      *float64 // of a million messages; nil: unknown
}

// The numbers of figures in a Record.
const (
	numDists     = 8
	numTested    = 8
	numRates     = 3
	numOutcomes  = 12
	numResources = 3
)

// Quantiles are the tested percentiles of a distribution.
type Quantiles struct {
	Samples uint64 // censored ones too
	NS      [numTested]int64
	Known   [numTested]byte // a Knowledge each
}

// A Knowledge says how well a percentile is known.
type Knowledge = byte

// The kinds of knowledge. A marked one cannot be quoted (result.Figure).
const (
	Absent        Knowledge = '-'
	TooFew        Knowledge = '?' // samples
	Exact         Knowledge = '='
	AtLeast       Knowledge = '>'
	ExactMarked   Knowledge = 'l'
	AtLeastMarked Knowledge = 'L'
)

// NewRecord returns the record of a loaded run.
func NewRecord(r Run) *Record {
	x := r.Result
	if x.Verdict.Figures == nil { // of an older version
		judged := *x
		judged.Verdict.Figures, x = judge.Figures(x), &judged
	}
	rec := &Record{
		ID: x.Run.ID, Name: x.Run.Name, Scenario: x.Run.Scenario(), StartedAt: x.Run.StartedAt, Version: x.System.Server.Version,
		Verdict: x.Verdict.Status, Left: leftOut(x), HasScenario: len(r.Scenario) > 0, HasEnv: r.Environment != nil, HasHosts: r.hosts() > 0,
	}
	for _, f := range factsOf(r) {
		rec.Facts = append(rec.Facts, unique.Make(f))
	}
	for i, family := range dists() {
		rec.Dists[i] = quantilesOf(x, nameOf(family))
	}
	// Copies: a pointer into the result would keep all of it.
	rec.Rates = [...]*float64{new(x.Throughput.SentPerS), new(x.Throughput.ConfirmedPerS), nil}
	if v, known := x.Throughput.Received(); known {
		rec.Rates[2] = &v
	}
	rec.Outcomes = outcomesOf(&x.MessagesAll)
	rec.Resources = resourcesOf(x)
	if e := x.Efficiency; e != nil && e.CostPerMillion != nil {
		rec.Cost = new(*e.CostPerMillion)
	}
	return rec
}

func quantilesOf(r *result.Result, name string) *Quantiles {
	d := r.Dist(name)
	if d == nil {
		return nil
	}
	q := &Quantiles{Samples: d.Count + d.Censored}
	for i, p := range tested() {
		row, figure := d.Percentile(p), name+"."+percentileName(p)
		switch {
		case row == nil, row.UnsupportedBy != "", row.Supported && !judge.Known(&r.Verdict, figure, row),
			judge.OfSystem(name) && !row.Supported && stats.Supported(q.Samples, p): // from too few parts of the run
			q.Known[i] = Absent
			continue
		case !row.Supported:
			q.Known[i] = TooFew
			continue
		case row.AtLeast:
			q.Known[i] = AtLeast
		default:
			q.Known[i] = Exact
		}
		q.NS[i] = row.NS
		if f := r.Verdict.Figure(figure); f != nil && !f.Quotable {
			q.Known[i] = map[Knowledge]Knowledge{AtLeast: AtLeastMarked, Exact: ExactMarked}[q.Known[i]]
		}
	}
	return q
}

// at returns the i-th tested percentile.
func (q *Quantiles) at(i int) (float64, known) {
	if q == nil {
		return 0, known{no: true}
	}
	switch k := q.Known[i]; k {
	case TooFew:
		return 0, known{no: true, needs: stats.Needed(tested()[i]), hasIt: q.Samples}
	case Exact, AtLeast, ExactMarked, AtLeastMarked:
		return float64(q.NS[i]), known{atLeast: k == AtLeast || k == AtLeastMarked, marked: k == ExactMarked || k == AtLeastMarked}
	}
	return 0, known{no: true}
}

// Recorded returns the runs with their records. It leaves the given slice alone.
func Recorded(runs []Run) []Run {
	out := slices.Clone(runs)
	for i := range out {
		if out[i].Record == nil {
			out[i].Record = NewRecord(out[i])
		}
	}
	return out
}

// Fact returns the value of a fact; "none" if the run has none.
func (rec *Record) Fact(name string) string {
	for _, h := range rec.Facts {
		if f := h.Value(); f.Name == name {
			return f.Value
		}
	}
	return "none"
}

// facts returns what the run reports about itself.
func (rec *Record) facts() RunFacts {
	all := make([]Fact, len(rec.Facts))
	for i, h := range rec.Facts {
		all[i] = h.Value()
	}
	return RunFacts{all, rec.records}
}

// longestFact limits the value of a fact, in bytes.
const longestFact = 300

// Short returns s if it has at most most bytes. A longer text is cut, and ends with a checksum of all of it, so
// that texts that differ stay different.
func Short(s string, most int) string {
	const sumLen = 18 // with the ellipsis before it
	if len(s) <= most {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return s[:most-sumLen] + "… #" + hex.EncodeToString(sum[:6])
}
