package driver_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
)

const secret = "hunter2-geheim"

func TestASecretNeverShows(t *testing.T) {
	type exported struct {
		Name     string
		Password driver.Secret
		Pointer  *driver.Secret
		List     []driver.Secret
		ByName   map[string]driver.Secret
	}
	type unexported struct {
		password driver.Secret
		list     []driver.Secret
	}
	s := driver.NewSecret(secret, "${env:PASSWORD}")
	out := exported{"x", s, &s, []driver.Secret{s}, map[string]driver.Secret{"k": s}}
	in := unexported{s, []driver.Secret{s}}
	var shown []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T %v", "%10v"} {
		if strings.Count(verb, "%") == 2 {
			shown = append(shown, fmt.Sprintf(verb, s, s), fmt.Sprintf(verb, in, in))
			continue
		}
		shown = append(shown, fmt.Sprintf(verb, s), fmt.Sprintf(verb, &s), fmt.Sprintf(verb, out), fmt.Sprintf(verb, &out), fmt.Sprintf(verb, in), fmt.Sprintf(verb, &in))
	}
	shown = append(shown, fmt.Sprint(s), fmt.Sprint(out), s.String(), s.GoString(), fmt.Errorf("login %v", s).Error())
	for _, marshal := range []func(any) ([]byte, error){json.Marshal, yaml.Marshal} {
		for _, v := range []any{s, &s, out, &out} {
			b, err := marshal(v)
			if err != nil {
				t.Error(err)
			}
			shown = append(shown, string(b))
		}
	}
	type account struct{ Password driver.Secret }
	b, err := xml.Marshal(account{s})
	if err != nil {
		t.Error(err)
	}
	shown = append(shown, string(b))
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(h).Info("open", "password", s, "config", out, "pointer", &out, "hidden", in)
	}
	shown = append(shown, log.String())
	hexed := fmt.Sprintf("%x", secret)
	for _, text := range shown {
		if strings.Contains(text, secret) || strings.Contains(strings.ToLower(text), hexed) {
			t.Errorf("the secret shows: %s", text)
		}
	}
}

func TestSecretReportsPresence(t *testing.T) {
	for _, tc := range []struct {
		what string
		s    driver.Secret
		text string
		zero bool
	}{
		{"the zero value", driver.Secret{}, "", true},
		{"an empty one", driver.NewSecret("", "${env:X}"), "", true},
		{"a secret", driver.NewSecret("x", ""), "***", false},
	} {
		if tc.s.String() != tc.text || tc.s.IsZero() != tc.zero {
			t.Errorf("%s: %q, zero %v", tc.what, tc.s.String(), tc.s.IsZero())
		}
	}
	b, err := json.Marshal(driver.NewSecret("x", ""))
	if err != nil || string(b) != `"***"` {
		t.Errorf("as JSON: %s, %v", b, err)
	}
}

func definition(name string) driver.Definition {
	return driver.Definition{Name: name, New: func() driver.Config { return &nothing{} }}
}

func TestRegistry(t *testing.T) {
	r := must.Get(driver.NewRegistry(definition("nats"), definition("jetstream"), definition("noop")))(t)
	golden.Equal(t, []string{"jetstream", "nats", "noop"}, r.Names(), "")
	if d, err := r.Lookup("nats"); err != nil || d.Name != "nats" {
		t.Errorf("Lookup: %q, %v", d.Name, err)
	}
	if _, err := r.Lookup("jetsteam"); err == nil || !strings.Contains(err.Error(), `did you mean "jetstream"? (jetstream, nats, noop)`) {
		t.Errorf("the nearest is not offered: %v", err)
	}
	if _, err := r.Lookup("frobnicator"); err == nil || !strings.Contains(err.Error(), `unknown driver "frobnicator" (jetstream, nats, noop)`) {
		t.Errorf("those there are are not named: %v", err)
	}
}

func TestRegistryRefuses(t *testing.T) {
	for what, defs := range map[string][]driver.Definition{
		"two of one name":    {definition("nats"), definition("nats")},
		"one without a name": {definition("")},
		"one without a New":  {{Name: "nats"}},
	} {
		if _, err := driver.NewRegistry(defs...); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

func TestNamesRoundTrip(t *testing.T) {
	for g := driver.Buffered; g <= driver.Persisted; g++ {
		if got, err := driver.ParseGuarantee(g.String()); err != nil || got != g {
			t.Errorf("%v reads %v, %v", g, got, err)
		}
	}
	if _, err := driver.ParseGuarantee("certain"); err == nil || !strings.Contains(err.Error(), `unknown guarantee "certain" (buffered, written, received, replicated, persisted)`) {
		t.Errorf("error %v", err)
	}
	if _, err := driver.ParseGuarantee(""); err == nil {
		t.Error("the empty word was read")
	}
}

func TestWords(t *testing.T) {
	got := []string{
		driver.Guarantee(0).String(), driver.Persisted.String(), driver.CopiesQuorum.String(), driver.StableFsync.String(),
		driver.AtLeastOnce.String(), driver.PerPartition.String(), driver.Settle(9).String(), driver.Guarantee(200).String(),
	}
	want := []string{"", "persisted", "quorum", "fsync", "at-least-once", "per partition", "invalid(9)", "invalid(200)"}
	golden.Equal(t, want, got, "")
}

func TestGuaranteesAreOrdered(t *testing.T) {
	gs := []driver.Guarantee{driver.Buffered, driver.Written, driver.Received, driver.Replicated, driver.Persisted}
	for i := 1; i < len(gs); i++ {
		if gs[i-1] >= gs[i] {
			t.Errorf("%v is not weaker than %v", gs[i-1], gs[i])
		}
	}
}

// The weaker of two destinations guarantees nothing that only one of them has.
func TestOfTwoConfirmationsTheWeakerCounts(t *testing.T) {
	received := driver.Confirms{Guarantee: driver.Received, Stable: driver.StableOS}
	replicated := driver.Confirms{Guarantee: driver.Replicated, Copies: driver.CopiesQuorum, Stable: driver.StableOS}
	only := driver.Confirms{Guarantee: driver.Persisted, Stable: driver.StableFsync}
	all := driver.Confirms{Guarantee: driver.Persisted, Copies: driver.CopiesAll, Stable: driver.StableFsync}
	for _, w := range []struct{ a, b, want driver.Confirms }{
		{driver.Confirms{}, only, only},
		{received, replicated, received},
		{replicated, all, replicated},
		{only, all, only},
		{only, received, received},
		{only, replicated, received}, // neither on a quorum nor on a disk in both
	} {
		if got := w.a.Weaker(w.b); got != w.want || w.a.Guarantee != 0 && w.b.Weaker(w.a) != w.want {
			t.Errorf("%+v and %+v: %+v; want %+v", w.a, w.b, got, w.want)
		}
	}
}
