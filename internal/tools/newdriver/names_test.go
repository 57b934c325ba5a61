package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/must"
)

// small is a module with the files that the command reads.
var small = map[string]string{
	"go.mod": "module example.com/m\n",
	"drivers/standard/standard.go": `// Package all lists.
package all

import (
	"example.com/m/driver"
	channel "example.com/m/drivers/chan"
	"example.com/m/drivers/nats"
)

// Definitions returns the drivers.
func Definitions() []driver.Definition {
	return []driver.Definition{
		channel.Definition(),
		nats.Definition(),
	}
}
`,
	"drivers/nats/driver.go":                  "package nats\n",
	"drivers/nats/recipe.yaml":                "recipe: 1\nname: nats\n",
	"drivers/internal/redisconn/recipe.yaml":  "recipe: 1\nname: redis\n---\nrecipe: 1\nname: valkey\n",
	"drivers/internal/redisconn/redisconn.go": "package redisconn\n",
}

// write writes files below a folder.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		must.Do(t, os.MkdirAll(filepath.Dir(p), 0o755))
		must.Do(t, os.WriteFile(p, []byte(text), 0o644))
	}
	return dir
}

// tree returns the files below a folder with their content, except hidden ones that are not the
// command's leftovers.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	must.Do(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, p)
		switch {
		case err != nil:
			return err
		case rel != "." && strings.HasPrefix(d.Name(), ".") && !strings.HasPrefix(d.Name(), ".newdriver"):
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		}
		b, err := os.ReadFile(p)
		files[filepath.ToSlash(rel)] = string(b)
		return err
	}))
	return files
}

func TestNewDriverIsCreatedAndListed(t *testing.T) {
	for name, want := range map[string]string{
		"a-queue": "\t\taqueue.Definition(),\n\t\tchannel", "mymq": "channel.Definition(),\n\t\tmymq.Definition(),\n\t\tnats", "z": "nats.Definition(),\n\t\tz.Definition(),\n\t}",
	} {
		dir := write(t, small)
		var out, errs strings.Builder
		// From a subfolder of the module, with the flag after the name.
		if code := run([]string{name, "--title", `The "best" MQ\n`, "-C", filepath.Join(dir, "drivers", "nats")}, &out, &errs); code != 0 {
			t.Fatalf("%s: exit %d: %s", name, code, &errs)
		}
		after := tree(t, dir)
		pkg := strings.ReplaceAll(name, "-", "")
		if list := after["drivers/standard/standard.go"]; !strings.Contains(list, want) || !strings.Contains(list, "\t\"example.com/m/drivers/"+pkg+"\"\n") {
			t.Errorf("%s is not listed: %s", name, list)
		}
		for _, f := range []string{"driver.go", "page.md", "producer.go", "consumer.go", "driver_test.go", "recipe.yaml"} {
			text, ok := after["drivers/"+pkg+"/"+f]
			if !ok || strings.Contains(text, "[[") || strings.HasSuffix(f, ".go") && !strings.Contains(text, "package "+pkg+"\n") {
				t.Errorf("%s: %s: %s", name, f, text)
			}
		}
		if len(after) != len(small)+6 {
			t.Errorf("%s: %d files, were %d", name, len(after), len(small))
		}
		if !strings.Contains(out.String(), "go test ./drivers/"+pkg) || errs.String() != "" {
			t.Errorf("said %q and %q", out.String(), errs.String())
		}
	}
}

func TestRejectedDriverLeavesNothing(t *testing.T) {
	with := func(name, text string) map[string]string {
		files := map[string]string{}
		for k, v := range small {
			files[k] = v
		}
		if files[name] = text; text == "" {
			delete(files, name)
		}
		return files
	}
	all := "drivers/standard/standard.go"
	for _, c := range []struct {
		args  []string
		files map[string]string
		want  string
	}{
		{nil, small, "one driver is made at a time, not 0 (usage: newdriver NAME"},
		{[]string{"one", "two"}, small, "one driver is made at a time, not 2"},
		{[]string{"x", "--nosuch"}, small, "flag provided but not defined: -nosuch (usage"},
		{[]string{"MyMQ"}, small, `"MyMQ" is not a name of a driver (small letters and digits`},
		{[]string{"9p"}, small, `"9p" is not a name of a driver`},
		{[]string{"a/b"}, small, `"a/b" is not a name`},
		{[]string{"../evil"}, small, `"../evil" is not a name`},
		{[]string{"my--mq"}, small, `"my--mq" is not a name`},
		{[]string{"mq-"}, small, `"mq-" is not a name`},
		{[]string{"my_mq"}, small, `"my_mq" is not a name`},
		{[]string{"mÿ"}, small, "is not a name"},
		{[]string{strings.Repeat("x", 41)}, small, "41 characters (at most 40)"},
		{[]string{"func"}, small, "Go has the word func"},
		{[]string{"f-unc"}, small, "Go has the word func"},
		{[]string{"string"}, small, "Go has the word string"},
		{[]string{"driver"}, small, "which means something else here"},
		{[]string{"in-ternal"}, small, "which means something else here"},
		{[]string{"util"}, small, "which means something else here"},
		{[]string{"nats"}, small, "drivers/nats is there already"},
		{[]string{"na-ts"}, small, "drivers/nats is there already"},
		{[]string{"channel"}, small, "drivers/standard/standard.go cannot be edited: it imports a package called channel already"},
		{[]string{"valkey"}, small, "drivers/internal/redisconn/recipe.yaml has a recipe called valkey already"},
		{[]string{"x"}, with(all, ""), "drivers/standard/standard.go cannot be edited: open"},
		{[]string{"x"}, with(all, "package all\nfunc {"), "drivers/standard/standard.go cannot be edited: "},
		{[]string{"x"}, with(all, "package all\n"), "cannot be edited: it has no imports in parentheses"},
		{[]string{"x"}, with(all, strings.Replace(small[all], "Definitions()", "List()", 1)), "cannot be edited: it has no function Definitions that only returns a list"},
		{[]string{"x"}, with(all, strings.Replace(small[all], "nats.Definition()", "nats.All[0]", 1)), "cannot be edited: line 14: Definitions returns something else"},
		{[]string{"x"}, with(all, strings.Replace(small[all], "nats.Definition(),\n\t}", "nats.Definition()}", 1)), "cannot be edited: it is not written as one driver a line"},
		{[]string{"x"}, with("go.mod", "// nothing\n"), "names no module"},
		{[]string{"x", "--title", "A\nB"}, small, "the title is not one line of printable characters"},
		{[]string{"x", "--title", strings.Repeat("é", 61)}, small, "the title has 61 characters (at most 60)"},
	} {
		dir := write(t, c.files)
		before := tree(t, dir)
		var out, errs strings.Builder
		if code := run(append(c.args, "-C", dir), &out, &errs); code != 2 {
			t.Errorf("%q: exit %d", c.args, code)
		}
		if !strings.Contains(errs.String(), c.want) || strings.Count(errs.String(), "\n") != 1 || !strings.HasPrefix(errs.String(), "newdriver: ") || out.Len() > 0 {
			t.Errorf("%q: said %q and %q; want one line with %q", c.args, errs.String(), out.String(), c.want)
		}
		if d := cmp.Diff(before, tree(t, dir)); d != "" {
			t.Errorf("%q: something was written: %s", c.args, d)
		}
	}
}

func TestOutsideModuleCreatesNothing(t *testing.T) {
	dir := t.TempDir()
	var out, errs strings.Builder
	if code := run([]string{"x", "-C", dir}, &out, &errs); code != 2 || !strings.Contains(errs.String(), "is in no Go module") {
		t.Errorf("exit %d: %s", code, &errs)
	}
}

func TestFailedListUpdateRemovesFolder(t *testing.T) {
	dir := write(t, small)
	before := tree(t, dir)
	// A rename onto a folder in place of the list fails.
	list := filepath.Join(dir, "drivers", "standard", "blocked")
	must.Do(t, os.MkdirAll(filepath.Join(list, "x"), 0o755))
	if err := place(filepath.Join(dir, "drivers", "x"), map[string][]byte{"a.go": []byte("package x\n")}, list, []byte("x")); err == nil {
		t.Error("no error")
	}
	if d := cmp.Diff(before, tree(t, dir)); d != "" {
		t.Errorf("something was left: %s", d)
	}
}

func TestHelpSucceeds(t *testing.T) {
	var out, errs strings.Builder
	if code := run([]string{"--help"}, &out, &errs); code != 0 || !strings.HasPrefix(errs.String(), "usage: ") {
		t.Errorf("exit %d: %s", code, &errs)
	}
}
