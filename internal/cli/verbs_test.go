package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/fleet/survey"
	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/history"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/selftest"
	"github.com/weirmq/weir/internal/view"
)

// elsewhere are objects whose fields another page of docs/formats lists.
var elsewhere = []reflect.Type{reflect.TypeFor[host.Facts](), reflect.TypeFor[pace.Calibration]()}

// fields returns the paths of all that a value of a type is written as in JSON.
func fields(t reflect.Type, path string) []string {
	switch {
	case slices.Contains(elsewhere, t):
		return []string{path}
	case t.Kind() == reflect.Pointer:
		return fields(t.Elem(), path)
	case t.Kind() == reflect.Slice:
		return fields(t.Elem(), path+"[]")
	case t.Kind() == reflect.Map:
		return fields(t.Elem(), path+".NAME")
	case t.Kind() != reflect.Struct:
		return []string{path}
	}
	var out []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case f.Anonymous:
			out = append(out, fields(f.Type, path)...)
		case f.IsExported():
			out = append(out, fields(f.Type, strings.TrimPrefix(path+"."+name, "."))...)
		}
	}
	return out
}

// printed returns the paths of all that is in a JSON value, as fields has them.
func printed(v any, path string) []string {
	switch v := v.(type) {
	case map[string]any:
		var out []string
		for key, inner := range v {
			if strings.HasSuffix(path, ".capabilities") {
				key = "NAME"
			}
			out = append(out, printed(inner, strings.TrimPrefix(path+"."+key, "."))...)
		}
		return out
	case []any:
		var out []string
		for _, inner := range v {
			out = append(out, printed(inner, path+"[]")...)
		}
		return out
	}
	return []string{path}
}

// documented returns the fields of each section "weir VERB --json" of docs/formats, by the verb.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	code := regexp.MustCompile("`([^`]+)`")
	out := map[string][]string{}
	for _, page := range []string{"verbs.md", "compare.md", "history.md"} {
		verb := ""
		for line := range strings.Lines(string(must.Get(os.ReadFile(filepath.Join("..", "..", "docs", "formats", page)))(t))) {
			if head, ok := strings.CutPrefix(line, "## weir "); ok {
				verb, _, _ = strings.Cut(strings.TrimSpace(head), " --json")
			}
			if cells := strings.Split(line, "|"); verb != "" && len(cells) > 2 {
				for _, m := range code.FindAllStringSubmatch(cells[1], -1) {
					out[verb] = append(out[verb], m[1])
				}
			}
		}
	}
	return out
}

// allDocumented checks that docs/formats lists all that a verb printed in JSON, and returns that.
func allDocumented(t *testing.T, verb, text string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("weir %s --json prints no JSON: %v", verb, err)
	}
	listed := documented(t)[verb]
	for _, path := range printed(v, "") {
		if !slices.Contains(listed, path) && !slices.Contains(listed, strings.TrimSuffix(path, "[]")) && !strings.HasPrefix(path, "host.") && !strings.Contains(path, "labels") {
			t.Errorf("weir %s --json prints %s, which docs/formats does not list", verb, path)
		}
	}
	return v
}

func TestThePagesListVerbJSON(t *testing.T) {
	t.Parallel()
	page := documented(t)
	for verb, prints := range map[string]reflect.Type{
		"drivers": reflect.TypeFor[view.DriverList](), "doctor": reflect.TypeFor[view.Diagnosis](),
		"version": reflect.TypeFor[buildinfo.Versions](), "calibrate": reflect.TypeFor[selftest.Calibration](),
		"fleet status": reflect.TypeFor[survey.Status](), "fleet doctor": reflect.TypeFor[survey.Diagnosis](),
		"compare": reflect.TypeFor[compare.Comparison](), "history": reflect.TypeFor[history.History](),
	} {
		want := fields(prints, "")
		got := slices.DeleteFunc(page[verb], func(f string) bool { return f == "figures" }) // of which null is said
		slices.Sort(want)
		slices.Sort(got)
		golden.Equal(t, want, got, "docs/formats, weir %s --json", verb)
	}
}

func TestThePagesListAllPrintedJSON(t *testing.T) {
	shown := map[string]string{"compare": compared(t, "--json"), "history": remembered(t, "--json")}
	for _, verb := range []string{"drivers", "doctor", "version"} {
		code, stdout, stderr := do(t, World{Drivers: all.Definitions()}, verb, "--json")
		if code != int(OK) || stderr.String() != "" {
			t.Fatalf("weir %s --json: exit code %d, %s", verb, code, stderr)
		}
		shown[verb] = stdout.String()
	}
	for verb, text := range shown {
		if got, want := allDocumented(t, verb, text)["schema"], "weir."+verb+"/v1"; got != want {
			t.Errorf("weir %s --json: schema %v; want %s", verb, got, want)
		}
	}
}
