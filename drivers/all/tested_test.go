package all

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/tested"
	"github.com/weirmq/weir/drivers/standard"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/must"
)

func TestRecordIsAsSuitesWroteIt(t *testing.T) {
	record := must.Get(os.ReadFile("../standard/tested.yaml"))(t)
	es := must.Get(tested.Parse(record))(t)
	again := must.Get(tested.Format(es))(t)
	if !bytes.Equal(again, record) {
		t.Error("tested.yaml is not as make tested writes it: sorted, and nothing else in it")
	}
	if len(standard.Tested()) != len(es) || len(es) == 0 {
		t.Errorf("%d entries, of which %d are returned", len(es), len(standard.Tested()))
	}
	for _, f := range faultsOf(es) {
		t.Error(f)
	}
}

func TestEveryDriverWithAClientWasTested(t *testing.T) {
	for _, d := range Definitions() {
		if d.Client != "" && len(tested.Of(standard.Tested(), d.Name)) == 0 {
			t.Errorf("driver %s: no suite of it has passed against a server: make tested records one that does", d.Name)
		}
	}
}

func TestAnImpossibleRecordIsFound(t *testing.T) {
	good := tested.Entry{Driver: "nats", Test: "T", Server: "nats-server", Version: "2", Nodes: 1, Client: "v1", Passed: 20, Date: "2026-01-02"}
	if fs := faultsOf([]tested.Entry{good}); len(fs) > 0 {
		t.Fatalf("nothing is wrong, but: %v", fs)
	}
	for want, spoil := range map[string]func(*tested.Entry){
		"no such driver":    func(e *tested.Entry) { e.Driver = "xyzzy" },
		"no such recipe":    func(e *tested.Entry) { e.Recipe = "xyzzy" },
		"no server":         func(e *tested.Entry) { e.Version = "" },
		"no test":           func(e *tested.Entry) { e.Test = "" },
		"client's version":  func(e *tested.Entry) { e.Client = "" },
		"no checks":         func(e *tested.Entry) { e.Passed = 0 },
		"is not a day":      func(e *tested.Entry) { e.Date = "yesterday" },
		"is in the future":  func(e *tested.Entry) { e.Date = "2999-01-01" },
		"one is negative":   func(e *tested.Entry) { e.Nodes = -1 },
		"recorded twice by": nil,
	} {
		e := good
		es := []tested.Entry{e, e}
		if spoil != nil {
			spoil(&e)
			es = []tested.Entry{e}
		}
		if fs := faultsOf(es); !slices.ContainsFunc(fs, func(f string) bool { return strings.Contains(f, want) }) {
			t.Errorf("%s: not found, but %q", want, fs)
		}
	}
}

// faultsOf returns entries that no run can have recorded.
func faultsOf(es []tested.Entry) []string {
	var faults []string
	seen := map[[2]string]bool{}
	for _, e := range es {
		bad := func(format string, args ...any) {
			faults = append(faults, fmt.Sprintf("%s, %s: ", e.Driver, e.Test)+fmt.Sprintf(format, args...))
		}
		if key := [2]string{e.Driver, e.Test}; seen[key] {
			bad("recorded twice by one test")
		} else {
			seen[key] = true
		}
		i := slices.IndexFunc(Definitions(), func(d driver.Definition) bool { return d.Name == e.Driver })
		if i < 0 {
			bad("there is no such driver")
			continue
		}
		def := Definitions()[i]
		if e.Recipe != "" {
			if _, err := broker.RecipeOf(def, e.Recipe); err != nil {
				bad("there is no such recipe: %v", err)
			}
		}
		if (e.Client == "") != (def.Client == "") {
			bad("the client's version stands beside a client, or neither")
		}
		if e.Server == "" || e.Version == "" {
			bad("no server, or no version of it")
		}
		if e.Test == "" {
			bad("no test")
		}
		if e.Passed < 1 {
			bad("no checks passed")
		}
		if e.Nodes < 0 {
			bad("a number of nodes, and this one is negative: %d", e.Nodes)
		}
		if day, err := time.Parse(time.DateOnly, e.Date); err != nil {
			bad("%q is not a day", e.Date)
		} else if day.After(time.Now()) {
			bad("%s is in the future", e.Date)
		}
	}
	return faults
}
