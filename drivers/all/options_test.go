package all

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
)

// outside returns invalid values of an option, according to its own description.
func outside(o driver.Option) (bad []string) {
	if len(o.Allowed) > 0 {
		bad = append(bad, "no-such-word")
	}
	if o.Bounds == nil {
		return bad
	}
	show := func(n int64) string {
		switch o.Type {
		case "duration":
			return time.Duration(n).String()
		case "size":
			return strconv.FormatInt(n, 10) + "B"
		}
		return strconv.FormatInt(n, 10)
	}
	if least := o.Bounds.Min - 1; least < o.Bounds.Min && (least != 0 || !o.Bounds.Zero) && (least >= 0 || o.Type == "number") {
		bad = append(bad, show(least))
	}
	if most := o.Bounds.Max + 1; most > o.Bounds.Max {
		bad = append(bad, show(most))
	}
	return bad
}

func TestEveryDriverRefusesFaultySettings(t *testing.T) {
	for _, def := range Definitions() {
		refused := func(name string, values ...string) {
			t.Helper()
			cfg := def.New()
			err := driver.SetOption(cfg, name, values...)
			if err == nil {
				err = driver.Check(cfg)
			}
			var bad *driver.OptionError
			if !errors.As(err, &bad) || bad.Name != name {
				t.Errorf("%s: %s %q: %v", def.Name, name, values, err)
			}
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("%s: %s: shows a password: %v", def.Name, name, err)
			}
		}
		options := driver.Options(def.New())
		for _, o := range options {
			for _, v := range outside(o) {
				refused(o.Name, v)
			}
		}
		has := func(name string) bool {
			return slices.ContainsFunc(options, func(o driver.Option) bool { return o.Name == name })
		}
		if has("address") {
			for _, bad := range []string{"no-such-scheme://127.0.0.1:1", "no-such-scheme://ann:canary@127.0.0.1:1"} {
				refused("address", bad)
			}
		}
		if has("tls.cert") {
			refused("tls.cert", "half-of-a-pair")
		}
	}
}
