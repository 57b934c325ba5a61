package index

import (
	"encoding/json"
	"errors"
	"unique"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/result"
)

// A line is an entry in the file. Facts are almost the same in all runs, so each is written once, on the
// first line that has it, and then referred to by its number in the file.
type line struct {
	Row    Row         `json:"row"`
	Stamp  string      `json:"stamp"`
	New    [][2]string `json:"new,omitempty"` // facts that no line above has: name and value
	Record *recordLine `json:"record,omitempty"`
}

// A recordLine is a compare.Record. What the row holds too is not repeated.
type recordLine struct {
	ID        string           `json:"id"`
	StartedAt string           `json:"started_at,omitempty"`
	Version   string           `json:"version,omitempty"`
	Verdict   result.Status    `json:"verdict"`
	Left      string           `json:"left_out,omitempty"`
	Facts     []int            `json:"facts"`
	Has       [3]bool          `json:"has"` // scenario, environment, hosts
	Dists     []*quantilesLine `json:"dists"`
	Rates     []*float64       `json:"rates"`
	Outcomes  []uint64         `json:"outcomes,omitempty"` // absent: all are 0
	Resources []*float64       `json:"resources"`
	Cost      *float64         `json:"cost,omitempty"`
}

// A quantilesLine is a compare.Quantiles: the kinds of knowledge as characters, in Known.
type quantilesLine struct {
	Samples uint64  `json:"n"`
	NS      []int64 `json:"ns"`
	Known   string  `json:"known"`
}

// A factTable numbers facts in the order of their first line.
type factTable struct {
	all    []unique.Handle[compare.Fact]
	number map[unique.Handle[compare.Fact]]int
}

// line returns the next line of the file.
func (t *factTable) line(e *entry) line {
	l := line{Row: e.Row, Stamp: e.Stamp}
	r := e.record
	if r == nil {
		return l
	}
	x := &recordLine{
		ID: r.ID, StartedAt: r.StartedAt, Version: r.Version, Verdict: r.Verdict, Left: r.Left,
		Has: [3]bool{r.HasScenario, r.HasEnv, r.HasHosts}, Rates: r.Rates[:], Resources: r.Resources[:], Cost: r.Cost,
	}
	if t.number == nil {
		t.number = map[unique.Handle[compare.Fact]]int{}
	}
	for _, h := range r.Facts {
		i, ok := t.number[h]
		if !ok {
			i = len(t.number)
			t.number[h] = i
			l.New = append(l.New, [2]string{h.Value().Name, h.Value().Value})
		}
		x.Facts = append(x.Facts, i)
	}
	for _, q := range r.Dists {
		var line *quantilesLine
		if q != nil {
			line = &quantilesLine{Samples: q.Samples, NS: q.NS[:], Known: string(q.Known[:])}
		}
		x.Dists = append(x.Dists, line)
	}
	if r.Outcomes != (compare.Record{}).Outcomes {
		x.Outcomes = r.Outcomes[:]
	}
	l.Record = x
	return l
}

var errLine = errors.New("is not a line of this index")

// decode parses the next line of the file.
func (t *factTable) decode(b []byte) (*entry, error) {
	var l line
	if err := json.Unmarshal(b, &l); err != nil {
		return nil, err
	}
	for _, f := range l.New {
		t.all = append(t.all, unique.Make(compare.Fact{Name: f[0], Value: f[1]}))
	}
	x := l.Record
	if x == nil {
		return entryOf(l.Row, nil, l.Stamp), nil
	}
	r := &compare.Record{
		ID: x.ID, Name: l.Row.Name, Scenario: l.Row.Scenario, StartedAt: x.StartedAt, Version: x.Version, Verdict: x.Verdict, Left: x.Left,
		Cost: x.Cost, HasScenario: x.Has[0], HasEnv: x.Has[1], HasHosts: x.Has[2], Facts: make([]unique.Handle[compare.Fact], len(x.Facts)),
	}
	for i, n := range x.Facts {
		if n < 0 || n >= len(t.all) {
			return nil, errLine
		}
		r.Facts[i] = t.all[n]
	}
	if len(x.Dists) != len(r.Dists) || copy(r.Rates[:], x.Rates) != len(r.Rates) || copy(r.Resources[:], x.Resources) != len(r.Resources) ||
		x.Outcomes != nil && copy(r.Outcomes[:], x.Outcomes) != len(r.Outcomes) {
		return nil, errLine
	}
	for i, d := range x.Dists {
		if d == nil {
			continue
		}
		q := &compare.Quantiles{Samples: d.Samples}
		if copy(q.NS[:], d.NS) != len(q.NS) || copy(q.Known[:], d.Known) != len(q.Known) {
			return nil, errLine
		}
		r.Dists[i] = q
	}
	return entryOf(l.Row, r, l.Stamp), nil
}
