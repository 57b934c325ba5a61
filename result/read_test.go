package result

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/measure"
)

// folder creates a folder with files of those names and contents.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return dir
}

func TestReadExplainsBrokenFolder(t *testing.T) {
	whole := must.Get(os.ReadFile(filepath.Join("testdata", "golden", FileResult)))(t)
	for name, tt := range map[string]struct {
		dir  string
		want []error
		says string
	}{
		"nothing there":     {filepath.Join(t.TempDir(), "none"), []error{fs.ErrNotExist}, "no such file"},
		"a file":            {filepath.Join("testdata", "golden", FileResult), []error{ErrNotResult}, "it is not a folder"},
		"an empty folder":   {t.TempDir(), []error{ErrNotResult, fs.ErrNotExist}, "it has no result.json"},
		"somebody's folder": {folder(t, map[string]string{"a.txt": "x"}), []error{ErrNotResult, fs.ErrNotExist}, "it has no result.json"},
		"a killed run": {
			folder(t, map[string]string{FileIntervals: "", FileScenario: "weir: 1\n"}),
			[]error{ErrNotResult, fs.ErrNotExist},
			"it has no result.json, which is written when a run ends (it was killed, or is still running)",
		},
		"an empty result":       {folder(t, map[string]string{FileResult: ""}), []error{ErrTorn}, "result.json: cut short: it is empty"},
		"half a result":         {folder(t, map[string]string{FileResult: string(whole[:len(whole)/2])}), []error{ErrTorn}, "cut short: it ends within its JSON"},
		"a result of next year": {folder(t, map[string]string{FileResult: "{\"schema\": \"weir.result/v2\"}"}), []error{ErrNewer}, `result.json: written by a newer weir: its schema is "weir.result/v2"`},
		"another's result":      {folder(t, map[string]string{FileResult: "{\"a\":\n 1}"}), []error{ErrNotResult}, "result.json: no result of weir: it names no schema"},
		"no JSON":               {folder(t, map[string]string{FileResult: "{\n  x"}), []error{ErrMalformed}, "result.json:2:3: malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(tt.dir)
			for _, want := range tt.want {
				if !errors.Is(err, want) {
					t.Errorf("error %v; want %v", err, want)
				}
			}
			if err == nil || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), tt.dir) {
				t.Errorf("error %v; want it to name %s and say %q", err, tt.dir, tt.says)
			}
		})
	}
}

func TestReadDoesNotWaitForAPipe(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, syscall.Mkfifo(filepath.Join(dir, FileResult), 0o600))
	if _, err := Read(dir); !errors.Is(err, ErrNotResult) || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("error %v", err)
	}
}

// Cuts a whole result.json at each byte.
func TestTruncatedResultDetected(t *testing.T) {
	whole := must.Get(os.ReadFile(filepath.Join("testdata", "golden", FileResult)))(t)
	end := len(bytes.TrimSpace(whole))
	for n := range end {
		if _, err := Unmarshal(whole[:n]); !errors.Is(err, ErrTorn) {
			t.Fatalf("cut after %d bytes: error %v; want ErrTorn", n, err)
		}
	}
	if _, err := Unmarshal(whole[:end]); err != nil {
		t.Errorf("without its last line end: %v", err)
	}
}

// Cuts both logs at each byte, as a killed writer may: whole lines are read, the rest is reported
// as torn.
func TestTruncatedLogsKeepWholeLines(t *testing.T) {
	read := func(name string) []byte {
		return must.Get(os.ReadFile(filepath.Join("testdata", "golden", name)))(t)
	}
	log := read(FileIntervals)
	last := bytes.LastIndexByte(log[:len(log)-1], '\n') + 1
	want := 0
	for n := len(log); n >= 0; n-- {
		sums, err := Totals(bytes.NewReader(log[:n]))
		switch {
		case err != nil && !errors.Is(err, ErrTorn):
			t.Fatalf("%s cut after %d bytes: %v", FileIntervals, n, err)
		case n == len(log):
			want = len(sums)
		case n == last && (err != nil || len(sums) != want-1):
			t.Fatalf("%s without its last line: %d sums of %d, %v", FileIntervals, len(sums), want, err)
		case n > last && n < len(log)-1 && (err == nil || len(sums) != want-1):
			t.Fatalf("%s cut within its last line: %d sums of %d, %v", FileIntervals, len(sums), want, err)
		}
	}
	events := read(FileEvents)
	for n := range events {
		whole, torn := 0, false
		for _, err := range Events(bytes.NewReader(events[:n])) {
			if torn = err != nil; torn && !errors.Is(err, ErrTorn) {
				t.Fatalf("%s cut after %d bytes: %v", FileEvents, n, err)
			}
			if !torn {
				whole++
			}
		}
		if lines := bytes.Count(events[:n], []byte("\n")); whole < lines-1 || whole > max(lines, 0) {
			t.Fatalf("%s cut after %d bytes: %d events of %d lines", FileEvents, n, whole, lines)
		}
	}
}

// histogram builds the last column of a log line, with arbitrary lengths in its two heads.
func histogram(t *testing.T, compressed, payload uint32, body []byte) string {
	t.Helper()
	head := make([]byte, headerBytes)
	binary.BigEndian.PutUint32(head[0:], cookieV2)
	binary.BigEndian.PutUint32(head[4:], payload)
	binary.BigEndian.PutUint32(head[12:], measure.Digits)
	binary.BigEndian.PutUint64(head[16:], measure.Lowest)
	binary.BigEndian.PutUint64(head[24:], measure.Highest)
	binary.BigEndian.PutUint64(head[32:], math.Float64bits(1))
	var b bytes.Buffer
	b.Write(make([]byte, 8))
	zip := zlib.NewWriter(&b)
	for _, part := range [][]byte{head, body} {
		must.Get(zip.Write(part))(t)
	}
	must.Do(t, zip.Close())
	out := b.Bytes()
	binary.BigEndian.PutUint32(out[0:], cookieV2Compressed)
	if compressed == 0 {
		compressed = uint32(len(out) - 8)
	}
	binary.BigEndian.PutUint32(out[4:], compressed)
	return base64.StdEncoding.EncodeToString(out)
}

// The files claim, or unpack to, gigabytes. The bound applies to everything allocated, freed or
// not.
func TestHostileFilesUseLittleMemory(t *testing.T) {
	line := func(text string) string { return "Tag=a,0,1,1," + text + "\n" }
	counts := appendZigZag(nil, 5)
	var tags, sum strings.Builder
	for i := range maxTags + 1 {
		fmt.Fprintf(&tags, "Tag=t%d,0,1,1,%s\n", i, histogram(t, 0, uint32(len(counts)), counts))
	}
	most := appendZigZag(nil, math.MaxInt64)
	for range 2 {
		sum.WriteString(line(histogram(t, 0, uint32(len(most)), most)))
	}
	log := func(text string) error { _, err := Totals(strings.NewReader(text)); return err }
	table := func(text string) error { _, err := ReadHGRM(strings.NewReader(text)); return err }
	events := func(text string) error {
		for _, err := range Events(strings.NewReader(text)) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	result := func(text string) error { _, err := Unmarshal([]byte(text)); return err }
	for name, tt := range map[string]struct {
		text string
		read func(string) error
		want error
		says string
		most uint64 // MiB
	}{
		"a histogram that says it has 4 GB compressed":   {line(histogram(t, math.MaxUint32, 1, counts)), log, ErrMalformed, "says 4294967295 compressed bytes", 4},
		"a histogram that says it has 4 GB":              {line(histogram(t, 0, math.MaxUint32, counts)), log, ErrMalformed, "says 4294967295 bytes", 4},
		"a histogram that unpacks to 100 MB":             {line(histogram(t, 0, 100<<20, make([]byte, 100<<20))), log, ErrMalformed, "histogram of", 4},
		"a histogram of a gap of 2^62 buckets":           {line(histogram(t, 0, 9, appendZigZag(nil, -1<<62))), log, ErrMalformed, "more buckets than 1 h has", 4},
		"counts that add up beyond 63 bits":              {sum.String(), log, ErrMalformed, "exceed 63 bits", 4},
		"more tags than any run has":                     {tags.String(), log, ErrMalformed, "more than 256 tags", 64},
		"a log whose line never ends":                    {strings.Repeat("x", 64<<20), log, ErrNotResult, "longer than any of its kind", 4},
		"an Interval_Max that is none":                   {"Tag=a,0,1,NaN," + histogram(t, 0, uint32(len(counts)), counts) + "\n", log, ErrMalformed, "not an Interval_Max", 4},
		"an event that never ends":                       {"{\"schema\": \"weir.events/v1\"}\n{\"text\": \"" + strings.Repeat("x", 64<<20), events, ErrNotResult, "longer than any of its kind", 8},
		"events nested deeply":                           {"{\"schema\": \"weir.events/v1\"}\n{\"text\": " + strings.Repeat("[", 10_000) + "\n", events, ErrMalformed, "line 2, column 41: malformed: nests deeper", 8},
		"a line of events that ends within its JSON":     {"{\"schema\": \"weir.events/v1\"}\n{\"t_ns\": 1,\n{}\n", events, ErrMalformed, "line 2, column 12: malformed: the line ends within its JSON", 1},
		"a line of events that is a number":              {"{\"schema\": \"weir.events/v1\"}\n1\n", events, ErrMalformed, "line 2: malformed: no event", 1},
		"events of a newer weir":                         {"{\"schema\": \"weir.events/v2\"}\n", events, ErrNewer, "line 1", 1},
		"no events at all":                               {"", events, ErrTorn, "empty", 1},
		"a table of a newer weir":                        {"#[Schema: weir.hgrm/v2]\n", table, ErrNewer, "line 1", 1},
		"a table without an end":                         {"Value Percentile\n1 0.5 1 2\n", table, ErrTorn, "no end", 1},
		"a table that ends within a line":                {"Value Percentile\n1 0.5", table, ErrTorn, "line 2", 1},
		"a table that falls back":                        {"Value\n2 0.5 2 2\n1 0.6 3 2\n", table, ErrMalformed, "line 3: malformed: the row falls back", 1},
		"a table of no figures":                          {"Value\nNaN 0.5 2 2\n", table, ErrMalformed, "line 2", 1},
		"a table of endless rows":                        {"Value\n" + strings.Repeat("1 0.5 1 2\n", 1<<20), table, ErrMalformed, "more than 16384 rows", 16},
		"a table whose rows do not reach its total":      {"Value\n1 1 1\n#[Max = 1, Total count = 2]\n", table, ErrMalformed, "total of 2", 1},
		"something that is not a table":                  {"hello\n", table, ErrNotResult, "line 1", 1},
		"a result of a million empty intervals and one":  {"{\"schema\": \"weir.result/v1\", \"intervals\": [" + strings.Repeat("{},", 1<<20) + "{}]}", result, ErrMalformed, "more than 1048576 objects", 1},
		"a result with options nested to the last stack": {"{\"schema\": \"weir.result/v1\", \"system\": {\"options\": " + strings.Repeat("{\"a\":", 1<<20) + "}", result, ErrMalformed, "nests deeper", 1},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := tt.read(tt.text)
			runtime.ReadMemStats(&after)
			if !errors.Is(err, tt.want) || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v; want %v saying %q", err, tt.want, tt.says)
			}
			if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > tt.most+uint64(len(tt.text)>>20) {
				t.Errorf("took %d MiB for %d MiB; want at most %d more", got, len(tt.text)>>20, tt.most)
			}
		})
	}
}

func TestHGRMRoundTrip(t *testing.T) {
	c := new(measure.Counts)
	for v := int64(10_000); v < 10_000_000; v += v / 3 {
		c.Add(v, uint64(v%7+1))
	}
	var b bytes.Buffer
	must.Do(t, WriteHGRM(&b, "send.response", c, 3))
	table := must.Get(ReadHGRM(&b))(t)
	if table.Title != "send.response" || table.Censored != 3 || table.Total != c.Total() || table.Max != float64(c.Max()) {
		t.Errorf("read %+v", table)
	}
	if math.Abs(table.Mean-c.Mean()) > 0.001 || math.Abs(table.StdDev-c.StdDev()) > 0.001 {
		t.Errorf("mean %v, deviation %v; want %v, %v", table.Mean, table.StdDev, c.Mean(), c.StdDev())
	}
	for _, r := range table.Rows {
		if want := float64(min(c.At(max(1, uint64(math.Ceil(r.Percentile*float64(c.Total())-1e-6)))), c.Max())); r.Value != want {
			t.Errorf("row %+v; want value %v", r, want)
		}
	}
}

func TestOpenReadsOtherFiles(t *testing.T) {
	s := must.Get(Open(filepath.Join("testdata", "golden")))(t)
	if s.Result != nil {
		t.Error("Open read result.json")
	}
	e := must.Get(s.Environment())(t)
	if e.System.Settings["sync_interval"] != "always" || e.Weir.Version != "v0" {
		t.Errorf("environment %+v", e)
	}
	var events []Event
	for ev, err := range s.Events() {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, ev)
	}
	golden.Equal(t, []Event{{TNS: 5, Kind: "gc", Text: "a <b>", DurationNS: 7}}, events, "")
	var samples []host.Sample
	for x, err := range s.Samples() {
		if err != nil {
			t.Fatal(err)
		}
		samples = append(samples, x)
	}
	golden.Equal(t, []host.Sample{sample()}, samples, "")
	sums := must.Get(s.Totals())(t)
	if sums["send.response.measure"].Total() == 0 {
		t.Errorf("sums %v", sums)
	}
}

func TestUnreadableFilesAreNamed(t *testing.T) {
	dir := folder(t, map[string]string{
		FileEnvironment: "{\n\"schema\": 5}", FileEvents: "{\"schema\": \"weir.events/v1\"}\n\n", FileIntervals: "Tag=x,\n",
	})
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Environment()
	if want := filepath.Join(dir, FileEnvironment) + ": no result of weir"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v; want %s", err, want)
	}
	err = nil
	for _, e := range s.Events() {
		err = e
	}
	if want := filepath.Join(dir, FileEvents) + ":2: "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v; want %s", err, want)
	}
	_, err = s.Totals()
	if want := filepath.Join(dir, FileIntervals) + ":1: malformed"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v; want %s", err, want)
	}
	for _, err := range (&Saved{Dir: t.TempDir()}).Samples() { // as in folders of older versions
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("error %v", err)
		}
	}
	if _, err := (&Saved{Dir: t.TempDir()}).Totals(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}
