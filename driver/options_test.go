package driver_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
)

// common is what several drivers embed.
type common struct {
	Address []string `option:"address" help:"Where the system is."`
}

type tlsConfig struct {
	CA string `option:"ca" help:"Certificate authority file."`
}

// settings has an option of every type.
type settings struct {
	common
	Storage  string        `option:"storage" help:"Where messages are kept." allowed:"file,memory"`
	Sync     time.Duration `option:"sync" help:"How often the file is synced."`
	Durable  bool          `option:"durable" help:"Whether it survives."`
	Replicas int           `option:"replicas" help:"How many copies."`
	Buffer   int64         `option:"buffer" size:"bytes" help:"Memory of the client."`
	Password driver.Secret `option:"password" help:"Of the user."`
	TLS      tlsConfig     `option:"tls"`

	state struct{ opened bool } // not an option
}

func (*settings) Validate() error                                       { return nil }
func (*settings) Open(context.Context, driver.Run) (driver.Conn, error) { return nil, nil }

func defaults() *settings {
	s := &settings{Storage: "file", Sync: 2 * time.Minute, Durable: true, Replicas: 1, Buffer: 64 << 10, Password: driver.NewSecret("hunter2", "")}
	s.Address = []string{"a:1", "b:2"}
	s.state.opened = false
	return s
}

func TestOptionsDescribesEverySettingWithItsDefault(t *testing.T) {
	want := []driver.Option{
		{Name: "address", Type: "list", Default: "a:1,b:2", Help: "Where the system is."},
		{Name: "buffer", Type: "size", Default: "64KiB", Help: "Memory of the client."},
		{Name: "durable", Type: "yes/no", Default: "true", Help: "Whether it survives."},
		{Name: "password", Type: "secret", Default: "***", Help: "Of the user."},
		{Name: "replicas", Type: "number", Default: "1", Help: "How many copies."},
		{Name: "storage", Type: "text", Default: "file", Help: "Where messages are kept.", Allowed: []string{"file", "memory"}},
		{Name: "sync", Type: "duration", Default: "2m", Help: "How often the file is synced."},
		{Name: "tls.ca", Type: "text", Help: "Certificate authority file."},
	}
	golden.Equal(t, want, driver.Options(defaults()), "")
}

func TestSetOption(t *testing.T) {
	for _, tc := range []struct {
		does   string
		name   string
		values []string
		got    func(*settings) any
		want   any
	}{
		{"sets a text that is allowed", "storage", []string{"memory"}, func(s *settings) any { return s.Storage }, "memory"},
		{"sets a list", "address", []string{"c:3"}, func(s *settings) any { return s.Address }, []string{"c:3"}},
		{"sets a list of several", "address", []string{"c:3", "d:4"}, func(s *settings) any { return s.Address }, []string{"c:3", "d:4"}},
		{"sets a duration", "sync", []string{"250ms"}, func(s *settings) any { return s.Sync }, 250 * time.Millisecond},
		{"sets a no", "durable", []string{"no"}, func(s *settings) any { return s.Durable }, false},
		{"sets a false", "durable", []string{"false"}, func(s *settings) any { return s.Durable }, false},
		{"sets a number", "replicas", []string{"3"}, func(s *settings) any { return s.Replicas }, 3},
		{"sets a size", "buffer", []string{"1MiB"}, func(s *settings) any { return s.Buffer }, int64(1 << 20)},
		{"sets a secret", "password", []string{"s3cret"}, func(s *settings) any { return s.Password.Reveal() }, "s3cret"},
		{"sets an option in a group", "tls.ca", []string{"ca.pem"}, func(s *settings) any { return s.TLS.CA }, "ca.pem"},
	} {
		t.Run(tc.does, func(t *testing.T) {
			s := defaults()
			must.Do(t, driver.SetOption(s, tc.name, tc.values...))
			golden.Equal(t, tc.want, tc.got(s), "")
		})
	}
}

func TestSetOptionRefuses(t *testing.T) {
	for _, tc := range []struct {
		what   string
		name   string
		values []string
		says   string
	}{
		{"an unknown name, with the nearest", "storag", []string{"x"}, `did you mean "storage"?`},
		{"an unknown name, with all there are", "frobnicate", []string{"x"}, "(address, buffer, durable, password, replicas, storage, sync, tls.ca)"},
		{"a group's name", "tls", []string{"x"}, "unknown option"},
		{"a word that is not allowed", "storage", []string{"tape"}, `"tape" is not known (file, memory)`},
		{"a duration without a unit", "sync", []string{"5"}, `"5" is not a duration (such as 250ms, 5s, 2m)`},
		{"neither yes nor no", "durable", []string{"perhaps"}, `"perhaps" is neither true nor false`},
		{"a fraction for a number", "replicas", []string{"1.5"}, `"1.5" is not a whole number`},
		{"a number that does not fit", "replicas", []string{"99999999999999999999"}, "is not a whole number"},
		{"a size that is none", "buffer", []string{"much"}, `"much" is not a size`},
		{"a list for one value", "storage", []string{"file", "memory"}, "is a list (one text)"},
		{"nothing for one value", "storage", nil, "(one text)"},
		{"an empty list", "address", nil, "is empty"},
	} {
		t.Run(tc.what, func(t *testing.T) {
			s := defaults()
			err := driver.SetOption(s, tc.name, tc.values...)
			var oe *driver.OptionError
			if !errors.As(err, &oe) || oe.Name != tc.name || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %v, want an *OptionError of %s that says %q", err, tc.name, tc.says)
			}
			if d := cmp.Diff(driver.Options(defaults()), driver.Options(s)); d != "" {
				t.Errorf("something was set all the same:\n%s", d)
			}
		})
	}
}

func TestSetOptionCopiesTheList(t *testing.T) {
	s, list := defaults(), []string{"c:3"}
	must.Do(t, driver.SetOption(s, "address", list...))
	list[0] = "changed"
	if s.Address[0] != "c:3" {
		t.Error("the caller's list is the setting")
	}
}

type nothing struct{}

func (*nothing) Validate() error                                       { return nil }
func (*nothing) Open(context.Context, driver.Run) (driver.Conn, error) { return nil, nil }

func TestDriverWithoutOptionsIsReported(t *testing.T) {
	if err := driver.SetOption(&nothing{}, "storage", "x"); err == nil || !strings.Contains(err.Error(), "this driver has none") {
		t.Errorf("error %v", err)
	}
	if os := driver.Options(&nothing{}); len(os) != 0 {
		t.Errorf("options %v", os)
	}
}

func TestSetSecretKeepsTheReference(t *testing.T) {
	s := defaults()
	must.Do(t, driver.SetSecret(s, "password", driver.NewSecret("x", "${env:PASSWORD}")))
	if s.Password.Reveal() != "x" || s.Password.Reference() != "${env:PASSWORD}" {
		t.Errorf("the secret is %q from %q", s.Password.Reveal(), s.Password.Reference())
	}
	for _, name := range []string{"storage", "unheard-of"} {
		if err := driver.SetSecret(s, name, driver.NewSecret("x", "")); err == nil {
			t.Errorf("%s was set to a secret", name)
		}
	}
}

func TestParseSize(t *testing.T) {
	for in, want := range map[string]int64{
		"0": 0, "1024": 1024, "512B": 512, "1KiB": 1024, "1KB": 1000, "64 KiB": 64 << 10, "3MiB": 3 << 20, "3MB": 3e6, "2GiB": 2 << 30, "2GB": 2e9, "1TiB": 1 << 40, "1TB": 1e12, "1.5KiB": 1536, "1k": 1024,
	} {
		if got, err := driver.ParseSize(in); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v, want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "B", "KiB", "-1", "-1KiB", "1.5B", "1XB", "1KiBB", "9223372036854775807TiB", "99999999999999999999"} {
		if got, err := driver.ParseSize(in); err == nil {
			t.Errorf("ParseSize(%q) = %d, want an error", in, got)
		}
	}
}

func FuzzSizesSurviveTheirText(f *testing.F) {
	for _, n := range []int64{0, 1, 999, 1000, 1024, 1e6, 1 << 20, 3 << 30, 1<<62 - 1} {
		f.Add(n)
	}
	f.Fuzz(func(t *testing.T, n int64) {
		if n < 0 || n > 1<<62 {
			return // no size of ours
		}
		text := driver.FormatSize(n)
		if got, err := driver.ParseSize(text); err != nil || got != n {
			t.Errorf("%d is written %q, which reads %d, %v", n, text, got, err)
		}
	})
}

func FuzzParseSizeNeverGoesNegative(f *testing.F) {
	f.Add("1KiB")
	f.Add("9223372036854775807KiB")
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := driver.ParseSize(s); err == nil && n < 0 {
			t.Errorf("ParseSize(%q) = %d", s, n)
		}
	})
}

func TestFormatSizeIsShort(t *testing.T) {
	for n, want := range map[int64]string{0: "0B", 999: "999B", 1000: "1KB", 1024: "1KiB", 1025: "1025B", 64 << 10: "64KiB", 1 << 20: "1MiB", 1e9: "1GB"} {
		if got := driver.FormatSize(n); got != want {
			t.Errorf("FormatSize(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	words := []string{"jetstream", "nats", "noop", "chan", "ring", "seed"}
	for in, want := range map[string]string{"jetsream": "jetstream", "nast": "nats", "noop": "noop", "rings": "ring", "kafka-streams": "", "": "", "foo": "", "step": ""} {
		if got := driver.Nearest(in, words); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", in, got, want)
		}
	}
}
