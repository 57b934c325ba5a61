package finding

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/quantity"
)

// write writes a value in a format; known is false where there is no such format. Without one
// it takes a text, a number, a finding, or a list.
func write(format string, v any) (text string, known bool) {
	switch format {
	case "":
		return plain(v), true
	case "list":
		return few(v), true
	case "agents":
		return agents(v), true
	case "clause":
		return sentence(v), true
	case "p":
		return Percentile(number(v)), true
	case "share":
		return Share(number(v)), true
	case "part":
		return part(number(v)), true
	case "times":
		return times(number(v)), true
	case "ns":
		return quantity.Time(int64(number(v))), true
	case "signed":
		return signed(int64(number(v))), true
	case "second": // of ns
		return fmt.Sprintf("%.1f s", number(v)/1e9), true
	case "length": // of s
		return length(number(v)), true
	case "count":
		return quantity.Count(uint64(max(0, number(v)))), true
	case "whole":
		return fmt.Sprintf("%.0f", number(v)), true
	case "digits":
		return fmt.Sprintf("%.3g", number(v)), true
	}
	return "", false
}

// number is a value of any kind of number.
func number(v any) float64 {
	switch v := v.(type) {
	case float64:
		return v
	case int:
		return float64(v)
	case int64:
		return float64(v)
	case uint64:
		return float64(v)
	case time.Duration:
		return float64(v)
	}
	return math.NaN()
}

// plain writes a text, a number, or a finding as they are, findings behind semicolons and
// texts behind commas.
func plain(v any) string {
	switch v := v.(type) {
	case []Finding:
		return Join(v, "; ")
	case []string:
		return strings.Join(v, ", ")
	}
	return fmt.Sprint(v)
}

// MostNamed is how many of a list a sentence names.
const MostNamed = 5

// few writes the first of a list, and how many more there are.
func few(v any) string {
	var names []string
	switch v := v.(type) {
	case []string:
		names = v
	case []Finding:
		for _, f := range v {
			names = append(names, f.String())
		}
	}
	if n := len(names) - MostNamed; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:MostNamed], ", "), n)
	}
	return strings.Join(names, ", ")
}

// agents names agents, and says that they are.
func agents(v any) string {
	if names, _ := v.([]string); len(names) == 1 {
		return "agent " + names[0]
	}
	return "agents " + few(v)
}

// sentence makes a clause a sentence.
func sentence(v any) string {
	s := fmt.Sprint(v)
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// Percentile names a percentile: "p99.9".
func Percentile(p float64) string { return "p" + strconv.FormatFloat(p, 'f', -1, 64) }

// Share writes a part of 1 in percent to a tenth, and from ten times on as a factor.
func Share(part float64) string {
	if part > 10 {
		return fmt.Sprintf("%.0f x", part)
	}
	return strconv.FormatFloat(math.Round(part*1000)/10, 'f', -1, 64) + " %"
}

// times says how much something is in terms of what follows: "30 % of", "12 times".
func times(part float64) string {
	if part > 10 {
		return fmt.Sprintf("%.0f times", part)
	}
	return Share(part) + " of"
}

// part writes a part of 1 in percent to three digits, and never as 0 or 100 where it is not.
func part(part float64) string {
	percent := part * 100
	switch {
	case percent <= 0:
		return "0 %"
	case percent < 0.01:
		return "below 0.01 %"
	case percent < 100 && percent >= 99.95:
		return "over 99.9 %"
	}
	scale := math.Pow10(max(0, 2-int(math.Floor(math.Log10(percent)))))
	return fmt.Sprintf("%v %%", math.Round(percent*scale)/scale)
}

// signed writes a duration with its sign.
func signed(ns int64) string {
	if ns < 0 {
		return quantity.Time(ns)
	}
	return "+" + quantity.Time(ns)
}

// length writes seconds as a length of time to three digits.
func length(s float64) string {
	for _, u := range []struct {
		name string
		s    float64
	}{{"h", 3600}, {"min", 60}} {
		if s >= 2*u.s {
			return fmt.Sprintf("%.3g %s", math.Ceil(s/u.s), u.name)
		}
	}
	return fmt.Sprintf("%.3g s", math.Ceil(s))
}
