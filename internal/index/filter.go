package index

import (
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
var figures = map[string]func(*Row) *result.Value{
	"p50":       func(r *Row) *result.Value { return r.P50 },
	"p99":       func(r *Row) *result.Value { return r.P99 },
	"p99.9":     func(r *Row) *result.Value { return r.P999 },
	"offered":   func(r *Row) *result.Value { return exactly(r.Rate) },
	"delivered": func(r *Row) *result.Value { return exactly(r.Received) },
	"lost":      func(r *Row) *result.Value { return counted(r, r.Lost) },
	"failed":    func(r *Row) *result.Value { return counted(r, r.Failed) },
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
			return nil, errors.New("verdict: one of " + strings.Join(statuses, ", "))
		}
		return func(r *Row) bool { return r.has(text) }, nil
	case ok && texts[key] != nil && text != "":
		of := texts[key]
		return func(r *Row) bool { return strings.Contains(strings.ToLower(of(r)), text) }, nil
	case !ok && figures[key] != nil:
		return comparison(key, rest)
	}
	return nil, errors.New("driver:, server:, scenario:, name:, folder:, host:, mode:, guarantee: or verdict: with a word after it; " +
		"p50, p99 or p99.9 with <, <=, > or >= and a time, as p99<10ms; offered or delivered and a rate, as delivered>=1000/s; lost or failed and a number, as lost>0, lost=0")
}

// comparison parses "<10ms". A lower bound matches only what is certain: ">= 8 ms" is above 5 ms, and is not known to
// be below 10 ms.
func comparison(key, rest string) (filter, error) {
	op := rest[:1]
	if len(rest) > 1 && rest[1] == '=' && op != "=" {
		op = rest[:2]
	}
	limit, err := valueOf(key, rest[len(op):])
	if err != nil || op == ":" {
		return nil, err
	}
	of := figures[key]
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

// valueOf parses the value of a figure.
func valueOf(key, text string) (float64, error) {
	switch key {
	case "offered", "delivered":
		v, rest, err := quantity.Decimal(text)
		if err != nil || rest != "" && rest != "/s" {
			return 0, errors.New("a rate, as 1000/s")
		}
		f, _ := v.Float64()
		return f, nil
	case "lost", "failed":
		n, ok := quantity.Whole(text)
		if !ok {
			return 0, errors.New("a number of messages, as lost=0")
		}
		return float64(n), nil
	}
	d, err := quantity.Duration(text)
	if err != nil {
		return 0, errors.New("a time with its unit, as 10ms")
	}
	return float64(d), nil
}
