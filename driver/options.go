package driver

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/quantity"
)

// An Option describes one setting of a Config.
type Option struct {
	Name    string   // as in scenarios: "storage", "tls.ca"
	Type    string   // "text", "list", "yes/no", "number", "duration", "size", "secret"
	Default string   // as the user would write it
	Help    string   // one sentence, with the Bounds at its end
	Allowed []string // for text: the only values, nil for any
	Bounds  *Bounds  // for number, duration and size: accepted values, nil for any
	Firm    []string // values with which a confirmation may mean more; see GuaranteePredictor
}

// Options lists the settings of cfg with their current values as defaults, sorted by name. cfg is a
// pointer to a struct; its fields with the tags
//
//	option:"name" help:"one sentence" allowed:"word,word"
//
// are options. A number, duration or size may also have the tags of its Bounds: min:"1ms" max:"1m"
// unit:"1s" zero:"yes". The tag file:"yes" says that a text is the path of a file that the driver
// reads, command:"yes" that a list is a command that it runs, and run:"yes" that a duration is a
// time of the run. An embedded or named struct field without an option tag adds its own fields;
// with one, its name and a dot are their prefix. Types: string, []string, bool, int, int64 (tag
// size:"bytes" reads 1KiB), time.Duration and Secret.
func Options(cfg Config) []Option {
	var os []Option
	walk(reflect.ValueOf(cfg).Elem(), "", func(name string, f reflect.StructField, v reflect.Value) {
		o := Option{Name: name, Type: kind(f), Default: show(f, v), Help: f.Tag.Get("help")}
		if a := f.Tag.Get("allowed"); a != "" {
			o.Allowed = strings.Split(a, ",")
		}
		if f := f.Tag.Get("firm"); f != "" {
			o.Firm = strings.Split(f, ",")
		}
		if o.Bounds = boundsOf(f); o.Bounds != nil {
			o.Help = fmt.Sprintf("%s (%v).", strings.TrimSuffix(o.Help, "."), o.Bounds)
		}
		os = append(os, o)
	})
	sort.Slice(os, func(i, j int) bool { return os[i].Name < os[j].Name })
	return os
}

// HasOption reports whether cfg has a setting of that name.
func HasOption(cfg Config, name string) bool {
	return slices.ContainsFunc(Options(cfg), func(o Option) bool { return o.Name == name })
}

// FileOptions lists the settings of cfg that are paths of files which the driver reads,
// sorted.
func FileOptions(cfg Config) []string { return tagged(cfg, "file") }

// CommandOptions lists the settings of cfg that are commands which the driver runs,
// sorted.
func CommandOptions(cfg Config) []string { return tagged(cfg, "command") }

// TimedOptions lists the settings of cfg that are instants or durations of a run, sorted:
// shortening a run shortens them too.
func TimedOptions(cfg Config) []string { return tagged(cfg, "run") }

// tagged lists the settings of cfg with a tag that is yes, sorted.
func tagged(cfg Config, tag string) []string {
	var names []string
	walk(reflect.ValueOf(cfg).Elem(), "", func(name string, f reflect.StructField, _ reflect.Value) {
		if f.Tag.Get(tag) == "yes" {
			names = append(names, name)
		}
	})
	sort.Strings(names)
	return names
}

// An OptionError is an error in one option.
type OptionError struct {
	Name string // of the option, as it was written
	Err  error
}

// Error returns the option's name and its error.
func (e *OptionError) Error() string { return fmt.Sprintf("option %s: %v", e.Name, e.Err) }

// Unwrap returns the error without the name.
func (e *OptionError) Unwrap() error { return e.Err }

// SetOption sets the option name of cfg from values: one text, or several for a list. The error is
// an *OptionError. An unknown name is an error that suggests the nearest known one.
func SetOption(cfg Config, name string, values ...string) error {
	var names []string
	var target reflect.Value
	var field reflect.StructField
	walk(reflect.ValueOf(cfg).Elem(), "", func(n string, f reflect.StructField, v reflect.Value) {
		names = append(names, n)
		if n == name {
			target, field = v, f
		}
	})
	if !target.IsValid() {
		sort.Strings(names)
		if near := Nearest(name, names); near != "" {
			return &OptionError{name, fmt.Errorf("unknown option, did you mean %q? (%s)", near, strings.Join(names, ", "))}
		}
		if len(names) == 0 {
			return &OptionError{name, errors.New("unknown option (this driver has none)")}
		}
		return &OptionError{name, fmt.Errorf("unknown option (%s)", strings.Join(names, ", "))}
	}
	if err := set(field, target, values); err != nil {
		return &OptionError{name, err}
	}
	return nil
}

// SetSecret sets the option name of cfg, which must have type Secret.
func SetSecret(cfg Config, name string, s Secret) error {
	err := error(&OptionError{name, errors.New("is not a secret")})
	walk(reflect.ValueOf(cfg).Elem(), "", func(n string, _ reflect.StructField, v reflect.Value) {
		if n == name && v.Type() == reflect.TypeFor[Secret]() {
			v.Set(reflect.ValueOf(s))
			err = nil
		}
	})
	return err
}

// Secrets returns the nonempty secrets of cfg.
func Secrets(cfg Config) (all []Secret) {
	walk(reflect.ValueOf(cfg).Elem(), "", func(_ string, _ reflect.StructField, v reflect.Value) {
		if s, ok := reflect.TypeAssert[Secret](v); ok && !s.IsZero() {
			all = append(all, s)
		}
	})
	return all
}

func walk(v reflect.Value, prefix string, visit func(string, reflect.StructField, reflect.Value)) {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("option")
		if f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[Secret]() {
			if name != "" {
				name += "."
			}
			walk(v.Field(i), prefix+name, visit)
			continue
		}
		if name != "" {
			visit(prefix+name, f, v.Field(i))
		}
	}
}

func kind(f reflect.StructField) string {
	switch {
	case f.Type == reflect.TypeFor[Secret]():
		return "secret"
	case f.Type == reflect.TypeFor[time.Duration]():
		return "duration"
	case f.Type.Kind() == reflect.Bool:
		return "yes/no"
	case f.Type.Kind() == reflect.Slice:
		return "list"
	case f.Tag.Get("size") != "":
		return "size"
	case f.Type.Kind() == reflect.Int, f.Type.Kind() == reflect.Int64:
		return "number"
	}
	return "text"
}

func show(f reflect.StructField, v reflect.Value) string {
	switch kind(f) {
	case "list":
		return strings.Join(v.Interface().([]string), ",")
	case "size":
		return FormatSize(v.Int())
	case "duration":
		return quantity.Typed(time.Duration(v.Int()))
	}
	return fmt.Sprint(v.Interface())
}

func set(f reflect.StructField, v reflect.Value, values []string) error {
	k := kind(f)
	if k == "list" {
		if len(values) == 0 {
			return errors.New("is empty (one or more texts)")
		}
		v.Set(reflect.ValueOf(slices.Clone(values)))
		return nil
	}
	if len(values) != 1 {
		return fmt.Errorf("is a list (one %s)", k)
	}
	s := values[0]
	switch k {
	case "secret":
		v.Set(reflect.ValueOf(NewSecret(s, "")))
	case "duration":
		d, err := quantity.Duration(s)
		if err != nil {
			return fmt.Errorf("%q is not a duration (such as 250ms, 5s, 2m)", s)
		}
		v.SetInt(int64(d))
	case "yes/no":
		b, err := strconv.ParseBool(s)
		switch {
		case s == "yes":
			b = true
		case s == "no":
			b = false
		case err != nil:
			return fmt.Errorf("%q is neither true nor false", s)
		}
		v.SetBool(b)
	case "size":
		n, err := ParseSize(s)
		if err != nil {
			return err
		}
		v.SetInt(n)
	case "number":
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", s)
		}
		v.SetInt(n)
	default:
		if a := f.Tag.Get("allowed"); a != "" {
			if words := strings.Split(a, ","); !slices.Contains(words, s) {
				return fmt.Errorf("%q is not known (%s)", s, strings.Join(words, ", "))
			}
		}
		v.SetString(s)
	}
	return nil
}

// sizeUnits are the units of FormatSize.
var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"TiB", 1 << 40},
	{"KB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"TB", 1e12},
}

// ParseSize reads a size in bytes: "512B", "1KiB" and "1K" (1024), "1KB" (1000),
// "1.5KiB", "1024".
func ParseSize(s string) (int64, error) {
	n, err := quantity.Size(s)
	if plain := quantity.MayBeList(s); plain != "" {
		return 0, fmt.Errorf("%q may be one number or a list: write %sB for the number", s, plain)
	}
	if err != nil {
		return 0, fmt.Errorf("%q is not a size (such as 256B, 1KiB, 1MB)", s)
	}
	return n, nil
}

// FormatSize is the inverse of ParseSize, in the shortest exact form.
func FormatSize(n int64) string {
	best := fmt.Sprintf("%dB", n)
	for _, u := range sizeUnits {
		if n >= u.bytes && n%u.bytes == 0 {
			if c := strconv.FormatInt(n/u.bytes, 10) + u.name; len(c) < len(best) {
				best = c
			}
		}
	}
	return best
}

// Nearest returns the element of words closest to s by edit distance, "" if none is within a third
// of its length (at least 2). For a word of up to 4 characters a distance of 2 counts only with the
// same characters.
func Nearest(s string, words []string) string {
	best, at := "", max(2, len(s)/3)+1
	for _, w := range words {
		d := distance(s, w)
		if d == 2 && len(s) <= 4 && !slices.Equal(slices.Sorted(slices.Values([]byte(s))), slices.Sorted(slices.Values([]byte(w)))) {
			continue
		}
		if d < at {
			best, at = w, d
		}
	}
	return best
}

// distance is Levenshtein's edit distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		prev := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cur := row[j+1]
			cost := prev
			if a[i] != b[j] {
				cost++
			}
			row[j+1] = min(cost, cur+1, row[j]+1)
			prev = cur
		}
	}
	return row[len(b)]
}
