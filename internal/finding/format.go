package finding

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/weirmq/weir/internal/quantity"
)

// formats are the formatting functions of templates.
var formats = template.FuncMap{
	"has":    func(v any) bool { return v != nil },
	"join":   join,
	"few":    few,
	"agents": agents,
	"clause": clause,
	"p":      func(v any) string { return Percentile(number(v)) },
	"share":  func(v any) string { return Share(number(v)) },
	"part":   func(v any) string { return part(number(v)) },
	"times":  func(v any) string { return times(number(v)) },
	"ns":     func(v any) string { return quantity.Time(int64(number(v))) },
	"signed": func(v any) string { return strings.Replace("+"+quantity.Time(int64(number(v))), "+-", "-", 1) },
	"second": func(v any) string { return fmt.Sprintf("%.1f s", number(v)/1e9) }, // of ns
	"length": func(v any) string { return length(number(v)) },                    // of s
	"count":  func(v any) string { return quantity.Count(uint64(max(0, number(v)))) },
	"whole":  func(v any) string { return fmt.Sprintf("%.0f", number(v)) },
	"digits": func(v any) string { return fmt.Sprintf("%.3g", number(v)) },
}

// number converts any number.
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

// texts converts a list's elements to texts.
func texts(v any) (all []string) {
	switch v := v.(type) {
	case []string:
		return v
	case []Finding:
		for _, f := range v {
			all = append(all, fmt.Sprint(f))
		}
	}
	return all
}

func join(list any, between string) string { return strings.Join(texts(list), between) }

// MostNamed is how many items of a list a sentence names.
const MostNamed = 5

// few lists the first items, and counts the rest.
func few(list any) string {
	names := texts(list)
	if n := len(names) - MostNamed; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:MostNamed], ", "), n)
	}
	return strings.Join(names, ", ")
}

// agents lists agents after the word "agent" or "agents".
func agents(names any) string {
	if len(texts(names)) == 1 {
		return "agent " + few(names)
	}
	return "agents " + few(names)
}

// clause turns a clause into a sentence.
func clause(v any) string {
	s := fmt.Sprint(v)
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// Percentile names a percentile: "p99.9".
func Percentile(p float64) string { return "p" + strconv.FormatFloat(p, 'f', -1, 64) }

// Share formats a fraction as a percentage to a tenth, and from 10 on as a factor.
func Share(part float64) string {
	if part > 10 {
		return fmt.Sprintf("%.0f x", part)
	}
	return strconv.FormatFloat(math.Round(part*1000)/10, 'f', -1, 64) + " %"
}

// times expresses a ratio to what follows: "30 % of", "12 times".
func times(part float64) string {
	if part > 10 {
		return fmt.Sprintf("%.0f times", part)
	}
	return Share(part) + " of"
}

// part formats a fraction as a percentage to three digits, as 0 or 100 only if exact.
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

// length formats seconds as a duration to three digits.
func length(s float64) string {
	switch {
	case s >= 7200:
		return fmt.Sprintf("%.3g h", math.Ceil(s/3600))
	case s >= 120:
		return fmt.Sprintf("%.3g min", math.Ceil(s/60))
	}
	return fmt.Sprintf("%.3g s", math.Ceil(s))
}
