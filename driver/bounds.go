package driver

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	"github.com/weirmq/weir/internal/quantity"
)

// Bounds are the values that an option accepts, from the tags of its field:
//
//	min:"1ms" max:"1m"   the range, inclusive
//	unit:"1s"            whole multiples of that only
//	zero:"yes"           and 0, which usually means "off", whatever min says
//
// Each is written as the option itself is. Check enforces them; the help and the scenario schema
// show them. They concern a single field: relations between options belong in Config.Validate.
type Bounds struct {
	Min, Max int64 // in ns for a duration; math.MinInt64 and math.MaxInt64: none
	Unit     int64 // 0: none
	Zero     bool  // 0 is accepted too
	kind     string
}

// String formats the bounds: "1ms to 1m", "0, or 64B or more", "1 or more".
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

// show formats n as the option does.
func (b *Bounds) show(n int64) string {
	switch b.kind {
	case "duration":
		return quantity.Typed(time.Duration(n))
	case "size":
		return FormatSize(n)
	}
	return strconv.FormatInt(n, 10)
}

// takes reports whether n is within b.
func (b *Bounds) takes(n int64) bool {
	if n == 0 && b.Zero {
		return true
	}
	return n >= b.Min && n <= b.Max && (b.Unit <= 0 || n%b.Unit == 0)
}

// boundsOf returns the bounds of a field; nil: it has none. It panics on a tag that is not a value
// of the field's type, which is a programming error.
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

// Check reports every error in the settings, joined: options outside their Bounds, each an
// *OptionError, and what cfg's Validate finds. Callers use it instead of Validate. It does no I/O.
func Check(cfg Config) error {
	var errs []error
	walk(reflect.ValueOf(cfg).Elem(), "", func(name string, f reflect.StructField, v reflect.Value) {
		if b := boundsOf(f); b != nil && !b.takes(v.Int()) {
			errs = append(errs, &OptionError{name, fmt.Errorf("%s (%s)", b.show(v.Int()), b)})
		}
	})
	return errors.Join(append(errs, cfg.Validate())...)
}
