package scenario

import (
	"encoding/json"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/result"
)

// sentBefore returns the result of a run in mode produce.
func sentBefore() *result.Result {
	return &result.Result{
		Schema: result.Schema, Run: result.Run{Mode: result.ModeProduce, Number: 4711}, System: result.System{Driver: "jetstream"},
		MessagesAll: result.Messages{Sent: 9, Confirmed: 6, Failed: 2, Unconfirmed: 1},
		Streams: []result.Stream{
			{Destination: "a", Sent: 5, Failed: []result.Seqs{{First: 1, Last: 2}}},
			{Destination: "b", Sent: 4, Unconfirmed: []result.Seqs{{First: 3, Last: 3}}},
			{Destination: "a"},
		},
	}
}

func TestConsumeOf(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*result.Result) // changes the content of r1
		flags  string
		want   string // substring of the error; "": no error
	}{
		"fits":                      {nil, "", ""},
		"the same destinations":     {nil, "topology.names=[b,a]", ""},
		"from the first":            {nil, "consume.from=earliest", ""},
		"lost is known":             {nil, "slo=lost == 0", ""},
		"other destinations":        {nil, "topology.names=[b,c]", "that run sent to a, b, and topology.names is b, c"},
		"from later on":             {nil, "consume.from=latest", "consume.from: is latest, and what lies before it would count as lost (earliest)"},
		"several times":             {nil, "repeat=2", "repeat: is 2, and what one run took would be lost to the next (1)"},
		"a driver without a memory": {nil, "system.driver=plain", "r1: driver plain keeps no messages for later consumers"},
		"no folder":                 {nil, "consume.of=r3", "r3: has no result.json: it is no result folder, or its run has not ended"},
		"a series":                  {nil, "consume.of=series", "series: holds 2 runs, so name one of them, such as x-1"},
		"not JSON":                  {nil, "consume.of=broken", "broken: result.json: "},
		"a later format":            {func(r *result.Result) { r.Schema = "weir.result/v9" }, "", "weir.result/v9"},
		"another driver":            {func(r *result.Result) { r.System.Driver = "kafka" }, "", "its run was by driver kafka, and this one is by jetstream"},
		"another mode":              {func(r *result.Result) { r.Run.Mode = "stream" }, "", "its run was in mode stream, and only mode produce leaves messages"},
		"a fleet":                   {func(r *result.Result) { r.Agents = []result.Agent{{}} }, "", "agents did its run"},
		"no streams":                {func(r *result.Result) { r.Streams = nil }, "", "does not say which messages were confirmed"},
		"no number":                 {func(r *result.Result) { r.Run.Number = 0 }, "", "does not say which messages were confirmed"},
		"a count that differs":      {func(r *result.Result) { r.MessagesAll.Failed++ }, "", "is damaged: its streams are not what its messages_all counts"},
		"spans beyond the end":      {func(r *result.Result) { r.Streams[0].Failed[0].Last = 5 }, "", "is damaged"},
		"spans out of order":        {func(r *result.Result) { r.Streams[0].Failed = []result.Seqs{{First: 2, Last: 2}, {First: 1, Last: 1}} }, "", "is damaged"},
		"streams out of turn":       {func(r *result.Result) { r.Streams[2].Destination = "b" }, "", "is damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := sentBefore()
			if tt.change != nil {
				tt.change(r)
			}
			b := must.Get(json.Marshal(r))(t)
			in := inputs(t, "", flags("mode=consume")...)
			if !strings.HasPrefix(tt.flags, "consume.of=") {
				in.Overrides = append(in.Overrides, flags("consume.of=r1")...)
			}
			if tt.flags != "" {
				in.Overrides = append(in.Overrides, flags(tt.flags)...)
			}
			files := fstest.MapFS{
				"at/dir/r1/result.json": {Data: b}, "at/dir/broken/result.json": {Data: b[:len(b)/2]},
				"at/dir/series/x-1/result.json": {Data: b}, "at/dir/series/x-2/result.json": {Data: b},
			}
			under := func(path string) string { return strings.TrimPrefix(path, "/") }
			in.ReadFile = func(path string) ([]byte, error) { return files.ReadFile(under(path)) }
			in.Stat = func(path string) (fs.FileInfo, error) { return files.Stat(under(path)) }
			in.ReadDir = func(path string) ([]fs.DirEntry, error) { return files.ReadDir(under(path)) }
			s, err := only(in)
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("the error is %q; want one line with %q", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			c := s.Config("", 1)
			if c.Run != 4711 || c.Plan.Producers != 3 || c.Plan.Destinations != 2 || c.From.At != driver.AtEarliest {
				t.Errorf("run %d, %d producers, %d destinations, from %v", c.Run, c.Plan.Producers, c.Plan.Destinations, c.From)
			}
			if d := cmp.Diff([]string{"a", "b"}, c.Names) + cmp.Diff(sentBefore().Streams, c.Of); d != "" {
				t.Error(d)
			}
			if text := string(s.Explain()); !strings.Contains(text, "of: /at/dir/r1") || !strings.Contains(text, ": messages that it confirmed: 6\n") {
				t.Errorf("explained:\n%s", text)
			}
		})
	}
}

// TestUncheckableObjectives: they need a run that sent, or one that received.
func TestUncheckableObjectives(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ mode, slo, want string }{
		{"consume", "lost == 0", "mode consume does not know what was sent"},
		{"consume", "ratio(lost, confirmed) <= 1%", "mode consume does not know what was sent"},
		{"consume", "foreign >= 10", ""},
		{"consume", "received.rate >= 10/s", ""},
		{"produce", "lost == 0", "mode produce receives nothing"},
		{"produce", "received.rate >= 10/s", "mode produce receives nothing"},
		{"produce", "failed == 0", ""},
		{"stream", "lost == 0", ""},
	} {
		overrides := flags("mode="+tt.mode, "slo="+tt.slo)
		if tt.mode == "consume" {
			overrides = append(overrides, flags("topology.names=[a]")...)
		}
		_, err := only(inputs(t, "", overrides...))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("mode %s, %s: %v; want %q", tt.mode, tt.slo, err, tt.want)
		}
	}
}
