package scenario

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/schedule"
)

func TestPayloads(t *testing.T) {
	t.Parallel()
	text := func(ss ...string) [][]byte {
		var out [][]byte
		for _, s := range ss {
			out = append(out, []byte(s))
		}
		return out
	}
	for name, tt := range map[string]struct {
		payload string
		size    string
		want    engine.Payload
		sizes   []schedule.WeightedSize
		yaml    string
	}{
		"random":           {"random", "", engine.Payload{}, []schedule.WeightedSize{{Bytes: 1024, Weight: 1}}, "random"},
		"zeros":            {" zeros ", "", engine.Payload{Kind: engine.Zeros}, []schedule.WeightedSize{{Bytes: 1024, Weight: 1}}, "zeros"},
		"compressible":     {"{compressible: 0.25}", "", engine.Payload{Kind: engine.Compressible, Saved: 0.25}, []schedule.WeightedSize{{Bytes: 1024, Weight: 1}}, "{compressible: 0.25}"},
		"a file":           {"{file: docs/b.txt}", "", engine.Payload{Kind: engine.Contents, Contents: text("bb")}, []schedule.WeightedSize{{Bytes: 34, Weight: 1}}, "{file: /at/dir/docs/b.txt}"},
		"a folder":         {"{dir: docs}", "", engine.Payload{Kind: engine.Contents, Contents: text("a", "bb", "cc")}, []schedule.WeightedSize{{Bytes: 33, Weight: 1}, {Bytes: 34, Weight: 2}}, "{dir: /at/dir/docs}"},
		"a folder, sized":  {"{dir: docs}", "100B", engine.Payload{Kind: engine.Contents, Contents: text("a", "bb", "cc")}, []schedule.WeightedSize{{Bytes: 100, Weight: 1}}, "{dir: /at/dir/docs}"},
		"an absolute path": {"{file: /at/dir/docs/a.txt}", "", engine.Payload{Kind: engine.Contents, Contents: text("a")}, []schedule.WeightedSize{{Bytes: 33, Weight: 1}}, "{file: /at/dir/docs/a.txt}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			os := flags("message.payload=" + tt.payload)
			if tt.size != "" {
				os = append(os, flags("message.size="+tt.size)...)
			}
			s := must.Get(only(inputs(t, "", os...)))(t)
			golden.Equal(t, tt.want, s.Config("", 0).Payload, "payload")
			golden.Equal(t, tt.sizes, s.Plan().Sizes, "sizes")
			if want := "\n  payload: " + tt.yaml + "\n"; !strings.Contains(string(s.YAML()), want) {
				t.Errorf("%q is missing:\n%s", want, s.YAML())
			}
		})
	}
}

func TestFaultsOfPayloads(t *testing.T) {
	t.Parallel()
	const (
		oneFile = "(a regular file of 1B to 67108832B, or {dir: FOLDER})"
		folder  = "(a folder of 1 to 10000 regular files, each of 1B to 67108832B, together up to 256MiB)"
	)
	huge := fstest.MapFS{"at/dir/large.bin": {Data: make([]byte, maxContent+1)}}
	many := fstest.MapFS{}
	for i := range maxFiles + 1 {
		many[fmt.Sprintf("at/dir/many/%05d", i)] = &fstest.MapFile{Data: []byte("x")}
	}
	full := fstest.MapFS{}
	body := make([]byte, 60<<20)
	for i := range 5 {
		full[fmt.Sprintf("at/dir/full/%d", i)] = &fstest.MapFile{Data: body}
	}
	for name, tt := range map[string]struct {
		payload string
		files   fs.FS
		want    string
	}{
		"missing":                 {"{file: nobody.json}", nil, "payload.file: nobody.json does not exist " + oneFile},
		"empty":                   {"{file: none.json}", nil, "payload.file: none.json is empty " + oneFile},
		"a folder for a file":     {"{file: docs}", nil, "payload.file: docs is a folder " + oneFile},
		"a pipe":                  {"{file: pipe}", nil, "payload.file: pipe is not a regular file " + oneFile},
		"too long":                {"{file: large.bin}", huge, "payload.file: large.bin is longer than a message may be " + oneFile},
		"a missing folder":        {"{dir: nobody}", nil, "payload.dir: nobody does not exist " + folder},
		"a file for a folder":     {"{dir: one.json}", nil, "payload.dir: one.json is not a folder " + strings.TrimSuffix(folder, ")") + ", or {file: FILE})"},
		"an empty folder":         {"{dir: void}", nil, "payload.dir: void holds no file " + folder},
		"a folder of folders":     {"{dir: deep}", nil, "payload.dir: deep holds no file " + folder},
		"a folder with a hole":    {"{dir: holes}", nil, "payload.dir: b.txt is empty " + folder},
		"too many files":          {"{dir: many}", many, "payload.dir: many holds too much " + folder},
		"too much in a folder":    {"{dir: full}", full, "payload.dir: full holds too much " + folder},
		"above what a driver has": {"{file: mid.bin}", fstest.MapFS{"at/dir/mid.bin": {Data: make([]byte, 1<<20)}}, "payload: 1048608B is more than driver jetstream takes (up to 1MiB)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := inputs(t, "weir: 1\nmessage:\n  payload: "+tt.payload+"\n")
			if tt.files != nil {
				in.Stat = func(p string) (fs.FileInfo, error) { return fs.Stat(tt.files, strings.TrimPrefix(p, "/")) }
				in.ReadDir = func(p string) ([]fs.DirEntry, error) { return fs.ReadDir(tt.files, strings.TrimPrefix(p, "/")) }
				in.ReadFile = func(p string) ([]byte, error) { return fs.ReadFile(tt.files, strings.TrimPrefix(p, "/")) }
			}
			_, err := Resolve(in)
			if err == nil {
				t.Fatal("taken")
			}
			_, got, _ := strings.Cut(err.Error(), ": message.")
			if !strings.HasPrefix(err.Error(), "f.yaml:3:") || got != tt.want {
				t.Errorf("%v\nwant message.%s", err, tt.want)
			}
		})
	}
}

// TestRunFilesReadOnce: a matrix of a thousand runs over a folder
// holds it once.
func TestRunFilesReadOnce(t *testing.T) {
	t.Parallel()
	in := inputs(t, "weir: 1\nmessage: {payload: {file: one.json}}\nmatrix: {seed: ["+numbers(1000)+"]}\n")
	read, reads := in.ReadFile, 0
	in.ReadFile = func(p string) ([]byte, error) { reads++; return read(p) }
	runs := must.Get(Resolve(in))(t)
	if len(runs) != 1000 || reads != 1 {
		t.Errorf("%d runs after %d reads; want 1000 after 1", len(runs), reads)
	}
	if a, b := &runs[0].Message.Payload.Contents[0], &runs[999].Message.Payload.Contents[0]; a != b {
		t.Error("two runs hold the list of files twice")
	}
	if a, b := &runs[0].Message.Payload.Contents[0][0], &runs[999].Message.Payload.Contents[0][0]; a != b {
		t.Error("two runs hold the file twice")
	}
}
