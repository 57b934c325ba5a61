package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

// A house is a copy of the module in which a driver is created. Go builds the differences as an
// overlay over the original (-overlay), so that everything else comes from the build cache.
type house struct {
	t              *testing.T
	original, copy string
	built          map[string]string // test binaries, by package and driver differences
}

func newHouse(t *testing.T) *house {
	t.Helper()
	root, _, err := moduleAt(".")
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t, root, t.TempDir(), map[string]string{}}
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, p)
		switch {
		case errors.Is(err, fs.ErrNotExist): // it has disappeared
			return nil
		case err != nil:
			return err
		case rel != "." && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case d.IsDir():
			return os.MkdirAll(filepath.Join(h.copy, rel), 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(h.copy, rel), b, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// overlay writes the file for go's -overlay flag: the drivers that differ. key distinguishes different
// versions of their texts.
func (h *house) overlay() (file, key string) {
	h.t.Helper()
	var o struct{ Replace map[string]string }
	o.Replace = map[string]string{}
	was, is := tree(h.t, filepath.Join(h.original, "drivers")), tree(h.t, filepath.Join(h.copy, "drivers"))
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if was[name] != is[name] {
			o.Replace[filepath.Join(h.original, "drivers", name)] = filepath.Join(h.copy, "drivers", name)
			key += name + "\x00" + is[name] + "\x00"
		}
	}
	b, err := json.Marshal(o)
	if err != nil {
		h.t.Fatal(err)
	}
	p := filepath.Join(h.t.TempDir(), "overlay.json")
	if err := os.WriteFile(p, b, 0o644); err != nil {
		h.t.Fatal(err)
	}
	return p, key
}

// command runs a program in a folder.
func (h *house) command(dir, name string, args ...string) (string, error) {
	h.t.Helper()
	cmd := exec.CommandContext(h.t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// must runs a command that has to succeed.
func (h *house) must(dir, name string, args ...string) {
	h.t.Helper()
	if out, err := h.command(dir, name, args...); err != nil {
		h.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// tests builds the tests of a package in the copy, once per set of drivers.
func (h *house) tests(pkg string) (binary string) {
	h.t.Helper()
	overlay, key := h.overlay()
	key = pkg + "\x00" + key
	if h.built[key] == "" {
		h.built[key] = h.copy + ".tests" + strconv.Itoa(len(h.built))
		// vet runs in the package's folder, which an overlay does not create.
		h.must(h.original, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", h.built[key], "./"+pkg)
	}
	return h.built[key]
}

// vetted returns a module with the new driver, without its test, and what it imports.
func (h *house) vetted() string {
	h.t.Helper()
	files := map[string]string{}
	for name, text := range tree(h.t, h.copy) {
		dir, base := path.Split(name)
		if name == "go.mod" || name == "go.sum" || (dir == "driver/" || dir == "internal/userfile/" || dir == "internal/quantity/" || dir == "drivers/mymq/") && !strings.HasSuffix(base, "_test.go") {
			files[name] = text
		}
	}
	return write(h.t, files)
}

// generate does what make generate does for drivers.
func (h *house) generate() {
	h.t.Helper()
	h.must(filepath.Join(h.copy, "internal", "cli"), h.tests("internal/cli"), "-test.run", "^TestTheDriversPagesAreUpToDate$", "-update")
}

// spotless runs tests of a package, all if none are named, which must not report anything about the
// new driver. Findings about other drivers are ignored.
func (h *house) spotless(pkg string, names ...string) {
	h.t.Helper()
	out, _ := h.command(filepath.Join(h.copy, pkg), h.tests(filepath.ToSlash(pkg)), "-test.run", "^("+strings.Join(names, "|")+")", "-test.v")
	if strings.Count(out, "=== RUN") < max(len(names), 1) || strings.Contains(out, "panic:") {
		h.t.Errorf("%s: the tests were not run:\n%s", pkg, out)
	}
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "===") && (strings.Contains(line, "my-mq") || strings.Contains(line, "mymq")) {
			h.t.Errorf("%s: %s", pkg, line)
		}
	}
}

// replace edits a file of the copy.
func (h *house) replace(name, before, after string) {
	h.t.Helper()
	p := filepath.Join(h.copy, filepath.FromSlash(name))
	b, err := os.ReadFile(p)
	if err != nil {
		h.t.Fatal(err)
	}
	if strings.Count(string(b), before) != 1 {
		h.t.Fatalf("%s does not hold one %q", name, before)
	}
	if err := os.WriteFile(p, []byte(strings.Replace(string(b), before, after, 1)), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

// conformance runs the new driver's conformance tests, which fail, and returns the output of each
// failed check.
func (h *house) conformance() map[string]string {
	h.t.Helper()
	out, err := h.command(filepath.Join(h.copy, "drivers", "mymq"), h.tests("drivers/mymq"), "-test.run", "^TestConformance$", "-test.v")
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 || strings.Contains(out, "panic:") {
		h.t.Fatalf("conformance does not simply fail: %v\n%s", err, out)
	}
	said, check := map[string]string{}, ""
	for line := range strings.Lines(out) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "=== RUN   TestConformance/"); ok {
			check = rest
			continue
		}
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "--- FAIL: TestConformance/"); ok {
			name, _, _ := strings.Cut(rest, " ")
			said[name] += ""
			continue
		}
		if strings.Contains(line, "drivertest.go:") && !strings.Contains(line, "not declared: ") {
			said[check] += line
		}
	}
	return said
}

// TestNewDriverPassesHouseRules creates a driver, takes its author's steps up to the first methods,
// and then removes it.
func TestNewDriverPassesHouseRules(t *testing.T) {
	needs.Time(t)
	needs.NoRace(t)
	h := newHouse(t)
	h.generate() // the pages without the driver
	before := tree(t, h.copy)
	var out, errs strings.Builder
	if code := run([]string{"my-mq", "--title", "My MQ", "-C", h.copy}, &out, &errs); code != 0 {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	var changed []string
	made := tree(t, h.copy)
	for name, text := range made {
		if before[name] != text {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	golden.Equal(t, []string{
		"drivers/mymq/consumer.go", "drivers/mymq/driver.go", "drivers/mymq/driver_test.go", "drivers/mymq/page.md",
		"drivers/mymq/producer.go", "drivers/mymq/recipe.yaml", "drivers/standard/standard.go",
	}, changed, "changed")

	t.Run("it compiles and keeps the rules", func(t *testing.T) {
		h := &house{t, h.original, h.copy, h.built}
		h.must(h.vetted(), "go", "vet", "./drivers/mymq")
		if out, err := h.command(h.copy, "gofmt", "-l", "drivers/mymq", "drivers/standard"); out != "" || err != nil {
			t.Errorf("not formatted: %s %v", out, err)
		}
		h.spotless(filepath.Join("internal", "policy"))
		h.spotless(filepath.Join("drivers", "all"))
	})

	t.Run("its page is generated and its examples parse", func(t *testing.T) {
		h := &house{t, h.original, h.copy, h.built}
		h.generate()
		h.spotless(filepath.Join("internal", "cli"), "TestTheDriversPagesAreUpToDate", "TestTheExamplesOfADriverParse",
			"TestRecipesParseAndMatchTheirDrivers", "TestThePagesListAllPrintedJSON")
		h.spotless(filepath.Join("internal", "view"), "TestListFits80Columns")
		pages := tree(t, filepath.Join(h.copy, "docs", "drivers"))
		if p := pages["my-mq.md"]; !strings.Contains(p, "# my-mq: My MQ\n") || !strings.Contains(pages["README.md"], "[my-mq](my-mq.md)") {
			t.Errorf("no page, or it is not listed: %s", p)
		}
	})

	t.Run("its conformance says what to write next", func(t *testing.T) {
		h := &house{t, h.original, h.copy, h.built}
		first := h.conformance()
		if len(first) < 15 {
			t.Errorf("%d checks failed: %v", len(first), slices.Sorted(maps.Keys(first)))
		}
		// What to write next is reported once by the checks that need a Conn, and once by the check for an
		// unreachable system.
		const again = "the same error as in an earlier check"
		if n := strings.Count(strings.Join(slices.Collect(maps.Values(first)), "\n"), "write Open in driver.go"); n < 1 || n > 2 {
			t.Errorf("%d checks tell to write Open; want 1 or 2", n)
		}
		for check, said := range first {
			// Two need a server that can be restarted or stopped by the harness.
			want := "write Open in driver.go: "
			switch check {
			case "LostConnectionReported":
				want = "the harness has no Cut"
			case "BacklogIsAsked":
				want = "the harness has no Stall"
			}
			if !strings.Contains(said, want) && !strings.Contains(said, again) {
				t.Errorf("%s does not say %q:\n%s", check, want, said)
			}
			if strings.Contains(said, "write Open") && (!strings.Contains(said, "Config in driver/driver.go") || !strings.Contains(said, "drivers/beanstalkd")) {
				t.Errorf("%s does not say where to read:\n%s", check, said)
			}
		}
		h.replace("drivers/mymq/driver.go", "\treturn nil, unwritten(\"Open in", "\tif run.Log != nil {\n\t\treturn &conn{}, nil\n\t}\n\treturn nil, unwritten(\"Open in")
		second := h.conformance()
		for check, want := range map[string]string{
			"OpenClose": "write Facts in driver.go: ", "DeclareTwice": "write Declare in driver.go: ", "DeleteTwice": "write Delete in driver.go: ",
			"RoundTripBytes": "write Declare in driver.go: ", "OpenUnreachable": "without a listener, returned no error",
		} {
			if !strings.Contains(second[check], want) && !strings.Contains(second[check], again) {
				t.Errorf("after Open, %s does not say %q:\n%s", check, want, second[check])
			}
		}
		h.replace("drivers/mymq/driver.go", "\treturn unwritten(\"Declare in", "\tif len(ds) > 0 {\n\t\treturn nil\n\t}\n\treturn unwritten(\"Declare in")
		third := h.conformance()
		for check, want := range map[string]string{
			"RoundTripBytes": "write Consumer in consumer.go: ", "ExactlyOneCompletion": "write Producer in producer.go: ", "GuaranteeDeclared": "write Facts in driver.go: ",
		} {
			if !strings.Contains(third[check], want) && !strings.Contains(third[check], again) {
				t.Errorf("after Declare, %s does not say %q:\n%s", check, want, third[check])
			}
		}
	})

	t.Run("its removal leaves nothing", func(t *testing.T) {
		h := &house{t, h.original, h.copy, h.built}
		must.Do(t, os.RemoveAll(filepath.Join(h.copy, "drivers", "mymq")))
		h.replace("drivers/standard/standard.go", "\t\"github.com/weirmq/weir/drivers/mymq\"\n", "")
		h.replace("drivers/standard/standard.go", "\t\tmymq.Definition(),\n", "")
		h.generate()
		if d := cmp.Diff(before, tree(t, h.copy)); d != "" {
			t.Errorf("(-before +after):\n%s", d)
		}
	})
}
