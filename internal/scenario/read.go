package scenario

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/schedule"
)

// MaxDuration is the longest a run may be: the stamp holds 48 bits of
// nanoseconds.
const MaxDuration = 78 * time.Hour

// A decoder reads typed values from a tree and collects what is wrong.
type decoder struct {
	root        *node
	faults      Faults
	flags       map[string]string // path to the flag that set it
	optionNames []string          // of the chosen driver
	places      map[string]*node  // the options given
}

func (d *decoder) fault(at Position, path, format string, args ...any) {
	if at.Line == 0 && at.Source != "" && d.flags[path] == at.Source {
		path = "" // the flag's name says it
	}
	d.faults = append(d.faults, Fault{at, path, fmt.Sprintf(format, args...)})
}

// at returns where the value of path was written, the zero Position for a
// default.
func (d *decoder) at(path string) Position {
	if n := d.find(path); n != nil {
		return n.at
	}
	return Position{}
}

// find returns the value at path, nil where none is given.
func (d *decoder) find(path string) *node {
	n := d.root
	for part := range strings.SplitSeq(path, ".") {
		n = n.field(part)
	}
	return n
}

func (d *decoder) has(path string) bool { return d.find(path) != nil }

// scalar returns the text at path.
func (d *decoder) scalar(path, allowed string) (string, *node, bool) {
	n := d.find(path)
	if n == nil {
		return "", nil, false
	}
	s, ok := d.textOf(n, path, allowed)
	return s, n, ok
}

func (d *decoder) textOf(n *node, path, allowed string) (string, bool) {
	if n.shape != text {
		d.fault(n.at, path, "is %s (%s)", n.shape, allowed)
		return "", false
	}
	return strings.TrimSpace(n.text), true
}

// word reads one of allowed; later are words of later builds.
func (d *decoder) word(path string, otherwise string, allowed []string, later ...string) string {
	s, n, ok := d.scalar(path, strings.Join(allowed, ", "))
	if !ok {
		return otherwise
	}
	return d.oneOf(n, path, s, otherwise, allowed, later)
}

func (d *decoder) oneOf(n *node, path, s, otherwise string, allowed, later []string) string {
	switch {
	case slices.Contains(allowed, s):
		return s
	case slices.Contains(later, s):
		d.fault(n.at, path, "%s is not in this build yet (%s)", s, strings.Join(allowed, ", "))
	default:
		if near := driver.Nearest(s, allowed); near != "" {
			d.fault(n.at, path, "%q is not known, did you mean %q? (%s)", s, near, strings.Join(allowed, ", "))
		} else {
			d.fault(n.at, path, "%q is not known (%s)", s, strings.Join(allowed, ", "))
		}
	}
	return otherwise
}

// count reads a whole number of lo to hi.
func (d *decoder) count(path string, otherwise, lo, hi int) int {
	n := d.find(path)
	if n == nil {
		return otherwise
	}
	v, ok := d.number(n, path, int64(lo), int64(hi))
	if !ok {
		return otherwise
	}
	return int(v)
}

func (d *decoder) number(n *node, path string, lo, hi int64) (int64, bool) {
	allowed := fmt.Sprintf("a whole number from %d to %d", lo, hi)
	s, ok := d.textOf(n, path, allowed)
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err != nil && isNumber(s):
		d.fault(n.at, path, "%s is out of range (%s)", s, allowed)
	case err != nil:
		d.fault(n.at, path, "%q is not a whole number (%s)", s, allowed)
	case v < lo || v > hi:
		d.fault(n.at, path, "%d is out of range (%s)", v, allowed)
	default:
		return v, true
	}
	return 0, false
}

// isNumber reports whether s is a whole number of any size.
func isNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// unsigned reads a whole number of lo and more.
func (d *decoder) unsigned(path string, otherwise, lo uint64) uint64 {
	allowed := fmt.Sprintf("a whole number from %d to %d", lo, uint64(math.MaxUint64))
	s, n, ok := d.scalar(path, allowed)
	if !ok {
		return otherwise
	}
	v, err := strconv.ParseUint(s, 10, 64)
	switch {
	case err != nil && !isNumber(s):
		d.fault(n.at, path, "%q is not a whole number (%s)", s, allowed)
	case err != nil || v < lo:
		d.fault(n.at, path, "%s is out of range (%s)", s, allowed)
	default:
		return v
	}
	return otherwise
}

// float reads a number of lo to hi.
func (d *decoder) float(n *node, path string, lo, hi float64) (float64, bool) {
	allowed := fmt.Sprintf("a number from %v to %v", lo, hi)
	s, ok := d.textOf(n, path, allowed)
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseFloat(s, 64)
	switch {
	case errors.Is(err, strconv.ErrSyntax):
		d.fault(n.at, path, "%q is not a number (%s)", s, allowed)
	case err != nil || !(v >= lo && v <= hi):
		d.fault(n.at, path, "%s is out of range (%s)", s, allowed)
	default:
		return v, true
	}
	return 0, false
}

// share reads a part of a whole, 0 without one: a percentage, or a number of 0 to 1.
func (d *decoder) share(path string) float64 {
	const allowed = "a percentage such as 1%, or the same as a part of 1, 0.01"
	s, n, ok := d.scalar(path, allowed)
	if !ok {
		return 0
	}
	number, percent := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		v /= 100
	}
	switch {
	case errors.Is(err, strconv.ErrSyntax):
		d.fault(n.at, path, "%q is not a share (%s)", s, allowed)
	case err != nil || !(v >= 0 && v <= 1):
		d.fault(n.at, path, "%s is out of range (%s)", s, allowed)
	default:
		return v
	}
	return 0
}

const durations = "a duration such as 250ms, 5s, 2m"

// span reads a duration of lo to MaxDuration.
func (d *decoder) span(path string, otherwise, lo time.Duration) time.Duration {
	n := d.find(path)
	if n == nil {
		return otherwise
	}
	v, ok := d.duration(n, path, lo)
	if !ok {
		return otherwise
	}
	return v
}

func (d *decoder) duration(n *node, path string, lo time.Duration) (time.Duration, bool) {
	s, ok := d.textOf(n, path, durations)
	if !ok {
		return 0, false
	}
	v, err := time.ParseDuration(s)
	switch {
	case err != nil && isNumber(s):
		d.fault(n.at, path, "%s has no unit (%s)", s, durations)
	case err != nil:
		d.fault(n.at, path, "%q is not a duration (%s)", s, durations)
	case v < 0:
		d.fault(n.at, path, "%s is negative (%s)", s, durations)
	case v < lo:
		d.fault(n.at, path, "%s is too short (%v to %v)", s, lo, MaxDuration)
	case v > MaxDuration:
		d.fault(n.at, path, "%s is too long (up to %v)", s, MaxDuration)
	default:
		return v, true
	}
	return 0, false
}

// bytes reads a size of lo to hi.
func (d *decoder) bytes(n *node, path string, lo, hi int64) (int64, bool) {
	return d.sized(n, path, lo, hi, lo)
}

// sized is bytes where least is what is said to be allowed, because the caller
// says why what lies between lo and it is not.
func (d *decoder) sized(n *node, path string, lo, hi, least int64) (int64, bool) {
	allowed := fmt.Sprintf("%s to %s, such as 256B, 1KiB, 1MB", driver.FormatSize(least), driver.FormatSize(hi))
	s, ok := d.textOf(n, path, allowed)
	if !ok {
		return 0, false
	}
	v, err := driver.ParseSize(s)
	switch {
	case err != nil:
		d.fault(n.at, path, "%q is not a size (%s)", s, allowed)
	case v < lo || v > hi:
		d.fault(n.at, path, "%s is out of range (%s)", s, allowed)
	default:
		return v, true
	}
	return 0, false
}

// rate reads messages per time.
func (d *decoder) rate(n *node, path string) (schedule.Rate, bool) {
	s, ok := d.textOf(n, path, "messages per time such as 20000/s, 0.5/s, 100/m")
	if !ok {
		return 0, false
	}
	return d.parseRate(n, path, s)
}

func (d *decoder) parseRate(n *node, path, s string) (schedule.Rate, bool) {
	r, err := schedule.ParseRate(s)
	if err != nil {
		d.fault(n.at, path, "%v", err)
		return 0, false
	}
	return r, true
}

// only reports every key of the mapping n that is not in allowed, and every
// one of needed that is missing.
func (d *decoder) only(n *node, path string, needed ...string) bool {
	ok := true
	for _, f := range n.fields {
		if slices.Contains(needed, f.key) {
			continue
		}
		ok = false
		if near := driver.Nearest(f.key, needed); near != "" {
			d.fault(f.at, join(path, f.key), "unknown key, did you mean %q? (%s)", near, strings.Join(needed, ", "))
		} else {
			d.fault(f.at, join(path, f.key), "unknown key (%s)", strings.Join(needed, ", "))
		}
	}
	for _, k := range needed {
		if n.field(k) == nil {
			d.fault(n.at, join(path, k), "is missing (%s)", strings.Join(needed, ", "))
			ok = false
		}
	}
	return ok
}

// choice reads a mapping of exactly one key, one of allowed; later are those of
// later builds.
func (d *decoder) choice(n *node, path, allowed string, names []string, later ...string) (string, *node) {
	if n.shape != mapping {
		d.fault(n.at, path, "is %s (%s)", n.shape, allowed)
		return "", nil
	}
	if len(n.fields) != 1 {
		d.fault(n.at, path, "has %d keys where one is chosen (%s)", len(n.fields), allowed)
		return "", nil
	}
	f := n.fields[0]
	switch {
	case slices.Contains(names, f.key):
		return f.key, f.value
	case slices.Contains(later, f.key):
		d.fault(f.at, path, "%s is not in this build yet (%s)", f.key, allowed)
	default:
		if near := driver.Nearest(f.key, names); near != "" {
			d.fault(f.at, path, "%q is not known, did you mean %q? (%s)", f.key, near, allowed)
		} else {
			d.fault(f.at, path, "%q is not known (%s)", f.key, allowed)
		}
	}
	return "", nil
}
