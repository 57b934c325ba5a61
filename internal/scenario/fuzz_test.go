package scenario

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weirmq/weir/internal/must"
)

// settled checks the result of Resolve: readable faults, or runs with different names whose files
// resolve to themselves.
func settled(t *testing.T, in Inputs) {
	runs, err := Resolve(in)
	if err != nil {
		faults := Faults(nil)
		if !errors.As(err, &faults) || len(faults) == 0 || runs != nil {
			t.Fatalf("%d runs and an error that is not a list of faults: %v", len(runs), err)
		}
		for _, f := range faults {
			if f.Message == "" || !utf8.ValidString(f.Message) {
				t.Fatalf("a fault that nobody can read: %q", f.Error())
			}
		}
		return
	}
	names := map[string]bool{}
	for i, s := range runs {
		if !nameForm.MatchString(s.Name) || names[strings.ToLower(s.Name)] {
			t.Fatalf("run %d has no name of its own: %q", i, s.Name)
		}
		names[strings.ToLower(s.Name)] = true
		if i > 2 {
			continue
		}
		for _, text := range [][]byte{s.YAML(), s.Explain()} {
			if strings.Contains(string(text), "***") {
				return // a password in the URL of a driver option
			}
			twice, err := only(inputs(t, string(text)))
			if err != nil {
				t.Fatalf("a resolved file is refused: %v\n%s", err, text)
			}
			if got := string(twice.YAML()); got != string(s.YAML()) {
				t.Fatalf("resolving a resolved file changes it to\n%s\nfrom\n%s", got, s.YAML())
			}
		}
	}
}

func FuzzResolve(f *testing.F) {
	for _, s := range []string{
		full, "", "weir: 1", "- a", "a: {b: [", "? a\n: b", "a: !!str b", "x: |\n  y\n", "{}", "weir: 1\nload: {rate: max}", "<<: *a", "--- \n...\n", "a: 'b", "\t", "&a : b", "- - - - -", bomb(),
		"weir: 1\nscenarios:\n- {name: a, matrix: {load.rate: [5/s, max]}}\n- {mode: request}\nmatrix: {seed: [1, 2]}\n",
		"weir: 1\nmatrix: {system.options.tls.ca: ['#', \"a b\"], message.payload: [{dir: docs}, zeros]}\nslo: ['lost == 0']\n",
		"weir: 1\nsystem: {options: {address: [h:1, nats://a:2]}}\n",
	} {
		f.Add([]byte(s))
	}
	examples := must.Get(filepath.Glob("../../docs/examples/*.yaml"))(f)
	for _, path := range examples {
		b := must.Get(os.ReadFile(path))(f)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		in := inputs(t, "x")
		in.Text = b
		settled(t, in)
	})
}

func FuzzFlags(f *testing.F) {
	for i, k := range Keys() {
		f.Add(uint8(i), "5", false)
		for _, w := range k.Words {
			f.Add(uint8(i), w, true)
		}
	}
	for _, s := range []string{"{gamma: {cv: 3}}", "[{rate: 5/s, for: 1s}]", "5/s", "1..10", "{dir: docs}", "${env:ME}", "{file: secret.txt}", "a,b", "5s", "1KiB", "x: y", "#", "\xff", "\n", "lost == 0", "{", "[a: b]", " "} {
		for i := range Keys() {
			f.Add(uint8(i), s, i%2 == 0)
		}
		f.Add(uint8(200), s, false)
	}
	f.Fuzz(func(t *testing.T, key uint8, value string, environ bool) {
		paths := []string{"system.options.user", "system.options.address", "system.options.tls.ca", "system.options.password", "system.options.server.sync"}
		for _, k := range Keys() {
			if !k.FileOnly {
				paths = append(paths, k.Path)
			}
		}
		o := Override{Flag: "--flag", Path: paths[int(key)%len(paths)], Value: value}
		for _, file := range []string{"", full, "weir: 1\nmatrix: {load.rate: [5/s, 6/s], system.options.user: [a, b]}\n"} {
			in := inputs(t, file)
			if environ {
				in.Environ = []Override{o}
			} else {
				in.Overrides = []Override{o}
			}
			settled(t, in)
		}
	})
}
