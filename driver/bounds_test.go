package driver_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/must"
)

// bounded has an option with each kind of bounds.
type bounded struct {
	Wait    time.Duration `option:"wait" min:"1ms" max:"1m" help:"Pause."`
	Ping    time.Duration `option:"ping" min:"1s" unit:"1s" help:"How often."`
	Timeout time.Duration `option:"timeout" min:"1s" zero:"yes" help:"How long."`
	Buffer  int64         `option:"buffer" size:"bytes" min:"64B" zero:"yes" help:"How much."`
	Most    struct {
		N int `option:"n" min:"1" max:"10000" help:"How many."`
	} `option:"most"`
	Any int `option:"any" help:"Any number."`
}

func (*bounded) Validate() error                                       { return errors.New("its own") }
func (*bounded) Open(context.Context, driver.Run) (driver.Conn, error) { return nil, nil }

func within() *bounded {
	b := &bounded{Wait: time.Second, Ping: 2 * time.Second}
	b.Most.N = 1
	return b
}

// The error names the option and its accepted values, and includes what Validate finds.
func TestCheckHoldsOptionsToTheirBounds(t *testing.T) {
	for option, tc := range map[string]struct{ good, bad, says string }{
		"wait":    {"1m", "61s", "option wait: 1m1s (1ms to 1m)"},
		"ping":    {"3s", "1500ms", "option ping: 1.5s (1s or more, a multiple of 1s)"},
		"timeout": {"0s", "10ms", "option timeout: 10ms (0, or 1s or more)"},
		"buffer":  {"0", "1B", "option buffer: 1B (0, or 64B or more)"},
		"most.n":  {"10000", "0", "option most.n: 0 (1 to 10000)"},
		"any":     {"-7", "", ""},
	} {
		cfg := within()
		must.Do(t, driver.SetOption(cfg, option, tc.good))
		if err := driver.Check(cfg); err == nil || err.Error() != "its own" {
			t.Errorf("%s: %s: %v", option, tc.good, err)
		}
		if tc.bad == "" {
			continue
		}
		must.Do(t, driver.SetOption(cfg, option, tc.bad))
		var oe *driver.OptionError
		if err := driver.Check(cfg); !errors.As(err, &oe) || err.Error() != tc.says+"\nits own" {
			t.Errorf("%s: %s: %v; want %s", option, tc.bad, err, tc.says)
		}
	}
}

// Lists of options, pages and the schema take the bounds from there.
func TestHelpShowsTheBounds(t *testing.T) {
	var all strings.Builder
	for _, o := range driver.Options(within()) {
		all.WriteString(o.Name + ": " + o.Help + "\n")
	}
	want := `any: Any number.
buffer: How much (0, or 64B or more).
most.n: How many (1 to 10000).
ping: How often (1s or more, a multiple of 1s).
timeout: How long (0, or 1s or more).
wait: Pause (1ms to 1m).
`
	if all.String() != want {
		t.Errorf("%s", all.String())
	}
}
