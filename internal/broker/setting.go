package broker

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirmq/weir/driver"
)

// CheckSetting refuses, with driver.ErrUnsupported, a setting that the recipe has
// not, or a value that it does not take.
func (r *Recipe) CheckSetting(name, value string) error {
	setting, ok := r.Settings[name]
	if !ok {
		names := slices.Sorted(maps.Keys(r.Settings))
		if near := driver.Nearest(name, names); near != "" {
			return fmt.Errorf("%w: %s has no setting %q, did you mean %q? (%s)", driver.ErrUnsupported, r.Name, name, near, strings.Join(names, ", "))
		}
		if len(names) == 0 {
			return fmt.Errorf("%w: %s has no setting %q (it has none)", driver.ErrUnsupported, r.Name, name)
		}
		return fmt.Errorf("%w: %s has no setting %q (%s)", driver.ErrUnsupported, r.Name, name, strings.Join(names, ", "))
	}
	if err := setting.check(value); err != nil {
		return fmt.Errorf("%w: setting %s of %s: %w", driver.ErrUnsupported, name, r.Name, err)
	}
	return nil
}

// check refuses a value that the setting does not take.
func (s Setting) check(value string) error {
	switch {
	case len(s.Allowed) > 0 && !slices.Contains(s.Allowed, value):
		return fmt.Errorf("%q is not known (%s)", value, strings.Join(s.Allowed, ", "))
	case len(value) > 200 || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f || strings.ContainsRune("\"'`\\${}", r) }):
		return errors.New("does not fit (a plain text of one line without quotes, $, braces and backslashes)")
	}
	return nil
}
