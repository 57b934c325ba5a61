package driver

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"
)

// Bounds are the values that an option takes, by the tags of its field:
//
//	min:"1ms" max:"1m"   from here to there, both of them included
//	unit:"1s"            whole multiples of that only
//	zero:"yes"           and 0, which as a rule means "off", whatever min says
//
// Each is written as the option itself is. Check holds the settings to them; the help
// and the schema of scenarios show them. They are for what one field says by itself:
// what two options have to do with each other belongs in Config.Validate.
type Bounds struct {
	Min, Max int64 // in ns for a duration; math.MinInt64 and math.MaxInt64: none
	Unit     int64 // 0: none
	Zero     bool  // 0 is taken besides
	kind     string
}

// String returns the bounds in words: "1ms to 1m", "0, or 64B or more", "1 or more".
func (b *Bounds) String() string {
	s := ""
	switch {
	case b.Min == math.MinInt64 && b.Max == math.MaxInt64:
	case b.Max == math.MaxInt64:
		s = b.show(b.Min) + " or more"
	case b.Min == math.MinInt64:
		s = "up to " + b.show(b.Max)
	default:
		s = b.show(b.Min) + " to " + b.show(b.Max)
	}
	if b.Unit > 0 {
		if s != "" {
			s += ", "
		}
		s += "a multiple of " + b.show(b.Unit)
	}
	if b.Zero {
		s = "0, or " + s
	}
	return s
}

// show writes n as the option does.
func (b *Bounds) show(n int64) string {
	switch b.kind {
	case "duration":
		return shortly(time.Duration(n))
	case "size":
		return FormatSize(n)
	}
	return strconv.FormatInt(n, 10)
}

// shortly is d.String without the units that are 0: "1m", not "1m0s".
func shortly(d time.Duration) string {
	s := d.String()
	for _, zero := range []struct{ end, from string }{{"m0s", "m"}, {"h0m", "h"}} {
		if n := len(s) - len(zero.end); n > 0 && s[n:] == zero.end {
			s = s[:n] + zero.from
		}
	}
	return s
}

// takes reports whether n is within b.
func (b *Bounds) takes(n int64) bool {
	if n == 0 && b.Zero {
		return true
	}
	return n >= b.Min && n <= b.Max && (b.Unit <= 0 || n%b.Unit == 0)
}

// boundsOf returns the bounds of a field; nil: it has none. A tag that does not say
// a value of the field's type panics: it is a fault of the program's.
func boundsOf(f reflect.StructField) *Bounds {
	b := &Bounds{Min: math.MinInt64, Max: math.MaxInt64, kind: kind(f), Zero: f.Tag.Get("zero") == "yes"}
	found := b.Zero
	for tag, to := range map[string]*int64{"min": &b.Min, "max": &b.Max, "unit": &b.Unit} {
		text, ok := f.Tag.Lookup(tag)
		if !ok {
			continue
		}
		found = true
		v := reflect.New(f.Type).Elem()
		if !v.CanInt() {
			panic(fmt.Sprintf("option %s: a tag %s, and it is not a number", f.Tag.Get("option"), tag))
		}
		if err := set(f, v, []string{text}); err != nil {
			panic(fmt.Sprintf("option %s: tag %s: %v", f.Tag.Get("option"), tag, err))
		}
		*to = v.Int()
	}
	if !found {
		return nil
	}
	return b
}

// Check reports every fault in the settings, joined: options outside of their Bounds,
// each an *OptionError, and what Validate of cfg finds. Callers use it instead of
// Validate. It does no I/O.
func Check(cfg Config) error {
	var errs []error
	walk(reflect.ValueOf(cfg).Elem(), "", func(name string, f reflect.StructField, v reflect.Value) {
		if b := boundsOf(f); b != nil && !b.takes(v.Int()) {
			errs = append(errs, &OptionError{name, fmt.Errorf("%s (%s)", b.show(v.Int()), b)})
		}
	})
	return errors.Join(append(errs, cfg.Validate())...)
}
