package index

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/result"
)

// A filter is a condition on a row, such as "verdict:valid" or "p99<10ms".
type filter func(*Row) bool

// texts are the keys of conditions "key:text", which match a text that contains theirs.
var texts = map[string]func(*Row) string{
	"driver":    func(r *Row) string { return r.Driver },
	"server":    func(r *Row) string { return r.Server },
	"scenario":  func(r *Row) string { return r.Scenario },
	"name":      func(r *Row) string { return r.Name },
	"folder":    func(r *Row) string { return r.Dir },
	"host":      func(r *Row) string { return r.Host },
	"mode":      func(r *Row) string { return r.Mode },
	"guarantee": func(r *Row) string { return r.Guarantee },
}

// statuses are the values of "verdict:".
var statuses = []string{"valid", "suspect", "invalid", "interrupted", "fail", "open"}

// figures are the keys of conditions "key<value". A row without the figure matches no condition on it.
var figures = map[string]struct {
	kind string // of what allowed says
	of   func(*Row) *result.Value
}{
	"p50":       {"time", func(r *Row) *result.Value { return r.P50 }},
	"p99":       {"time", func(r *Row) *result.Value { return r.P99 }},
	"p99.9":     {"time", func(r *Row) *result.Value { return r.P999 }},
	"offered":   {"rate", func(r *Row) *result.Value { return exactly(r.Rate) }},
	"delivered": {"rate", func(r *Row) *result.Value { return exactly(r.Received) }},
	"lost":      {"count", func(r *Row) *result.Value { return counted(r, r.Lost) }},
	"failed":    {"count", func(r *Row) *result.Value { return counted(r, r.Failed) }},
}

// allowed says what a wrong condition of each kind could have been.
var allowed = map[string]string{
	"verdict": "verdict: one of " + strings.Join(statuses, ", "),
	"time":    "a time with its unit, as 10ms",
	"rate":    "a rate, as 1000/s",
	"count":   "a number of messages, as lost=0",
	"key": "driver:, server:, scenario:, name:, folder:, host:, mode:, guarantee: or verdict: with a word after it; " +
		"p50, p99 or p99.9 with <, <=, > or >= and a time, as p99<10ms; offered or delivered and a rate, as delivered>=1000/s; lost or failed and a number, as lost>0, lost=0",
}

// A Searchable is what the words of a search look at in a row.
type Searchable struct {
	Texts   map[string]string        `json:"texts"` // by key
	Figures map[string]*result.Value `json:"figures"`
	Status  string                   `json:"status"`
	SLO     string                   `json:"slo"`
	Open    bool                     `json:"open"`
}

// A Search is what a list without a server needs to search and to sort its rows as List does.
type Search struct {
	Rows     []Searchable      `json:"rows"`
	Statuses []string          `json:"statuses"`
	Kinds    map[string]string `json:"kinds"` // of figures, by key
	Allowed  map[string]string `json:"allowed"`
	Most     int               `json:"most"`   // words
	Orders   map[string][]int  `json:"orders"` // by one of Sorts: numbers of rows
}

// SearchOf returns the search in a listing of a query without an order.
func (x *Index) SearchOf(ctx context.Context, l Listing, q Query) (Search, error) {
	s := Search{Statuses: statuses, Kinds: map[string]string{}, Allowed: allowed, Most: mostWords, Orders: map[string][]int{}}
	at := map[string]int{}
	for i := range l.Rows {
		r := &l.Rows[i]
		row := Searchable{map[string]string{}, map[string]*result.Value{}, r.Status, r.SLO, r.Kind == Unended}
		for key, of := range texts {
			row.Texts[key] = of(r)
		}
		for key, f := range figures {
			s.Kinds[key] = f.kind
			if v := f.of(r); v != nil {
				row.Figures[key] = v
			}
		}
		s.Rows = append(s.Rows, row)
		at[r.Dir] = i
	}
	for _, q.Sort = range Sorts() {
		sorted, err := x.List(ctx, q)
		if err != nil {
			return s, err
		}
		for i := range sorted.Rows {
			s.Orders[q.Sort] = append(s.Orders[q.Sort], at[sorted.Rows[i].Dir])
		}
	}
	return s, nil
}

func exactly(v *float64) *result.Value {
	if v == nil {
		return nil
	}
	return new(result.Exactly(*v))
}

// counted is a count of a run that ended.
func counted(r *Row, n uint64) *result.Value {
	if r.Kind != Ended || r.Wrong != "" {
		return nil
	}
	return new(result.Exactly(float64(n)))
}

// ErrFilter is wrapped by the error for a query whose words hold a wrong condition.
var ErrFilter = errors.New("is not a filter")

// spaced matches an operator with spaces around it.
var spaced = regexp.MustCompile(`\s*([<>]=?|=)\s*`)

// parse splits a search into conditions and the other words. A word in quotes is no condition.
func parse(search string) (all []filter, words []string, err error) {
	for _, w := range strings.Fields(spaced.ReplaceAllString(strings.ToLower(search), "$1")) {
		if len(all)+len(words) == mostWords {
			return all, words, nil
		}
		at := strings.IndexAny(w, "<>=:")
		if plain := strings.Trim(w, `"`); at <= 0 || plain != w || w[0] < 'a' || w[0] > 'z' { // 05:06 is a word
			words = append(words, plain)
			continue
		}
		f, err := condition(w[:at], w[at:])
		if err != nil {
			return nil, nil, fmt.Errorf("%q %w (%s)", w, ErrFilter, err.Error())
		}
		all = append(all, f)
	}
	return all, words, nil
}

// condition parses what follows a key, such as ":valid" or "<=10ms". The error says what is allowed.
func condition(key, rest string) (filter, error) {
	text, ok := strings.CutPrefix(rest, ":")
	switch {
	case ok && key == "verdict":
		if !slices.Contains(statuses, text) {
			return nil, errors.New(allowed["verdict"])
		}
		return func(r *Row) bool { return r.has(text) }, nil
	case ok && texts[key] != nil && text != "":
		of := texts[key]
		return func(r *Row) bool { return strings.Contains(strings.ToLower(of(r)), text) }, nil
	case !ok && figures[key].of != nil:
		return comparison(key, rest)
	}
	return nil, errors.New(allowed["key"])
}

// comparison parses "<10ms". A lower bound matches only what is certain: ">= 8 ms" is above 5 ms, and is not known to
// be below 10 ms.
func comparison(key, rest string) (filter, error) {
	op := rest[:1]
	if len(rest) > 1 && rest[1] == '=' && op != "=" {
		op = rest[:2]
	}
	kind := figures[key].kind
	limit, ok := valueOf(kind, rest[len(op):])
	if !ok {
		return nil, errors.New(allowed[kind])
	}
	of := figures[key].of
	return func(r *Row) bool {
		v := of(r)
		if v == nil {
			return false
		}
		x, atLeast := v.Least()
		switch op {
		case ">":
			return x > limit
		case ">=":
			return x >= limit
		case "<":
			return x < limit && !atLeast
		case "<=":
			return x <= limit && !atLeast
		}
		return x == limit && !atLeast
	}, nil
}

// valueOf parses the value of a figure, in lower case.
func valueOf(kind, text string) (float64, bool) {
	switch kind {
	case "rate":
		v, rest, err := quantity.Decimal(strings.ToUpper(strings.TrimSuffix(text, "/s"))) // 5M
		if err != nil || rest != "" {
			return 0, false
		}
		f, _ := v.Float64()
		return f, true
	case "count":
		n, ok := quantity.Whole(strings.ToUpper(text))
		return float64(n), ok
	}
	d, err := quantity.Duration(text)
	return float64(d), err == nil
}
