package scenario

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
)

const needy = "weir: 1\nsystem:\n  driver: plain\n  options: {user: '${env:ME}', password: {file: secret.txt}, tls: {ca: ca.pem}, address: ['h:1']}\n"

// TestScenarioListsItsHostReferences: everything that its options refer to, and the files that the
// driver itself reads, without duplicates; files of a trace or payload are not included.
func TestScenarioListsItsHostReferences(t *testing.T) {
	t.Parallel()
	runs := must.Get(Resolve(inputs(t, needy+"message: {payload: {file: one.json}}\n")))(t)
	want := []Need{{File: "/at/dir/secret.txt"}, {File: "ca.pem"}, {Env: "ME"}}
	golden.Equal(t, want, runs[0].Needs(), "needs")
	none, err := Resolve(inputs(t, "weir: 1\nsystem: {driver: plain}\n"))
	if err != nil || none[0].Needs() != nil {
		t.Errorf("a scenario that refers to nothing needs %v, %v", none, err)
	}
}

// TestForbiddenReferencesAreNotRead: each is rejected at its position, and never read.
func TestForbiddenReferencesAreNotRead(t *testing.T) {
	t.Parallel()
	in := inputs(t, needy)
	in.Env = func(name string) (string, bool) {
		t.Errorf("%s was looked up", name)
		return "", false
	}
	in.ReadOption = func(path string) ([]byte, error) {
		t.Errorf("%s was read", path)
		return nil, fs.ErrNotExist
	}
	var asked []Need
	in.Permit = func(n Need) error {
		asked = append(asked, n)
		return errors.New("is not for you")
	}
	_, err := Resolve(in)
	if err == nil {
		t.Fatal("it is resolved")
	}
	for _, option := range []string{"user", "password", "tls.ca"} {
		if !strings.Contains(err.Error(), "system.options."+option+": is not for you") {
			t.Errorf("%v; want %s refused", err, option)
		}
	}
	if len(asked) != 3 {
		t.Errorf("asked for %v", asked)
	}
}

// TestRemoteSecretIsNotReadLocally: the scenario and its rendering are the same without it.
func TestRemoteSecretIsNotReadLocally(t *testing.T) {
	t.Parallel()
	here := must.Get(Resolve(inputs(t, needy)))(t)
	in := inputs(t, needy)
	in.Elsewhere = true
	in.ReadOption = func(path string) ([]byte, error) {
		t.Errorf("%s was read", path)
		return nil, fs.ErrNotExist
	}
	in.Permit = func(n Need) error {
		if n != (Need{Env: "ME"}) { // not a secret: it is looked up here too
			t.Errorf("asked for %v", n)
		}
		return nil
	}
	there := must.Get(Resolve(in))(t)
	if d := cmp.Diff(string(here[0].YAML()), string(there[0].YAML())); d != "" {
		t.Errorf("written down it differs:\n%s", d)
	}
	if d := cmp.Diff(here[0].Needs(), there[0].Needs()); d != "" {
		t.Errorf("its needs differ:\n%s", d)
	}
	if p := there[0].System.Config.(*fake).Password; p.IsZero() || strings.Contains(p.Reveal(), "canary") {
		t.Errorf("the secret is %q", p.Reveal())
	}
	if p := here[0].System.Config.(*fake).Password; p.Reveal() != "canary" {
		t.Errorf("looked up here it is %q", p.Reveal())
	}
}
