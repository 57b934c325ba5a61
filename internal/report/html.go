package report

import (
	"crypto/sha256"
	_ "embed" // the page's frame and its style
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/weirmq/weir/result"
)

// mostDrawn is how many runs of an overview have charts of their own: a page must
// open.
const mostDrawn = 24

// HTML writes a result as a page for a browser: what Text writes, the charts of
// its percentiles and of its seconds, and what they rest on. The page holds all
// that it needs and asks for nothing else, runs no script, and its text from the
// result is inert. o.Dir is not used: the page is the same wherever its folder is.
// The error is that of w.
func HTML(w io.Writer, e Entry, o Options) error {
	p := new(page)
	p.heading(title(e.Result))
	p.line(span{born(e), dim})
	one(p, e, Options{Session: o.Session, drawn: "c-"})
	return html{}.page(w, title(e.Result), p)
}

// OverviewHTML writes several results as a page for a browser: what Overview
// writes, and each run below it, folded. The error is that of w.
func OverviewHTML(w io.Writer, entries []Entry, o Options) error {
	p := new(page)
	name := runs(len(entries))
	p.heading(name)
	overview(p, entries)
	names := labels(entries)
	sideBySide(p, entries, names)
	p.gap()
	p.add(block{form: chapter, spans: []span{plain("each run")}})
	if len(entries) > mostDrawn {
		p.line(plain(fmt.Sprintf("The first %d have charts; weir report --html of a folder draws those of any other.", mostDrawn)))
	}
	for i, e := range entries {
		inside := new(page)
		inside.line(span{or(e.Dir, title(e.Result)) + ", " + born(e), dim})
		x := Options{Session: o.Session, drawn: fmt.Sprintf("c%d-", i+1)}
		if i >= mostDrawn {
			x.drawn = ""
		}
		one(inside, e, x)
		p.add(block{form: folded, fold: inside, spans: []span{
			plain(names[i] + " "), {strings.ToUpper(string(e.Result.Verdict.Status)), colour(string(e.Result.Verdict.Status))},
		}})
	}
	return html{}.page(w, name, p)
}

// born says when a run was, and which.
func born(e Entry) string {
	r := e.Result.Run
	at := r.StartedAt
	if t, err := time.Parse(time.RFC3339Nano, at); err == nil {
		at = t.UTC().Format("2006-01-02 15:04:05 UTC")
	}
	var parts []string
	for _, s := range []string{at, r.ID} {
		if s != "" {
			parts = append(parts, middle(s, 80))
		}
	}
	if e.Result.Events > 0 {
		parts = append(parts, strings.TrimPrefix(events(e.Result.Events), ", "))
	}
	return or(strings.Join(parts, ", "), "a run")
}

//go:embed page.css
var pageStyle string

//go:embed page.tmpl
var pageFrame string

// html writes pages for browsers.
type html struct{}

// A sheet is what the frame of a page is filled with.
type sheet struct {
	Title  string
	Schema string
	Policy string
	Style  template.CSS
	Nodes  []node
}

// A node is a block as the frame writes it; blocks of one list are one node.
type node struct {
	Kind  string
	Level int
	Spans []htmlSpan
	Items []htmlItem
	Lines []string
	Table *htmlTable
	Draw  *drawn
	Nodes []node // folded
}

type htmlSpan struct{ Class, Text string }

type htmlItem struct {
	Mark  htmlSpan
	Spans []htmlSpan
	Under string
}

// A htmlTable is a table with its columns' classes in every cell.
type htmlTable struct {
	Class  string
	Groups []htmlGroup // of the columns; nil where there are none
	Heads  []htmlSpan
	Rows   [][]htmlCell
}

type htmlGroup struct {
	Text  string
	Width int
}

type htmlCell struct {
	Head        bool // says what its row is
	Class, Text string
}

type drawn struct {
	Title, Caption string
	SVG            template.HTML // of plot, which escapes what it is given
	Legend         []htmlSpan
}

// page writes a page. The template is of this package and is parsed anew: a page
// is written once a run.
func (h html) page(w io.Writer, title string, p *page) error {
	frame, err := template.New("page").Parse(pageFrame)
	if err != nil {
		return fmt.Errorf("the frame of the page: %w", err)
	}
	sum := sha256.Sum256([]byte(pageStyle))
	return frame.Execute(w, sheet{
		Title:  printable(title),
		Schema: result.SchemaReport,
		Policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'",
		Style:  template.CSS(pageStyle), //nolint:gosec // G203: the file beside this one
		Nodes:  h.nodes(p),
	})
}

// nodes turns blocks into nodes.
func (h html) nodes(p *page) []node {
	var out []node
	open := "" // the kind of the list that goes on
	for _, x := range p.blocks {
		n := node{Spans: h.spans(x.spans), Lines: x.lines}
		kind := ""
		switch x.form {
		case heading:
			n.Kind = "heading"
		case chapter:
			n.Kind = "chapter"
		case line:
			n.Kind = "line"
		case status:
			n.Kind = "status"
		case note:
			n.Kind = "note"
		case verbatim:
			n.Kind = "verbatim"
		case gap:
			open = ""
			continue
		case tabular:
			wide := htmlWidth
			if x.table.words {
				wide = 0
			}
			for _, columns := range x.table.cut(wide) {
				out = append(out, node{Kind: "table", Table: h.table(x.table, columns)})
			}
			open = ""
			continue
		case drawing:
			n.Kind, n.Draw = "drawing", h.draw(x.draw)
		case folded:
			n.Kind, n.Nodes = "folded", h.nodes(x.fold)
		case item, labelled:
			kind = map[form]string{item: "items", labelled: "labels"}[x.form]
			i := htmlItem{Mark: htmlSpan{class(x.mark.paint), x.mark.text}, Spans: n.Spans, Under: x.under}
			if open == kind {
				last := &out[len(out)-1]
				last.Items = append(last.Items, i)
				continue
			}
			n = node{Kind: kind, Items: []htmlItem{i}}
		}
		open = kind
		out = append(out, n)
	}
	return out
}

// class names how a span is painted.
func class(paint string) string {
	return map[string]string{bold: "strong", dim: "dim", red: "bad", green: "good", yellow: "warn"}[paint]
}

func (h html) spans(spans []span) []htmlSpan {
	out := make([]htmlSpan, len(spans))
	for i, s := range spans {
		out[i] = htmlSpan{class(s.paint), s.text}
	}
	return out
}

// htmlWidth is where a table is cut: so many characters fit beside each other on
// the page.
const htmlWidth = 104

// table has some columns of a table.
func (h html) table(t *table, columns []int) *htmlTable {
	out := new(htmlTable)
	if t.words {
		out.Class = "words"
	}
	grouped := false
	classes := make([]string, len(columns))
	for n, i := range columns {
		c := t.columns[i]
		if c.left {
			classes[n] = "left"
		}
		if last := len(out.Groups) - 1; n > 0 && c.group == t.columns[columns[n-1]].group {
			out.Groups[last].Width++
		} else {
			out.Groups = append(out.Groups, htmlGroup{c.group, 1})
			if n > 0 {
				classes[n] = strings.TrimSpace(classes[n] + " first")
			}
		}
		grouped = grouped || c.group != ""
		out.Heads = append(out.Heads, htmlSpan{classes[n], c.head})
	}
	if !grouped {
		out.Groups = nil
	}
	for _, r := range t.rows {
		row := make([]htmlCell, len(columns))
		for n, i := range columns {
			row[n] = htmlCell{t.columns[i].key, strings.TrimSpace(classes[n] + " " + class(r[i].paint)), r[i].text}
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

func (h html) draw(f *figure) *drawn {
	d := &drawn{Title: f.chart.Title, Caption: f.caption, SVG: template.HTML(f.chart.SVG())} //nolint:gosec // G203: plot escapes it
	for _, k := range f.legend {
		d.Legend = append(d.Legend, htmlSpan{k.class, k.text})
	}
	return d
}
