// Package policy tests house rules that a compiler does not check: which package may import which,
// which may read a clock, what every package must have.
package policy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/must"
)

const module = "github.com/weirmq/weir"

// levels assigns packages to levels: a package imports only packages of a lower level. A pattern that
// ends in /* stands for every folder directly below it, unless a more specific row matches.
var levels = map[string]int{
	"internal/view":            9,
	"internal/view/layout":     1, // the page model and its writers
	"internal/view/plot":       0,
	"internal/userfile":        -1, // driver reads certificates with it
	"internal/finding":         0,
	"internal/quantity":        -1, // driver and schedule read values with it
	"internal/needs":           -1, // only tests import it
	"internal/must":            -1, // only tests import it
	"schedule":                 0,
	"driver":                   0,
	"internal/stats":           0,
	"internal/stamp":           0,
	"internal/protocheck":      0,
	"internal/offset":          0,
	"internal/pace":            0,
	"internal/proctree":        0,
	"internal/serverlog":       0,
	"internal/chromium":        0, // only tests import it
	"internal/golden":          0, // only tests import it
	"internal/guard":           1,
	"internal/tcpreset":        1,
	"internal/slowdisk":        1,
	"internal/disturb":         2,
	"internal/clockstep":       1,
	"internal/netpartition":    2,
	"internal/cgroup":          0,
	"internal/wire":            2,
	"internal/natsd":           0,
	"internal/natsdial":        0,
	"internal/natsd/*":         0, // only tests import them
	"internal/tools/*":         0,
	"docs":                     0, // what the program embeds of them
	"driver/blocking":          1,
	"driver/tested":            1,
	"drivers/internal/*":       1,
	"measure":                  1,
	"internal/ledger":          1,
	"internal/host":            1,
	"driver/drivertest":        2,
	"drivers/*":                3,
	"result":                   2,
	"result/resulttest":        3,
	"drivers/standard":         4,
	"drivers/all":              5,
	"engine":                   3,
	"internal/judge":           3,
	"internal/outliers":        3,
	"internal/broker":          3,
	"internal/fleet/admission": 3,
	// A scenario names the placement of producers and consumers in this package's terms, and so does an
	// agent that joins.
	"internal/placement": 2,
	"internal/fault":     3,
	"internal/network":   3,
	// What drivers of one family share builds on what all drivers share.
	"drivers/internal/amqp1conn": 2,
	"drivers/internal/inflight":  2,
	"drivers/internal/httpapi":   2,
	"drivers/internal/keeper":    2,
	"drivers/internal/kafkaconn": 2,
	"drivers/internal/local":     2,
	"drivers/internal/mesh":      2,
	"drivers/internal/trial":     2,
	"drivers/internal/natsconn":  2,
	"drivers/internal/redisconn": 2,
	// Only drivers' tests import these, which is why they may build on guard and broker.
	"drivers/internal/natstest":  5,
	"drivers/internal/kafkatest": 3,
	"drivers/internal/redistest": 5,
	"drivers/internal/served":    4,
	"internal/scenario":          4,
	"internal/scenario/tree":     0,
	"internal/metrics":           4,
	"internal/export":            4,
	"internal/omb":               1, // another tool's files, as scenario trees
	"internal/series/capacity":   4,
	"internal/compare":           4,
	"internal/history":           5,
	"internal/coordinator":       4,
	"internal/selftest":          5,
	"internal/fleet/*":           4,
	"internal/fleet/protocol":    5,
	"internal/fleet/survey":      6,
	"internal/fleet/agent":       6,
	"internal/latch":             0,
	"internal/flock":             0,
	"internal/varint":            0,
	"internal/index":             8,
	"internal/serve":             10,
	"internal/series/suite":      7,
	"internal/fleet":             7, // the coordinator
	"internal/glossary":          2,
	"internal/buildinfo":         2,
	"internal/commandline":       10,
	"internal/series":            8,
	"internal/cli":               11,
	".":                          12, // package weir: the program as a function
	"bench/peers":                13, // starts weir as its own binary
	"cmd/*":                      13,
	"deploy/helm":                13, // only tests
	"docs/examples/outside":      13, // a separate module
	"docs/examples/outside/*":    13,
	"internal/policy":            14,
}

// clockless are the packages that must not read a clock, with the reason to report.
var clockless = map[string]string{
	"schedule": "a schedule is a pure function",
	"result":   "a result is what it was given",
	"driver":   "drivers never time",
	"drivers":  "drivers never time",
}

// A file is one parsed Go file of the module.
type file struct {
	path string // slash-separated, relative to the module's root
	test bool
	ast  *ast.File
	fset *token.FileSet
	src  []byte
}

func (f *file) dir() string { return path.Dir(f.path) }

func (f *file) at(p token.Pos) string {
	return f.path + ":" + strconv.Itoa(f.fset.Position(p).Line)
}

func load(t *testing.T) []*file {
	t.Helper()
	root := "../.."
	var files []*file
	must.Do(t, filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if rel != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || rel == "tools" || rel == "results") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") {
			return nil
		}
		src, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		a, err := parser.ParseFile(fset, rel, src, parser.ParseComments)
		if err != nil {
			return err
		}
		files = append(files, &file{rel, strings.HasSuffix(rel, "_test.go"), a, fset, src})
		return nil
	}))
	if len(files) < 20 {
		t.Fatalf("read %d files: the walk is broken", len(files))
	}
	return files
}

// row returns the levels row for a package.
func row(pkg string) (string, bool) {
	if _, ok := levels[pkg]; ok {
		return pkg, true
	}
	p := path.Dir(pkg) + "/*"
	_, ok := levels[p]
	return p, ok
}

func TestPackagesImportOnlyLowerLevels(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range load(t) {
		r, ok := row(f.dir())
		if !ok {
			t.Errorf("%s: package %s has no level: add it to the table, and say why in an ADR", f.path, f.dir())
			continue
		}
		seen[r] = true
		if f.test {
			continue
		}
		for _, i := range f.ast.Imports {
			p, _ := strconv.Unquote(i.Path.Value)
			pkg, ours := strings.CutPrefix(p+"/", module+"/")
			if !ours {
				continue
			}
			pkg = path.Clean(pkg)
			ir, ok := row(pkg)
			if !ok {
				t.Errorf("%s: imports %s, which has no level", f.at(i.Pos()), pkg)
				continue
			}
			if levels[ir] >= levels[r] {
				t.Errorf("%s: %s (level %d) imports %s (level %d): only lower levels", f.at(i.Pos()), f.dir(), levels[r], pkg, levels[ir])
			}
			if strings.HasPrefix(pkg, "drivers/internal/") && !strings.HasPrefix(f.dir(), "drivers/") {
				t.Errorf("%s: %s belongs to the drivers", f.at(i.Pos()), pkg)
			}
		}
	}
	for r := range levels {
		if !seen[r] {
			t.Errorf("the table has a row %q for which no package exists: remove it", r)
		}
	}
}

func TestEveryPackageHasComment(t *testing.T) {
	said, dirs := map[string]bool{}, map[string]bool{}
	for _, f := range load(t) {
		if !f.test {
			dirs[f.dir()] = true
		}
		if f.ast.Doc != nil {
			said[f.dir()] = true
		}
	}
	for d := range dirs {
		if !said[d] {
			t.Errorf("%s: no package comment", d)
		}
	}
}

func TestNoInitAndNoDotImports(t *testing.T) {
	for _, f := range load(t) {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s: no init functions", f.at(fn.Pos()))
			}
		}
		for _, i := range f.ast.Imports {
			if i.Name != nil && i.Name.Name == "." {
				t.Errorf("%s: no dot imports", f.at(i.Pos()))
			}
		}
	}
}

func TestClocklessPackagesReadNoClock(t *testing.T) {
	for _, f := range load(t) {
		top, _, _ := strings.Cut(f.dir(), "/")
		why, bound := clockless[top]
		if !bound || f.test || f.dir() == "driver/drivertest" {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until"}, s.Sel.Name) {
				t.Errorf("%s: time.%s: %s", f.at(s.Pos()), s.Sel.Name, why)
			}
			return true
		})
	}
}

func TestInterfacesStaySmall(t *testing.T) {
	const most = 6
	for _, f := range load(t) {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if i, ok := n.(*ast.InterfaceType); ok && i.Methods.NumFields() > most {
				t.Errorf("%s: an interface of %d methods (at most %d)", f.at(i.Pos()), i.Methods.NumFields(), most)
			}
			return true
		})
	}
}

func TestPackageNamesSaySomething(t *testing.T) {
	for _, f := range load(t) {
		if slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "lib", "base", "core", "types", "misc"}, f.ast.Name.Name) {
			t.Errorf("%s: package %s says nothing", f.path, f.ast.Name.Name)
		}
	}
}

func TestFilesHoldOneIdea(t *testing.T) {
	const most = 600
	for _, f := range load(t) {
		if n := strings.Count(string(f.src), "\n"); n > most && !f.test {
			t.Errorf("%s: %d lines (at most %d): is it still one idea?", f.path, n, most)
		}
	}
}

// TestTestsSkipForAStatedReason: package needs lists the reasons. The conformance suite counts its own
// skips.
func TestTestsSkipForAStatedReason(t *testing.T) {
	for _, f := range load(t) {
		if f.dir() == "internal/needs" || f.dir() == "driver/drivertest" {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := call.X.(*ast.Ident)
			if ok && slices.Contains([]string{"t", "tb", "b", "testing"}, x.Name) && slices.Contains([]string{"Skip", "Skipf", "SkipNow", "Short"}, call.Sel.Name) {
				t.Errorf("%s: %s.%s: use package needs", f.at(n.Pos()), x.Name, call.Sel.Name)
			}
			return true
		})
	}
}

// TestDriverFoldersHaveTheFixedShape keeps drivers alike, so that a reader who knows one knows all. The drivers
// of AMQP 1.0 servers share the producer, too.
func TestDriverFoldersHaveTheFixedShape(t *testing.T) {
	const shared = `"` + module + `/drivers/internal/amqp1conn"`
	have := map[string][]string{}
	for _, f := range load(t) {
		if d := f.dir(); path.Dir(d) == "drivers" && !slices.Contains([]string{"drivers/standard", "drivers/all", "drivers/internal"}, d) {
			have[d] = append(have[d], path.Base(f.path))
			if slices.ContainsFunc(f.ast.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == shared }) {
				have[d] = append(have[d], "producer.go")
			}
		}
	}
	if len(have) == 0 {
		t.Fatal("no drivers found")
	}
	for d, names := range have {
		sort.Strings(names)
		for _, want := range []string{"driver.go", "producer.go", "driver_test.go"} {
			if !slices.Contains(names, want) {
				t.Errorf("%s has no %s (has %s)", d, want, strings.Join(names, ", "))
			}
		}
	}
}

func TestTheModuleReplacesNothing(t *testing.T) {
	b := must.Get(os.ReadFile("../../go.mod"))(t)
	for _, line := range strings.Split(string(b), "\n") {
		if strings.HasPrefix(line, "replace ") || strings.Contains(line, " => ") {
			t.Errorf("go.mod: %q: a replace makes go install of the module fail", line)
		}
	}
}

// ownFiles are the packages that open files directly, with the reason why users do not supply those
// paths. All others use internal/userfile.
var ownFiles = map[string]string{
	"bench/peers":                "the figures that it wrote",
	"internal/userfile":          "it is the reader",
	"internal/broker":            "its own installs, states and logs",
	"internal/buildinfo":         "its own program",
	"internal/fleet":             "its own state",
	"internal/flock":             "locks",
	"internal/fleet/admission":   "its own certificate and tokens",
	"internal/fleet/hosts":       "its own state",
	"internal/pace":              "/proc",
	"internal/network":           "/proc",
	"internal/tcpreset":          "/proc",
	"internal/clockstep":         "/proc",
	"internal/cgroup":            "/proc",
	"internal/wire":              "/proc and control groups",
	"internal/chromium":          "the script of axe-core",
	"internal/golden":            "goldens of tests",
	"internal/tools/newdriver":   "the tree that it adds to",
	"driver/drivertest":          "the record of what passed",
	"drivers/internal/natstest":  "logs of servers, in tests",
	"drivers/internal/redistest": "logs of servers, in tests",
	"drivers/internal/served":    "logs of servers, in tests",
	"drivers/internal/trial":     "/proc and a cookie of servers, in tests",
	"internal/selftest":          "what its own runs wrote",
	"result/resulttest":          "folders that tests wrote",
}

// TestUserFilesReadThroughUserfile: a path from a user may be a pipe, a device or too long.
func TestUserFilesReadThroughUserfile(t *testing.T) {
	opens := map[string]bool{}
	for _, f := range load(t) {
		if f.test {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "os" && (s.Sel.Name == "Open" || s.Sel.Name == "ReadFile") {
				opens[f.dir()] = true
				if ownFiles[f.dir()] == "" {
					t.Errorf("%s: os.%s: read it through internal/userfile, or say in ownFiles whose file it is", f.at(s.Pos()), s.Sel.Name)
				}
			}
			return true
		})
	}
	for dir := range ownFiles {
		if !opens[dir] && dir != "internal/userfile" {
			t.Errorf("the table has a row %q that opens no file: remove it", dir)
		}
	}
}
