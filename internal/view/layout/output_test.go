package layout

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/view/plot"
)

// outlet is one in a folder.
func outlet(dir string) (Outlet, *bytes.Buffer) {
	var b bytes.Buffer
	return Outlet{
		Stdout: &b, Path: func(name string) string { return filepath.Join(dir, name) },
		Text: func(bool) Text { return Text{Width: Usual} },
	}, &b
}

func TestFindingIsWrittenInRequestedFormat(t *testing.T) {
	x := Document{
		Title: "Comparison", JSON: map[string]string{"a": "<b>"},
		HTML:     func(w io.Writer) error { _, err := io.WriteString(w, "<html>"); return err },
		Show:     func(p *Page) { p.Say("shown") },
		Conclude: func(p *Page) { p.Say("concluded") },
	}
	for want, f := range map[string]Output{
		"{\n  \"a\": \"<b>\"\n}\n": {JSON: true},
		"<html>":                   {HTML: true},
		"# Comparison\n\nshown\n":  {Markdown: true},
		"shown\nconcluded\n":       {},
	} {
		to, b := outlet(t.TempDir())
		if err := f.Write(to, x); err != nil || b.String() != want {
			t.Errorf("on stdout: %q, %v; want %q", b, err, want)
		}
		name := "x"
		f.Out = &name
		if err := f.Write(to, x); err != nil {
			t.Error(err)
		}
		if got, err := os.ReadFile(to.Path(name)); err != nil || string(got) != want {
			t.Errorf("in a file: %q, %v; want %q", got, err, want)
		}
	}
	for name, want := range map[string]string{"x.html": "<html>", "x.md": "# Comparison\n\nshown\n", "x.json": "{\n", "x.txt": "shown\nconcluded\n"} {
		to, _ := outlet(t.TempDir())
		f := Output{Out: &name}
		if err := errors.Join(f.Check(to, "a comparison"), f.Write(to, x)); err != nil {
			t.Error(err)
		}
		if got, err := os.ReadFile(to.Path(name)); err != nil || !strings.HasPrefix(string(got), want) {
			t.Errorf("%s holds %q, %v; want %q", name, got, err, want)
		}
	}
}

// A page in Markdown has its charts as files beside it, and leads to other pages.
func TestMarkdownHasPicturesBesideIt(t *testing.T) {
	drawn := new(Page)
	drawn.Heading("A page")
	for _, title := range []string{"first", "<script>"} {
		c := &Chart{Legend: []Key{{Class: "s1 round", Text: "ours & theirs"}, {Class: "s2 box", Text: "b"}}}
		c.Chart = plot.Chart{ID: "c", Title: title, Height: 200, X: plot.Axis{Max: 1}, Y: plot.Axis{Max: 1}, Columns: []plot.Column{{To: 1, Text: "on hover"}}}
		drawn.Chart(c)
	}
	drawn.Line(Plain.Of("see "), Span{Text: "a [run]", Tone: Strong, Link: "run/a.md"})
	cells := Listing("run")
	cells.Rows = append(cells.Rows, []Span{{Text: "a|b", Link: "b.md"}})
	drawn.Table(cells)
	want := []File{
		{"page-1.svg", `<g class="s1"><circle class="dot"`},
		{"page-2.svg", `font-weight="600">&lt;script&gt;</text>`},
		{"page.md", "# A page\n\n![first](page-1.svg)\n\n![\\<script>](page-2.svg)\n\nsee [**a \\[run\\]**](run/a.md)\n\n| run |\n| :--- |\n| [a\\|b](b.md) |\n"},
	}
	files := Pictured(drawn, "page")
	if len(files) != len(want) {
		t.Fatalf("%d files, want %d", len(files), len(want))
	}
	for i, f := range files {
		if f.Name != want[i].Name || !strings.Contains(f.Text, want[i].Text) || strings.Contains(f.Text, "on hover") {
			t.Errorf("%s: %s", f.Name, f.Text)
		}
		if filepath.Ext(f.Name) == ".svg" {
			if err := xml.Unmarshal([]byte(f.Text), new(struct{})); err != nil || !strings.Contains(f.Text, "ours &amp; theirs") || !strings.Contains(f.Text, `<rect class="square"`) {
				t.Errorf("%s, %v: %s", f.Name, err, f.Text)
			}
		}
	}
}

func TestConflictingFormatsAreRejected(t *testing.T) {
	dir := t.TempDir()
	to, _ := outlet(dir)
	to.Terminal = true
	must.Do(t, os.WriteFile(to.Path("there"), nil, 0o600))
	named := func(s string) *string { return &s }
	for _, c := range []struct {
		f    Output
		says string
	}{
		{Output{JSON: true, HTML: true, Out: named("x")}, "--json, --markdown and --html: a history is written in one form (one of them)"},
		{Output{HTML: true}, ErrTerminal.Error()},
		{Output{Out: named("")}, "--out: is empty (a file that does not exist yet, in a folder that does)"},
		{Output{Out: named("there")}, "--out: there exists ("},
		{Output{Out: named(filepath.Join("none", "x"))}, "--out: none is not a folder ("},
		{Output{HTML: true, Out: named("x")}, ""},
	} {
		switch err := c.f.Check(to, "a history"); {
		case c.says == "" && err != nil, c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%+v: %v; want %q", c.f, err, c.says)
		}
	}
	if err := NewFile(to.Path("there"), nil); err == nil || !strings.HasSuffix(err.Error(), "there exists") {
		t.Errorf("a file that exists: %v", err)
	}
}

// full is an output that takes nothing.
type full struct{}

var errFull = errors.New("no space left")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteErrorIsReturned(t *testing.T) {
	to, _ := outlet(t.TempDir())
	to.Stdout = full{}
	for _, asJSON := range []bool{false, true} {
		if err := to.Answer(asJSON, 1, true, func(p *Page) { p.Say("x") }); !errors.Is(err, errFull) {
			t.Errorf("%v", err)
		}
	}
}
