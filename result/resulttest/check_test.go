package resulttest

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/result"
)

var golden = filepath.Join("..", "testdata", "v1", "jetstream")

// Breaks a good folder in one place at a time.
func TestCheckFindsBrokenResult(t *testing.T) {
	replace := func(old, to string) func(string) string {
		return func(s string) string { return strings.Replace(s, old, to, 1) }
	}
	// without removes the last line that contains a text.
	without := func(text string) func(string) string {
		return func(s string) string {
			at := strings.LastIndex(s, text)
			from := strings.LastIndexByte(s[:at], '\n') + 1
			to := at + strings.IndexByte(s[at:], '\n') + 1
			return s[:from] + s[to:]
		}
	}
	for name, tt := range map[string]struct {
		file   string
		broken func(string) string // nil: the file is removed
		says   string
	}{
		"nothing":                          {result.FileResult, func(s string) string { return s }, ""},
		"no events":                        {result.FileEvents, nil, "events.jsonl is missing"},
		"no scenario":                      {result.FileScenario, nil, "scenario.yaml is missing"},
		"a file of no page":                {"surprise.bin", func(string) string { return "x" }, "docs/formats does not know"},
		"a field of no page":               {result.FileResult, replace(`"weir":`, `"wire": 1, "weir":`), "additional properties 'wire' not allowed"},
		"a field that is missing":          {result.FileResult, replace(`"seed"`, `"sead"`), "missing property 'seed'"},
		"a text where a number belongs":    {result.FileResult, replace(`"seed": 1`, `"seed": "1"`), "result.json"},
		"a negative count":                 {result.FileResult, replace(`"lost": 0`, `"lost": -1`), "messages.lost"},
		"a word that is none":              {result.FileResult, replace(`"status": "valid"`, `"status": "fine"`), "value must be one of"},
		"a loop that is none":              {result.FileResult, replace(`"loop": "open"`, `"loop": "half"`), "value must be one of"},
		"an environment of another field":  {result.FileEnvironment, replace(`"cores"`, `"kores"`), "'kores' not allowed"},
		"an environment of another schema": {result.FileEnvironment, replace(`environment/v1`, `environment/v2`), "value must be 'weir.environment/v1'"},
		"an event of another field":        {result.FileEvents, replace(`"kind":"phase"`, `"kind":"phase","x":1`), "line 2"},
		"an event without its instant":     {result.FileEvents, replace(`"t_ns"`, `"text"`), "line 2"},
		"one event less":                   {result.FileEvents, without(`"drain"`), "result.json says 3"},
		"one line less":                    {result.FileIntervals, without("Tag=send.response.measure,"), "send.response.measure: the lines hold"},
		"all lines of a distribution less": {result.FileIntervals, func(s string) string {
			return strings.ReplaceAll(s, "Tag=e2e.service.measure,", "Tag=e2e.service.warmup,")
		}, "e2e.service.measure: the lines hold 0"},
		"a tag that is none":                  {result.FileIntervals, replace("Tag=send.blocked.warmup", "Tag=send.blocked.drain"), "no tag that docs/formats knows"},
		"a distribution that is none":         {result.FileIntervals, replace("Tag=send.blocked.warmup", "Tag=send.other.measure"), "no such distribution"},
		"another percentile":                  {result.FileResult, replace(`"p": 50,`+"\n"+`            "ns": 1`, `"p": 50,`+"\n"+`            "ns": 2`), "p50 of the lines is"},
		"another maximum":                     {result.FileIntervals, replace(",2.140071,", ",2.140072,"), "the largest of the lines"},
		"a log without its schema":            {result.FileIntervals, replace("#[Schema: weir.intervals/v1]\n", ""), "does not name its schema"},
		"a table of other samples":            {"send.hgrm", replace("Total count    =         2000", "Total count    =         2001"), "send.hgrm"},
		"a table of another maximum":          {"e2e.hgrm", replace(", Total count", "9, Total count"), "its maximum is"},
		"a table without its schema":          {"e2e.hgrm", replace("#[Schema: weir.hgrm/v1]\n", ""), "does not name its schema"},
		"a scenario of no version":            {result.FileScenario, replace("weir: 1\n", ""), "does not say weir: 1"},
		"a result that ends within its JSON":  {result.FileResult, func(s string) string { return s[:len(s)/2] }, "cut short"},
		"an event file that says it is newer": {result.FileEvents, replace("events/v1", "events/v2"), "line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "r")
			must.Do(t, os.CopyFS(dir, os.DirFS(golden)))
			path := filepath.Join(dir, tt.file)
			old, err := os.ReadFile(path)
			if err != nil && tt.file != "surprise.bin" {
				t.Fatal(err)
			}
			if tt.broken == nil {
				err = os.Remove(path)
			} else {
				now := tt.broken(string(old))
				if now == string(old) && tt.says != "" {
					t.Fatal("nothing was broken: the stored file has changed")
				}
				err = os.WriteFile(path, []byte(now), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			err = Check(dir)
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v; want it to say %q", err, tt.says)
			}
		})
	}
}

// Breaks host.jsonl in one place at a time.
func TestCheckComparesHostTotals(t *testing.T) {
	second := func(i int64) host.Sample {
		return host.Sample{
			FromNS: i * 1e9, ToNS: (i + 1) * 1e9, Host: host.HostSample{UserS: new(0.1), DiskReads: new(uint64(i))},
			Processes: []host.ProcessSample{{Name: "weir", Processes: 1, UserS: new(0.1), SystemS: new(0.2)}},
		}
	}
	good := []host.Sample{second(0), second(1), second(2), second(3)}
	for name, tt := range map[string]struct {
		broken func([]host.Sample) []host.Sample
		says   string
	}{
		"nothing":               {func(all []host.Sample) []host.Sample { return all }, ""},
		"a second of warm-up":   {func(all []host.Sample) []host.Sample { return all[1:] }, ""},
		"a second less":         {func(all []host.Sample) []host.Sample { return slices.Delete(all, 1, 2) }, "differ"},
		"another count":         {func(all []host.Sample) []host.Sample { all[1].Host.DiskReads = new(uint64(9)); return all }, "differ"},
		"a figure less":         {func(all []host.Sample) []host.Sample { all[1].Processes[0].UserS = nil; return all }, "differ"},
		"a second twice":        {func(all []host.Sample) []host.Sample { all[2].FromNS--; return all }, "line 4"},
		"an empty second":       {func(all []host.Sample) []host.Sample { all[2].ToNS = all[2].FromNS; return all }, "line 4"},
		"nothing of the window": {func(all []host.Sample) []host.Sample { return all[:1] }, "no line"},
	} {
		dir := filepath.Join(t.TempDir(), "r")
		must.Do(t, os.CopyFS(dir, os.DirFS(golden)))
		saved, err := result.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		saved.Result.Resources = []host.Sample{second(1).Then(second(2)).Then(second(3))}
		f := result.Reopen(dir)
		must.Do(t, f.WriteResult(saved.Result))
		var all []host.Sample
		for _, x := range good {
			x.Processes = slices.Clone(x.Processes)
			all = append(all, x)
		}
		for _, x := range tt.broken(all) {
			must.Do(t, f.AppendSample(x))
		}
		err = Check(dir)
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: error %v; want it to say %q", name, err, tt.says)
		}
	}
}

// Validates a document with an unknown field against the schemas in docs/formats.
func TestReadersMayMeetNewFields(t *testing.T) {
	c := jsonschema.NewCompiler()
	schema := must.Get(c.Compile(filepath.Join("..", "..", "docs", "formats", ResultSchema)))(t)
	b := must.Get(os.ReadFile(filepath.Join(golden, result.FileResult)))(t)
	b = bytes.Replace(b, []byte(`"weir":`), []byte(`"wire": 1, "weir":`), 1)
	v := must.Get(jsonschema.UnmarshalJSON(bytes.NewReader(b)))(t)
	if err := schema.Validate(v); err != nil {
		t.Error(err)
	}
	if err := CheckResult(b); err == nil {
		t.Error("the closed schema takes it too")
	}
}
