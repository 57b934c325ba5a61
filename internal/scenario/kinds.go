package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/scenario/tree"
	"github.com/weirmq/weir/schedule"
)

// A kind is a type of value: how a file or flag gives it, how a file writes it, and its schema. It
// reads and writes a T.
type kind[T any] struct {
	words  []string                                                  // possible words, for completion
	schema object                                                    // immutable once created
	read   func(d *decoder, n *tree.Node, path string, into *T) bool // false: into is unchanged, fault reported
	text   func(*T) string                                           // "" if there is nothing to write
	zero   func(*T) bool                                             // for parts only: the value is not given
}

// placed converts the kind k of a part of T into a kind of T.
func placed[T, V any](k kind[V], part func(*T) *V) kind[T] {
	return kind[T]{
		words: k.words, schema: k.schema,
		read: func(d *decoder, n *tree.Node, path string, into *T) bool { return k.read(d, n, path, part(into)) },
		text: func(v *T) string { return k.text(part(v)) },
		zero: func(v *T) bool { return reflect.ValueOf(part(v)).Elem().IsZero() },
	}
}

// inFull is an error that already says what is allowed.
type inFull struct{ error }

// single is a value given as one text. parse returns what is wrong, to which the fault adds what is
// allowed.
func single[T any](allowed string, schema object, parse func(string) (T, error), write func(T) string) kind[T] {
	return kind[T]{
		schema: schema,
		text:   func(v *T) string { return write(*v) },
		read: func(d *decoder, n *tree.Node, path string, into *T) bool {
			s, ok := d.textOf(n, path, allowed)
			if !ok {
				return false
			}
			v, err := parse(s)
			switch {
			case err == nil:
				*into = v
				return true
			case errors.As(err, &inFull{}):
				d.fault(n.At, path, "%v%s", err, d.sweep(n, path))
			default:
				d.fault(n.At, path, "%v (%s)%s", err, allowed, d.sweep(n, path))
			}
			return false
		},
	}
}

// bounded returns v, parsed from s, if err is nil and v is from lo to hi; what completes the message
// for a malformed s.
func bounded[T cmp.Ordered](s string, v T, err error, malformed bool, what string, lo, hi T) (T, error) {
	switch {
	case err != nil && malformed:
		return v, fmt.Errorf("%q is not %s", s, what)
	case err != nil || cmp.Compare(v, lo) < 0 || cmp.Compare(v, hi) > 0: // NaN sorts before everything
		return v, fmt.Errorf("%s is out of range", s)
	}
	return v, nil
}

// whole is a whole number from lo to hi.
func whole[T int | uint64](lo, hi uint64) kind[T] {
	return single(fmt.Sprintf("a whole number from %d to %d", lo, hi), wholeNumber(lo, hi), func(s string) (T, error) {
		if plain := quantity.MayBeList(s); plain != "" {
			return 0, inFull{fmt.Errorf("%s may be one number or a list: write %s for the number", s, plain)}
		}
		v, err := strconv.ParseUint(strings.TrimPrefix(s, "+"), 10, 64)
		if n, ok := quantity.Whole(s); ok {
			v, err = n, nil
		}
		v, err = bounded(s, v, err, !isNumber(s), "a whole number", lo, hi)
		return T(v), err
	}, func(v T) string { return strconv.FormatUint(uint64(v), 10) })
}

// isNumber reports whether s is a whole number of any size.
func isNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// hasNoUnit reports whether s is a bare number.
func hasNoUnit(s string) bool {
	_, rest, err := quantity.Decimal(strings.TrimPrefix(s, "-"))
	return err == nil && rest == ""
}

// number is a number from lo to hi.
func number(lo, hi float64) kind[float64] {
	return single(fmt.Sprintf("a number from %v to %v", lo, hi), decimal(lo, hi), func(s string) (float64, error) {
		v, err := strconv.ParseFloat(s, 64)
		return bounded(s, v, err, errors.Is(err, strconv.ErrSyntax), "a number", lo, hi)
	}, func(v float64) string { return fmt.Sprint(v) })
}

// share is a percentage, or a number from 0 to 1.
var share = single("a percentage such as 1%, or the same as a part of 1, 0.01",
	either(object{"type": "number", "minimum": 0, "maximum": 1}, texts(sharePattern)),
	func(s string) (float64, error) {
		digits, percent := strings.CutSuffix(s, "%")
		v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if percent {
			v /= 100
		}
		return bounded(s, v, err, errors.Is(err, strconv.ErrSyntax), "a share", 0, 1)
	}, func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) })

// MaxDuration is the longest possible run: the payload header holds 48 bits of nanoseconds.
const MaxDuration = 78 * time.Hour

// longest is MaxDuration as text.
const longest = "78h"

// span is a duration from lo to MaxDuration.
func span(lo time.Duration) kind[time.Duration] {
	return single("a duration such as 250ms, 5s, 2m", duration(), func(s string) (time.Duration, error) {
		v, err := quantity.Duration(s)
		switch {
		case err != nil && hasNoUnit(s):
			return 0, fmt.Errorf("%s has no unit", s)
		case err != nil:
			return 0, fmt.Errorf("%q is not a duration", s)
		case v < 0:
			return 0, fmt.Errorf("%s is negative", s)
		case v < lo:
			return 0, inFull{fmt.Errorf("%s is too short (%v to %s)", s, lo, longest)}
		case v > MaxDuration:
			return 0, inFull{fmt.Errorf("%s is too long (up to %s)", s, longest)}
		}
		return v, nil
	}, quantity.Typed)
}

// sized is a size from lo to hi bytes; under describes lo, "" if it is only a limit.
func sized[T int | int64](lo, hi int64, under string) kind[T] {
	from, to := driver.FormatSize(lo), driver.FormatSize(hi)
	return single(fmt.Sprintf("%s to %s, such as 256B, 1KiB, 1MB", from, to), size(uint64(lo), uint64(hi)), func(s string) (T, error) {
		v, err := driver.ParseSize(s)
		if quantity.MayBeList(s) != "" {
			return 0, inFull{err}
		}
		if err == nil && v < lo && under != "" {
			return 0, inFull{fmt.Errorf("%s is less than %s (%s to %s)", s, under, from, to)}
		}
		v, err = bounded(s, v, err, true, "a size", lo, hi)
		return T(v), err
	}, func(v T) string { return driver.FormatSize(int64(v)) })
}

// rate is a number of messages per time.
var rate = single("messages per time such as 20000/s, 0.5/s, 100/m", either(object{"type": "number", "exclusiveMinimum": 0}, amounts(ratePattern)), parseRate, schedule.Rate.String)

func parseRate(s string) (schedule.Rate, error) { return inWords(schedule.ParseRate(s)) }

// stageRate is the rate of a profile's phase, which may be 0.
var stageRate = single("messages per time such as 20000/s, 0.5/s, 0/s", either(object{"type": "number", "minimum": 0}, amounts(ratePattern)), parseStageRate, schedule.Rate.String)

func parseStageRate(s string) (schedule.Rate, error) { return inWords(schedule.ParseRateOrNone(s)) }

func inWords(r schedule.Rate, err error) (schedule.Rate, error) {
	if err != nil {
		return 0, inFull{err}
	}
	return r, nil
}

// written is an arbitrary text, such as a file's path.
func written(allowed string) kind[string] {
	return single(allowed, anyText(), func(s string) (string, error) { return s, nil }, quote)
}

// A branch is one alternative of a value: a word, or a mapping of one key, its name, to a value.
type branch[T any] struct {
	name string
	set  func(*T) // called when the branch is chosen; may be nil
	of   *kind[T] // kind of the value; nil for a word
}

// choice is one of several branches. which returns the name of a value's branch.
func choice[T any](allowed string, which func(*T) string, branches ...branch[T]) kind[T] {
	var words, names []string
	var forms []any
	for _, b := range branches {
		if b.of == nil {
			words = append(words, b.name)
			continue
		}
		names = append(names, b.name)
		forms = append(forms, one(b.name, b.of.schema))
	}
	schema := object{"enum": words}
	switch {
	case len(words) == 0:
		schema = either(forms...)
	case len(forms) > 0:
		schema = either(append([]any{schema}, forms...)...)
	}
	named := func(name string) branch[T] {
		return branches[slices.IndexFunc(branches, func(b branch[T]) bool { return b.name == name })]
	}
	return kind[T]{
		words: words, schema: schema,
		read: func(d *decoder, n *tree.Node, path string, into *T) bool {
			v := *into
			name, value, ok := d.chosen(n, path, allowed, words, names)
			if !ok {
				return false
			}
			b := named(name)
			if b.set != nil {
				b.set(&v)
			}
			if b.of != nil && !b.of.read(d, value, path+"."+name, &v) {
				return false
			}
			*into = v
			return true
		},
		text: func(v *T) string {
			if b := named(which(v)); b.of != nil {
				return "{" + b.name + ": " + b.of.text(v) + "}"
			}
			return which(v)
		},
	}
}

// chosen reads one of words, or a mapping of exactly one of names to its value.
func (d *decoder) chosen(n *tree.Node, path, allowed string, words, names []string) (string, *tree.Node, bool) {
	at, name, value, known := n.At, strings.TrimSpace(n.Text), n, words
	switch {
	case n.Shape == tree.Mapping && len(names) > 0 && len(n.Fields) == 1:
		at, name, value, known = n.Fields[0].At, n.Fields[0].Key, n.Fields[0].Value, names
	case n.Shape == tree.Mapping && len(names) > 0:
		d.fault(n.At, path, "has %d keys where one is chosen (%s)", len(n.Fields), allowed)
		return "", nil, false
	case n.Shape != tree.Text:
		d.fault(n.At, path, "is %s (%s)%s", n.Shape, allowed, d.sweep(n, path))
		return "", nil, false
	}
	if !slices.Contains(known, name) {
		d.fault(at, path, "%q is not known%s (%s)%s", cut(name), meant(name, known), allowed, d.sweep(n, path))
		return "", nil, false
	}
	return name, value, true
}

// elsewhere returns weir's word for another tool's; "" if unknown.
func elsewhere(word string) string {
	switch strings.ToLower(word) {
	case "publish", "pub", "send", "producer", "write":
		return "produce"
	case "subscribe", "sub", "receive", "consumer", "read":
		return "consume"
	case "rpc", "reply", "request-reply", "reqrep":
		return "request"
	case "exponential", "random":
		return "poisson"
	case "uniform", "fixed", "regular":
		return "constant"
	case "durable", "fsync", "synced", "stored", "persistent":
		return "persisted"
	case "quorum", "all", "majority":
		return "replicated"
	case "manual", "individual":
		return "each"
	}
	return ""
}

// meant suggests weir's word for another tool's, or the nearest of words.
func meant(s string, words []string) string {
	if other := elsewhere(strings.TrimSpace(s)); slices.Contains(words, other) {
		return fmt.Sprintf(", did you mean %q?", other)
	}
	if near := driver.Nearest(strings.TrimSpace(s), words); near != "" {
		return fmt.Sprintf(", did you mean %q?", near)
	}
	return ""
}

func cut(s string) string { return s[:min(len(s), 40)] }

// word is one of words, each of which stands for the value at its index.
func word[T comparable](words []string, values ...T) kind[T] {
	return oneOf(strings.Join(words, ", "), words, values...)
}

// oneOf is like word, but allows more than the words.
func oneOf[T comparable](allowed string, words []string, values ...T) kind[T] {
	branches := make([]branch[T], len(words))
	for i, w := range words {
		branches[i] = branch[T]{name: w, set: func(v *T) { *v = values[i] }}
	}
	return choice(allowed, func(v *T) string { return words[slices.Index(values, *v)] }, branches...)
}

// A part is one key of a mapping.
type part[T any] struct {
	key string
	kind[T]
}

// record is a mapping with exactly these parts.
func record[T any](allowed string, parts ...part[T]) kind[T] {
	var keys []string
	var schema []any
	for _, p := range parts {
		keys = append(keys, p.key)
		schema = append(schema, p.key, p.schema)
	}
	return kind[T]{
		schema: mapped(schema...),
		read: func(d *decoder, n *tree.Node, path string, into *T) bool {
			if n.Shape != tree.Mapping {
				d.fault(n.At, path, "is %s (%s)", n.Shape, allowed)
				return false
			}
			if !d.only(n, path, keys...) {
				return false
			}
			v, ok := *into, true
			for _, p := range parts {
				ok = p.read(d, n.Field(p.key), path+"."+p.key, &v) && ok
			}
			if ok {
				*into = v
			}
			return ok
		},
		text: func(v *T) string {
			texts := make([]string, len(parts))
			for i, p := range parts {
				texts[i] = p.key + ": " + p.text(v)
			}
			return "{" + strings.Join(texts, ", ") + "}"
		},
	}
}

// several is a list of at most most values of a kind, without duplicates if distinct. counted is the
// message for a wrong number of values, given that number and most.
func several[T any](of kind[T], most int, counted, allowed string, distinct bool) kind[[]T] {
	return kind[[]T]{
		schema: listOf(of.schema, most),
		read: func(d *decoder, n *tree.Node, path string, into *[]T) bool {
			if n.Shape != tree.List {
				d.fault(n.At, path, "is %s (%s)", n.Shape, allowed)
				return false
			}
			if len(n.Items) == 0 || len(n.Items) > most {
				d.fault(n.At, path, counted, len(n.Items), most)
				return false
			}
			out, seen, ok := make([]T, len(n.Items)), map[string]bool{}, true
			for i, item := range n.Items {
				at := fmt.Sprintf("%s[%d]", path, i)
				if !of.read(d, item, at, &out[i]) {
					ok = false
					continue
				}
				t := fmt.Sprint(out[i])
				if distinct && seen[t] {
					d.fault(item.At, at, "%s is given twice (once)", t)
					ok = false
				}
				seen[t] = true
			}
			if ok {
				*into = out
			}
			return ok
		},
		text: func(v *[]T) string {
			texts := make([]string, len(*v))
			for i := range *v {
				texts[i] = of.text(&(*v)[i])
			}
			return "[" + strings.Join(texts, ", ") + "]"
		},
	}
}
