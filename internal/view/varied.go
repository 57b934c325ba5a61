package view

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// A variedKey is a scenario key with its value in each run.
type variedKey struct {
	path     string
	of       []string // by run, unset if absent
	distinct []string
}

// unset stands for a key that a run's scenario does not set.
const unset = "not set"

// variedKeys returns the keys that a matrix, or several scenarios, varied, without those derived from
// others, such as a name.
func variedKeys(entries []Entry) []variedKey {
	settings := make([]map[string]string, len(entries))
	var order []string
	for i, e := range entries {
		settings[i] = map[string]string{}
		for _, f := range compare.Settings(e.Scenario, shortLine) {
			if slices.Contains([]string{"weir", "name", "repeat", "seed"}, f.Name) || strings.HasPrefix(f.Name, "slo") {
				continue
			}
			settings[i][f.Name] = f.Value
			if !slices.Contains(order, f.Name) {
				order = append(order, f.Name)
			}
		}
	}
	var out []variedKey
	for _, path := range order {
		k := variedKey{path: path}
		for _, s := range settings {
			v := cmp.Or(s[path], unset)
			k.of = append(k.of, v)
			if !slices.Contains(k.distinct, v) {
				k.distinct = append(k.distinct, v)
			}
		}
		if len(k.distinct) > 1 {
			out = append(out, k)
		}
	}
	return out
}

// decides reports whether k's value determines the other's in every run: they vary together.
func (k *variedKey) decides(other *variedKey) bool {
	has := map[string]string{}
	for i, v := range k.of {
		if was, ok := has[v]; ok && was != other.of[i] {
			return false
		}
		has[v] = other.of[i]
	}
	return true
}

// overWhat returns the key for the charts' axis, and the keys that distinguish lines: the axis has the
// numeric key with the most values, or else the key with text. x is nil if nothing was varied.
func overWhat(keys []variedKey) (x *variedKey, rest []*variedKey) {
	for i := range keys {
		k := &keys[i]
		if x == nil || keysNumeric(k.distinct) && (!keysNumeric(x.distinct) || len(k.distinct) > len(x.distinct)) {
			x = k
		}
	}
	if x == nil {
		return nil, nil
	}
	for i := range keys {
		if k := &keys[i]; k != x && !x.decides(k) && !slices.ContainsFunc(rest, func(r *variedKey) bool { return r.decides(k) }) {
			rest = append(rest, k)
		}
	}
	return x, rest
}

// varied draws the runs' figures over a key that differs between them: the rate carried, and the deciding
// latency. INVALID runs have no figures to draw.
func varied(p *layout.Page, entries []Entry) {
	x, rest := overWhat(variedKeys(entries))
	if x == nil || !keysNumeric(x.distinct) && len(x.distinct) <= mostRows { // the table of systems says it better
		return
	}
	lone := entries[0].Result.System.Driver // names lines that nothing else distinguishes
	if slices.ContainsFunc(entries, func(e Entry) bool { return e.Result.System.Driver != lone }) || lone == "" {
		lone = "the runs"
	}
	series := func(i int) string {
		var words []string
		for _, k := range rest {
			word := k.of[i]
			if _, numeric := keyNumber(word); numeric || word == unset {
				word = k.path[strings.LastIndexByte(k.path, '.')+1:] + " " + word
			}
			words = append(words, word)
		}
		return cmp.Or(strings.Join(words, ", "), lone)
	}
	head, group := headlines(entries)
	first := true
	draw := func(id, title string, write func(float64) string, of func(r *result.Result) (s Spot, ok bool)) {
		f := Variation{ID: id, Title: title + " over " + x.path, Key: x.path, Write: write}
		missing := 0
		for i, e := range entries {
			if e.Result.Verdict.Status == result.Invalid {
				continue
			}
			s, ok := of(e.Result)
			if !ok {
				missing++
				continue
			}
			s.Series, s.Key = series(i), x.of[i]
			f.Spots = append(f.Spots, s)
		}
		if missing > 0 {
			f.Caption = "Without " + quantity.Counted(missing, "run that has no such figure.", "runs that have no such figure.")
		}
		c := f.Chart()
		if c == nil {
			return
		}
		if first {
			p.Gap()
			p.Chapter("over " + x.path)
			p.Line(layout.Faint.Of("A point is a run, or several repeats of it. INVALID runs are left out. Do not rank runs with different guarantees."))
			first = false
		}
		p.Chart(c)
	}
	draw("varied-rate", "messages per second", quantity.Rate, func(r *result.Result) (Spot, bool) {
		v, ok := carried(r)
		return Spot{Value: v}, ok
	})
	for _, percentile := range []float64{50, 99} {
		name := percent(percentile)
		draw("varied-p"+strings.TrimSuffix(name, " %"), head+" "+name, timeText, func(r *result.Result) (s Spot, ok bool) {
			d := headline(r, group)
			if d == nil {
				return s, false
			}
			row := d.Percentile(percentile)
			if row == nil {
				return s, false
			}
			return Spot{Value: row.Value(), Weak: !row.Supported}, true
		})
	}
	best(p, entries, x)
}

// best draws the highest rate of each system, if several systems ran at several values of x.
func best(p *layout.Page, entries []Entry, x *variedKey) {
	const by = "system.driver"
	if x.path == by {
		return
	}
	highest := map[string]result.Value{}
	var order []string
	for _, e := range entries {
		v, ok := carried(e.Result)
		if !ok || e.Result.Verdict.Status == result.Invalid {
			continue
		}
		name := e.Result.System.Driver
		if _, there := highest[name]; !there {
			order = append(order, name)
		}
		_, _, highest[name] = result.Spread([]result.Value{highest[name], v})
	}
	f := Variation{ID: "varied-best", Title: "highest messages per second of each system", Key: by, Write: quantity.Rate, Caption: "Of all values of " + x.path + " the best. It ranks nothing: see the guarantees."}
	for _, name := range order {
		f.Spots = append(f.Spots, Spot{Series: "best run", Key: name, Value: highest[name]})
	}
	if c := f.Chart(); c != nil {
		p.Chart(c)
	}
}

// carried is the rate of a run: received if known, else confirmed.
func carried(r *result.Result) (v result.Value, ok bool) {
	if rated(r) {
		return result.Exactly(received(r)), true
	}
	return result.Exactly(r.Throughput.ConfirmedPerS), sent(r)
}

// headlines returns the direction whose latency decides: the last one that all runs have.
func headlines(entries []Entry) (title, group string) {
	for _, g := range [...]string{"e2e", "rtt", "send"} {
		kinds, all := map[string]bool{}, true
		for _, e := range entries {
			found := false
			for _, c := range distributions(e.Result) {
				if c.group == g && c.interval {
					kinds[c.name], found = true, true
				}
			}
			all = all && found
		}
		if !all {
			continue
		}
		if len(kinds) == 1 {
			for name := range kinds {
				return g + " " + name, g
			}
		}
		return g + " (response, and service of closed loops)", g
	}
	return "latency", ""
}

// headline returns the deciding distribution of a direction; nil if a run has none.
func headline(r *result.Result, group string) *result.Dist {
	for _, c := range distributions(r) {
		if c.group == group && c.interval {
			return c.d
		}
	}
	return nil
}
