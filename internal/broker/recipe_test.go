package broker

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
)

const goodRecipe = `recipe: 1
name: good
title: Good Server
version: 1.2.3
platforms: [linux, darwin/arm64]
nodes: [1, 3]
needs:
  - {program: java, version: "17", hint: a JRE}
install:
  go: {module: example.com/good, version: v1.2.3, programs: {good: cmd/good}}
settings:
  sync: {default: "no", allowed: ["no", "yes"], help: Sync.}
processes:
  - name: server
    ports: {client: 4000, peer: 4001}
    files:
      good.conf: |
        {{range .Others}}{{.At "peer"}} {{end}}
    env: {A: "{{.Process}}"}
    before: [{run: ["{{program \"java\"}}", -version]}]
    start: ["{{program \"good\"}}", "{{.Dir}}/good.conf", "{{set \"sync\"}}", "{{add .Port.client 1}}"]
  - {name: side, on: first, start: [sleep, "1"]}
connect: {address: "{{.At \"client\"}}", nodes: first}
ready: {driver: d, declare: true, within: 2m}
stop: {grace: 3s}
`

func TestParseRecipe(t *testing.T) {
	rs := must.Get(ParseRecipes("r.yaml", []byte(goodRecipe+"---\n# another\n"+strings.Replace(goodRecipe, "name: good", "name: other", 1))))(t)
	if len(rs) != 2 || rs[0].Name != "good" || rs[1].Name != "other" {
		t.Fatalf("%d recipes", len(rs))
	}
	r := rs[0]
	if r.within() != 2*time.Minute || r.grace() != 3*time.Second || r.Source() != "go" {
		t.Errorf("within %v, grace %v, from %s", r.within(), r.grace(), r.Source())
	}
	if r.home("/cache") == rs[1].home("/cache") || !strings.HasPrefix(r.home("/cache"), "/cache/good/1.2.3-") {
		t.Errorf("installed in %s", r.home("/cache"))
	}
	p := plan{recipe: r, nodes: 3, settings: r.defaults(), root: "/root", install: "/i", programs: map[string]string{"java": "/usr/bin/java"}}
	p.numbered()
	l := must.Get(p.layout())(t)
	var names []string
	for _, u := range l.units {
		names = append(names, u.name)
	}
	golden.Equal(t, []string{"server-1", "server-2", "server-3", "side-1"}, names, "processes")
	u := l.units[1]
	golden.Equal(t, []string{"/i/bin/good", "/root/server-2/good.conf", "no", "4101"}, u.start, "start")
	golden.Equal(t, []Command{{Run: []string{"/usr/bin/java", "-version"}}}, u.before, "before")
	if u.files["good.conf"] != "127.0.0.1:4001 127.0.0.1:4201 \n" || u.env[0] != "A=server-2" {
		t.Errorf("files %q, env %q", u.files, u.env)
	}
	golden.Equal(t, []string{"127.0.0.1:4000"}, l.address, "address")
}

func TestRecipeWithSeveralVersions(t *testing.T) {
	text := strings.Replace(goodRecipe, "version: 1.2.3\nplat", "version: 1.2.3\nversions: [1.1.0, '0.9']\nplat", 1)
	text = strings.Replace(text, "version: v1.2.3, programs", `version: "v{{.Version}}", files: {version.txt: "v{{.Version}}"}, programs`, 1)
	text = strings.Replace(text, "name: side,", `name: side, docker: {image: "side:{{.Version}}"},`, 1)
	def := driver.Definition{Name: "d", Page: driver.Page{Recipe: []byte(text)}}
	for name, want := range map[string]string{"": "1.2.3", "good": "1.2.3", "good@1.2.3": "1.2.3", "good@0.9": "0.9", "@1.1.0": "1.1.0"} {
		r, err := RecipeOf(def, name)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if r.Version != want || r.Install.Go.Version != "v"+want || r.Install.Go.Files["version.txt"] != "v"+want || r.Processes[1].Docker.Image != "side:"+want {
			t.Errorf("%q: version %s, of the module %s, image %s; want %s", name, r.Version, r.Install.Go.Version, r.Processes[1].Docker.Image, want)
		}
		if again, err := RecipeOf(def, r.Ref()); err != nil || again.Version != want {
			t.Errorf("%q: its reference %q finds %v, %v", name, r.Ref(), again, err)
		}
		if r.home("/c") == "" || !strings.HasPrefix(r.home("/c"), "/c/good/"+want+"-") {
			t.Errorf("%q: installed in %s", name, r.home("/c"))
		}
	}
	if _, err := RecipeOf(def, "good@2"); !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), `recipe good has no version "2" (1.2.3, 1.1.0, 0.9)`) {
		t.Errorf("a version that it does not list: %v", err)
	}
}

func TestAVersionChoosesTheRecipe(t *testing.T) {
	pinned := strings.Replace(goodRecipe, "version: v1.2.3, programs", `version: "v{{.Version}}", programs`, 1)
	doc := func(name, version, nodes string) string {
		return strings.NewReplacer("name: good", "name: "+name, "version: 1.2.3\nplat", version+"\nplat", "nodes: [1, 3]", "nodes: "+nodes).Replace(pinned)
	}
	d := driver.Definition{Name: "good", Page: driver.Page{Recipe: []byte(strings.Join([]string{
		doc("good", "version: 1.2.3", "[1]"), doc("good4", "version: 4.0.5\nversions: [4.0.4]", "[1]"), doc("cluster", "version: 1.2.3", "[3]"),
	}, "---\n"))}}
	for _, c := range []struct {
		version string
		nodes   int
		want    string
	}{{"1.2.3", 1, "good"}, {"1.2.3", 3, "cluster"}, {"1.2.3", 2, "good"}, {"4.0.5", 1, "good4"}, {"4.0.4", 0, "good4@4.0.4"}, {"4.0.5", 3, "good4"}} {
		r, err := Versioned(d, c.version, c.nodes)
		if err != nil || r.Ref() != c.want {
			t.Errorf("version %s, %d nodes: %v, %v; want %s", c.version, c.nodes, r, err, c.want)
		}
	}
	const unknown = `no recipe of good has version "5" (good: 1.2.3; good4: 4.0.5, 4.0.4; cluster: 1.2.3)`
	if _, err := Versioned(d, "5", 1); !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), unknown) {
		t.Errorf("a version that none has: %v", err)
	}

	d.Title, d.Summary, d.New = "Good", "Good.", fakeDefinition().New
	registry := must.Get(driver.NewRegistry(d))(t)
	entries := must.Get(Catalog(registry))(t)
	for name, want := range map[string]string{"good": "good", "good@4.0.4": "good4@4.0.4", "good4@4.0.5": "good4", "cluster@1.2.3": "cluster"} {
		if e, err := Named(entries, registry, name); err != nil || e.Recipe.Ref() != want || len(e.Drivers) != 1 {
			t.Errorf("%q: %v, %v; want %s", name, e.Recipe, err, want)
		}
	}
	for _, name := range []string{"good@5", "cluster@4.0.5"} {
		if _, err := Named(entries, registry, name); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestFaultsOfARecipe(t *testing.T) {
	change := func(old, new string) string {
		t.Helper()
		if !strings.Contains(goodRecipe, old) {
			t.Fatalf("%q is not in the recipe", old)
		}
		return strings.Replace(goodRecipe, old, new, 1)
	}
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "r.yaml: holds no recipe (a recipe begins with recipe: 1)"},
		{"only a comment", "# here\n", "r.yaml: holds no recipe (a recipe begins with recipe: 1)"},
		{"an empty document", goodRecipe + "---\n---\n" + goodRecipe, "r.yaml: holds an empty document (a recipe behind each ---)"},
		{"no mapping", "- a\n", "r.yaml:1:1: "},
		{"no YAML", "a: [\n", "r.yaml:1:"},
		{"too long", strings.Repeat("# x\n", 20_000), "r.yaml: is longer than a recipe may be (64 KiB)"},
		{"a tab", "a:\tb\n", "r.yaml: holds a control character (text, indented by spaces, lines ended by LF)"},
		{"an anchor", "recipe: &a 1\n", "r.yaml:1:9: anchors, aliases, merge keys and tags are not allowed (write the value out)"},
		{"nests", strings.Repeat("[", 20), "r.yaml:1:9: is nested too deeply (at most 8 levels)"},
		{"an unknown key", change("title:", "titel:"), `r.yaml:3:1: unknown field "titel"`},
		{"a key twice", change("title:", "name: a\ntitle:"), "r.yaml:3:1: "},
		{"a wrong type", change("nodes: [1, 3]", "nodes: many"), "r.yaml:6:8: "},
		{"another format", change("recipe: 1", "recipe: 2"), "r.yaml:1:9: recipe: is 2 (1)"},
		{"a bad name", change("name: good", "name: Good!"), `r.yaml:2:7: name: "Good!" does not fit (a name of small letters, digits and -)`},
		{"no title", change("title: Good Server", "title: ''"), "r.yaml:3:8: title: is missing (the system's name as its vendor writes it)"},
		{"no version", change("version: 1.2.3\nplat", "plat"), "r.yaml:1:7: version: is missing (the version to install, or distribution)"},
		{"a version twice", change("version: 1.2.3\nplat", "version: 1.2.3\nversions: [1.2.3]\nplat"), `r.yaml:5:12: versions[0]: "1.2.3" is there twice (versions that differ)`},
		{"versions without an effect", change("version: 1.2.3\nplat", "version: 1.2.3\nversions: ['1']\nplat"), "r.yaml:5:11: versions: has no effect, because install does not use the version (write {{.Version}} there)"},
		{"a platform", change("[linux, ", "[windows, "), `r.yaml:5:13: platforms[0]: "windows" is not known (linux, darwin, linux/amd64, linux/arm64, darwin/amd64, darwin/arm64)`},
		{"nodes out of order", change("nodes: [1, 3]", "nodes: [3, 1]"), "r.yaml:6:12: nodes[1]: 1 does not fit (ascending numbers from 1 to 9)"},
		{"too many nodes", change("nodes: [1, 3]", "nodes: [1, 10]"), "r.yaml:6:12: nodes[1]: 10 does not fit (ascending numbers from 1 to 9)"},
		{"no nodes", change("nodes: [1, 3]", "nodes: []"), "r.yaml:6:8: nodes: is missing (a list of numbers of nodes)"},
		{"a need without a number", change(`version: "17"`, "version: new"), `r.yaml:8:30: needs[0].version: "new" is not a version (numbers with dots)`},
		{"no source", change("go: {module: example.com/good, version: v1.2.3, programs: {good: cmd/good}}", "{}"), "r.yaml:10:3: install: has 0 sources (one of go, maven, apt, pypi)"},
		{"two sources", change("  go: {", "  pypi: {package: p, version: '1', programs: {p: p}}\n  go: {"), "install: has 2 sources (one of go, maven, apt, pypi)"},
		{"a module", change("example.com/good", "'a b'"), `install.go.module: "a b" does not fit (a module's path)`},
		{"a path that leads out", change("cmd/good}", "../good}"), `install.go.programs.good: good: "../good" does not fit (a name with a clean path)`},
		{"a file outside of the module", change("programs: {good: cmd/good}}", "programs: {good: cmd/good}, files: {../f: x}}"), `install.go.files.../f: "../f" does not fit (a clean path in the module)`},
		{"a file at an absolute path", change("programs: {good: cmd/good}}", "programs: {good: cmd/good}, files: {/f: x}}"), `install.go.files./f: "/f" does not fit (a clean path in the module)`},
		{"the module itself as a file", change("programs: {good: cmd/good}}", "programs: {good: cmd/good}, files: {.: x}}"), `"." does not fit (a clean path in the module)`},
		{"a large file", change("programs: {good: cmd/good}}", "programs: {good: cmd/good}, files: {f: "+strings.Repeat("x", 4097)+"}}"), "install.go.files.f: is 4097 bytes long (at most 4096)"},
		{"many files", change("programs: {good: cmd/good}}", "programs: {good: cmd/good}, files: {"+strings.Join(strings.Split("abcdefghijklmnopq", ""), ": x, ")+": x}}"), "install.go.files: holds 17 files (at most 16)"},
		{"no programs", change(", programs: {good: cmd/good}", ""), "install.go.programs: is missing (names of programs with their paths)"},
		{"a setting that does not take its default", change(`default: "no"`, "default: maybe"), `settings.sync.default: "maybe" is not known (no, yes)`},
		{"a setting without help", change("help: Sync.", "help: ''"), "settings.sync.help: is missing (a sentence)"},
		{"two processes of one name", change("name: side", "name: server"), `processes[1].name: "server" is there twice (names that differ)`},
		{"no place for a process", change("on: first", "on: last"), `processes[1].on: "last" is not known (all, first, others, address)`},
		{"a port of no number", change("client: 4000", "client: 70000"), "client: 70000 does not fit (a name of small letters, digits and _, with the vendor's own port)"},
		{"two ports of one name", change("name: side, on: first", "name: side, on: first, ports: {client: 1}"), `processes[1].ports.client: "client" is another process's on the same node (names that differ)`},
		{"a file outside", change("good.conf: |", "../good.conf: |"), `"../good.conf" does not fit (a clean path in the process's folder`},
		{"a file that weir writes", change("good.conf: |", "output.log: |"), `"output.log" does not fit`},
		{"no start", change(", start: [sleep, \"1\"]", ""), "processes[1].start: is missing (a program and its arguments)"},
		{"a command without a program", change("run: [\"{{program \\\"java\\\"}}\", -version]", "run: []"), "processes[0].before[0].run: is missing (a program and its arguments)"},
		{"a user", change("on: first,", "on: first, as: 'x y',"), `processes[1].as: "x y" does not fit (a user's name)`},
		{"no address", change(`address: "{{.At \"client\"}}", `, ""), "connect.address: is missing (a template of what the option address of the driver takes)"},
		{"an address as an option", change("nodes: first}", "options: {d: {address: x}}}"), "connect.options.d.address: is set by connect.address (another option)"},
		{"a wait that does not fit", change("within: 2m", "within: soon"), "is not a duration that fits (such as 30s, up to 10m)"},
		{"memory that is none", change("on: first,", "on: first, memory: 64m + lots,"), `processes[1].memory: with 1 nodes: "lots" is not a size (sizes joined by +, such as 256m + 100MiB)`},
		{"an image that moves", change("on: first, start", "on: first, docker: {image: 'a:latest'}, start"), "processes[1].docker.image: is a moving tag (use a pinned one)"},
		{"an image without a tag", change("on: first, start", "on: first, docker: {image: a}, start"), `processes[1].docker.image: "a" does not fit (an image with a pinned tag, such as redis:7.4.2)`},
		{"a template that is none", change("{{range .Others}}", "{{range}}"), "processes[0].files.good.conf: with 1 nodes: "},
		{"a port that there is not", change(`{{.At "peer"}}`, `{{.At "pear"}}`), `node 2 has no port "pear"`},
		{"a program that there is not", change("{{program \\\"good\\\"}}", "{{program \\\"bad\\\"}}"), `no program "bad"`},
		{"a setting that there is not", change("{{set \\\"sync\\\"}}", "{{set \\\"sink\\\"}}"), `no setting "sink"`},
		{"a template without an end of its own", change("{{.Process}}", "{{define \\\"x\\\"}}xxxxxxxxxx{{template \\\"x\\\"}}{{end}}{{template \\\"x\\\"}}"), "processes[0].env.A: "},
		{"two of one name", goodRecipe + "---\n" + goodRecipe, "name: is given twice (once)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseRecipes("r.yaml", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v\nwant %s", err, c.want)
			}
			var e *RecipeError
			if !errors.As(err, &e) || e.Source != "r.yaml" {
				t.Errorf("%v is no RecipeError of the file", err)
			}
		})
	}
}

func TestAllRecipeErrorsAreReported(t *testing.T) {
	_, err := ParseRecipes("r", []byte("recipe: 1\nname: X\nversion: '1'\nnodes: [0]\nprocesses: []\n"))
	if n := len(strings.Split(err.Error(), "\n")); n < 5 {
		t.Errorf("%d faults:\n%v", n, err)
	}
}

func TestVersionsAreNumbers(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"17.0.2", "17", false},
		{"11.0.30", "17", true},
		{"openjdk 21 2024", "17", false},
		{"1.9", "1.10", true},
		{"2", "2.0.1", true},
		{"18446744073709551616", "1", true}, // number overflows
	} {
		if got := older(c.a, c.b); got != c.want {
			t.Errorf("%q older than %q: %v", c.a, c.b, got)
		}
	}
}

func FuzzParseRecipes(f *testing.F) {
	f.Add([]byte(goodRecipe))
	f.Add([]byte(boxedRecipe))
	f.Add([]byte("recipe: 1\n---\nrecipe: 1\n"))
	f.Add([]byte("a: [b, {c: d}]\n"))
	f.Add([]byte("? [a]\n: b\n"))
	f.Add([]byte("nodes: [1\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		rs, err := ParseRecipes("f", b)
		if (err == nil) == (len(rs) == 0) {
			t.Fatalf("%d recipes and %v", len(rs), err)
		}
		for _, r := range rs {
			for _, n := range r.Nodes {
				if _, err := Compose(r, n, nil); err != nil && r.Install == nil {
					t.Errorf("it was read, and cannot be laid out: %v", err)
				}
			}
		}
	})
}
