package all

import (
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/standard"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/must"
)

func TestEveryDriverDocumentsItself(t *testing.T) {
	for _, d := range Definitions() {
		for _, fault := range undocumented(d) {
			t.Errorf("driver %s: %s", d.Name, fault)
		}
	}
}

func TestAnUndocumentedDriverIsFound(t *testing.T) {
	good := Definitions()[slices.IndexFunc(Definitions(), func(d driver.Definition) bool { return d.Name == "nats" })]
	if faults := undocumented(good); len(faults) > 0 {
		t.Fatalf("nats is well documented, but: %v", faults)
	}
	for name, spoil := range map[string]func(*driver.Definition){
		"Title is empty":            func(d *driver.Definition) { d.Title = "" },
		"Summary":                   func(d *driver.Definition) { d.Summary = "no full stop" },
		"About":                     func(d *driver.Definition) { d.About = "" },
		"ClientWhy":                 func(d *driver.Definition) { d.ClientWhy = "" },
		"Features.Persistence is":   func(d *driver.Definition) { d.Features.Persistence = "" },
		"Features.Replication is":   func(d *driver.Definition) { d.Features.Replication = "by hand." },
		"Features.Protocol is":      func(d *driver.Definition) { d.Features.Protocol = strings.Repeat("x", 121) },
		"Features.Failover is":      func(d *driver.Definition) { d.Features.Failover = "" },
		"Features.Console is":       func(d *driver.Definition) { d.Features.Console = "" },
		"Embeds":                    func(d *driver.Definition) { d.Embeds = "" },
		"Maps: want":                func(d *driver.Definition) { d.Maps = d.Maps[1:] },
		"destination has no Source": func(d *driver.Definition) { d.Maps[0].Source = "" },
		"is not an https address":   func(d *driver.Definition) { d.Maps[0].Source = "somewhere" },
		"settle none is not":        func(d *driver.Definition) { d.Maps = d.Maps[:len(d.Maps)-1] },
		"guarantee received":        func(d *driver.Definition) { d.Confirmations = d.Confirmations[:1] },
		"declares no":               func(d *driver.Definition) { d.Capabilities.Guarantees = d.Capabilities.Guarantees[:1] },
		`Known has no "nosuch"`: func(d *driver.Definition) {
			d.Confirmations[0].When = driver.Conditions{{Name: "nosuch", Values: []string{"1"}}}
		},
		"has no Source": func(d *driver.Definition) { d.Confirmations[0].Source = "" },
		"stable fsync of copies 1 ": func(d *driver.Definition) {
			d.Confirmations[0].Confirms = driver.Confirms{Guarantee: driver.Buffered, Stable: driver.StableFsync}
		},
		"weakest first": func(d *driver.Definition) { slices.Reverse(d.Confirmations) },
	} {
		d := good
		d.Maps, d.Confirmations = slices.Clone(good.Maps), slices.Clone(good.Confirmations)
		spoil(&d)
		if faults := undocumented(d); !slices.ContainsFunc(faults, func(f string) bool { return strings.Contains(f, name) }) {
			t.Errorf("%s: not found, but %q", name, faults)
		}
	}
}

// TestAJVMUnpacksIntoItsOwnFolder: a killed JVM leaves its unpacked libraries behind. Java ignores
// TMPDIR.
func TestAJVMUnpacksIntoItsOwnFolder(t *testing.T) {
	seen := 0
	for _, d := range Definitions() {
		recipes := must.Get(broker.Recipes(d))(t)
		for _, r := range recipes {
			if !slices.ContainsFunc(r.Needs, func(n broker.Need) bool { return n.Program == "java" }) {
				continue
			}
			for _, p := range r.Processes {
				seen++
				said := strings.Join(p.Start, " ") + strings.Join(slices.Collect(maps.Values(p.Env)), " ")
				if !strings.Contains(said, "-Djava.io.tmpdir={{.Dir}}") {
					t.Errorf("%s: %s has no -Djava.io.tmpdir={{.Dir}}", r.Name, p.Name)
				}
			}
		}
	}
	if seen < 8 {
		t.Errorf("%d processes of JVMs were looked at", seen)
	}
}

// longestFeature is the width limit of a column in the feature table.
const longestFeature = 120

// undocumented returns what is missing from a driver's page, or wrong on it.
func undocumented(d driver.Definition) []string {
	var faults []string
	bad := func(what string) { faults = append(faults, what) }
	if d.Title == "" {
		bad("Title is empty")
	}
	for what, s := range map[string]string{"Summary": d.Summary, "About": d.About} {
		if s == "" || !strings.HasSuffix(s, ".") || !unicode.IsUpper(rune(s[0])) {
			bad(what + " is not a sentence")
		}
	}
	if (d.Client == "") != (d.ClientWhy == "") {
		bad("ClientWhy stands beside Client, or neither")
	}
	if (d.Serve == nil) != (d.Embeds == "") {
		bad("Embeds stands beside Serve, or neither")
	}
	features := map[string]string{
		"Persistence": d.Features.Persistence, "Replication": d.Features.Replication, "Protocol": d.Features.Protocol,
	}
	if d.Client != "" { // in-process drivers have none of these
		features["Failover"], features["Encryption"] = d.Features.Failover, d.Features.Encryption
		features["Compression"], features["Console"] = d.Features.Compression, d.Features.Console
	}
	for what, s := range features {
		if s == "" || strings.HasSuffix(s, ".") || strings.Contains(s, "\n") || len(s) > longestFeature {
			bad(fmt.Sprintf("Features.%s is not a few words without a full stop (at most %d characters)", what, longestFeature))
		}
	}
	var words []string
	for _, m := range d.Maps {
		words = append(words, m.Word)
		if m.To == "" || strings.HasSuffix(m.To, ".") || m.To == strings.ToUpper(m.To) {
			bad(m.Word + ": To is not a clause")
		}
		switch u, err := url.Parse(m.Source); {
		case m.Source == "" && d.Client != "":
			bad(m.Word + " has no Source")
		case m.Source != "" && (err != nil || u.Scheme != "https" || u.Host == ""):
			bad(m.Word + ": Source is not an https address")
		}
	}
	if want := driver.Words(); len(words) < len(want) || !slices.Equal(words[:len(want)], want) {
		bad("Maps: want " + strings.Join(want, ", ") + " first, have " + strings.Join(words, ", "))
	}
	for _, s := range d.Capabilities.Settle {
		if !slices.Contains(words, "settle "+s.String()) {
			bad("Maps: settle " + s.String() + " is not explained")
		}
	}
	return append(faults, confirmations(d)...)
}

// levels are the possible guarantees for copies of a message in a kind of storage.
func levels(c driver.Confirms) []driver.Guarantee {
	switch {
	case c.Copies != driver.CopiesOne && c.Stable == driver.StableFsync:
		return []driver.Guarantee{driver.Persisted}
	case c.Copies != driver.CopiesOne:
		return []driver.Guarantee{driver.Replicated}
	case c.Stable == driver.StableFsync: // on the only node, or on one of several
		return []driver.Guarantee{driver.Persisted, driver.Received}
	case c.Stable == driver.StableOS:
		return []driver.Guarantee{driver.Received}
	}
	return []driver.Guarantee{driver.Buffered, driver.Written, driver.Received}
}

// confirmations returns the faults in the guarantee table.
func confirmations(d driver.Definition) []string {
	var faults []string
	bad := func(format string, args ...any) {
		faults = append(faults, "Confirmations: "+fmt.Sprintf(format, args...))
	}
	known := driver.Known{"version": ""} // only a running server reports it
	if f, ok := d.New().(driver.GuaranteePredictor); ok {
		maps.Copy(known, f.Known(driver.Servers{Nodes: 3, Replicas: 3}))
	}
	var gives []driver.Guarantee
	for _, c := range d.Confirmations {
		gives = append(gives, c.Guarantee)
		for _, w := range c.When {
			if _, ok := known[w.Name]; !ok {
				bad("Known has no %q (of servers that weir starts, it returns every setting that a row names, \"\" if unknown)", w.Name)
			}
		}
		switch u, err := url.Parse(c.Source); {
		case c.Source == "" && d.Client != "":
			bad("%s has no Source", c.When)
		case c.Source != "" && (err != nil || u.Scheme != "https" || u.Host == ""):
			bad("%s: Source is not an https address", c.When)
		}
		if d.Name != "exec" && !slices.Contains(levels(c.Confirms), c.Guarantee) {
			bad("stable %s of copies %s is not %s", c.Stable, c.Copies, c.Guarantee)
		}
		if !slices.Contains(d.Capabilities.Guarantees, c.Guarantee) {
			bad("the driver declares no %s", c.Guarantee)
		}
	}
	if !slices.IsSorted(gives) {
		bad("weakest first")
	}
	for _, g := range d.Capabilities.Guarantees {
		if !slices.Contains(gives, g) {
			bad("nothing gives guarantee %s", g)
		}
	}
	return faults
}

// TestFileOptionsAreMarked: an agent accepts such files from a scenario only if its user allows
// them, so every file option must be marked.
func TestFileOptionsAreMarked(t *testing.T) {
	seen := 0
	for _, d := range Definitions() {
		cfg := d.New()
		files := driver.FileOptions(cfg)
		for _, o := range driver.Options(cfg) {
			says := strings.HasPrefix(o.Help, "File of ") || strings.HasPrefix(o.Help, "Credentials file")
			if says != slices.Contains(files, o.Name) {
				t.Errorf("%s: %s (%s): a file: %v, tagged: %v", d.Name, o.Name, o.Help, says, !says)
			}
			if says {
				seen++
			}
		}
	}
	if seen < 20 {
		t.Errorf("%d options name files", seen)
	}
}

// TestStandardListsAbsentDrivers compares package standard with the drivers that package all adds.
func TestStandardListsAbsentDrivers(t *testing.T) {
	var want []driver.Absent
	for _, d := range Extra() {
		a := driver.Absent{Name: d.Name, Title: d.Title}
		recipes := must.Get(broker.Recipes(d))(t)
		for _, r := range recipes {
			a.Recipes = append(a.Recipes, r.Name)
		}
		want = append(want, a)
	}
	if got := standard.Absent(); !reflect.DeepEqual(got, want) {
		t.Errorf("package standard says that it lacks\n%v; it lacks\n%v", got, want)
	}
}
