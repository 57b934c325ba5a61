package layout

import (
	"crypto/sha256"
	_ "embed" // the frame of a page and its style
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
)

// HTML controls how pages become HTML. A page is self-contained and loads nothing. Its only script is the
// one beside this file, and its policy forbids any other. Text on it is inert, whatever its source.
type HTML struct {
	Title  string
	Schema string // names the page's format
	Footer string
	Words  []Term // explained where the page first uses them
}

//go:embed page.css
var pageStyle string

//go:embed page.tmpl
var pageFrame string

// Write writes a page. It returns the error of w.
func (h HTML) Write(w io.Writer, p *Page) error {
	x := newExplainer(h.Words)
	frame, err := template.New("page").Funcs(template.FuncMap{"words": x.explain, "meanings": x.meanings}).Parse(pageFrame) // anew, since a page is written once a run
	if err != nil {
		return fmt.Errorf("the frame of the page: %w", err)
	}
	all := nodes(p)
	contents(all)
	script, err := scriptOf(p)
	if err != nil {
		return fmt.Errorf("what the script of the page computes with: %w", err)
	}
	policy := "default-src 'none'; style-src " + hashOf(pageStyle)
	if script.Code != "" {
		policy += "; script-src " + hashOf(script.Code) + "; img-src data:"
	}
	return frame.Execute(w, map[string]any{
		"Title": Printable(h.Title), "Schema": h.Schema, "Footer": h.Footer,
		"Policy": policy + "; base-uri 'none'; form-action 'none'",
		"Style":  template.CSS(pageStyle), //nolint:gosec // G203: the file beside this one
		"Nodes":  all,
		"Data":   template.JS(script.Data), //nolint:gosec // G203: JSON without <, > and &
		"Script": template.JS(script.Code), //nolint:gosec // G203: the file beside this one
	})
}

// hashOf is the hash of a style or a script in a content security policy.
func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// leastChapters is the fewest chapters that a page lists.
const leastChapters = 3

// contents assigns ids to the chapters of a page, and lists them if the page has a contents block. It skips
// folded chapters.
func contents(all []node) {
	var chapters []node
	for i := range all {
		if all[i].Kind == "chapter" {
			all[i].ID = fmt.Sprintf("part-%d", len(chapters)+1)
			chapters = append(chapters, all[i])
		}
	}
	for i := range all {
		if all[i].Kind == "contents" && len(chapters) >= leastChapters {
			all[i].Nodes = chapters
		}
	}
}

// Style is the style of pages, for others that should look the same.
func Style() template.CSS { return template.CSS(pageStyle) } //nolint:gosec // G203: the file beside this one

// SVG returns the chart as an svg element.
func (c *Chart) SVG() template.HTML { return template.HTML(c.Chart.SVG()) } //nolint:gosec // G203: plot escapes it

// A node is a block for the page template. Blocks of one list form one node.
type node struct {
	Block
	Kind  string
	Items []Block
	Grid  *grid
	Nodes []node // nested page; for contents the chapters
	ID    string // id of a chapter
}

// A grid is a table for the page template, with its columns' classes in every cell.
type grid struct {
	Class  string
	Wide   bool    // needs scrolling on a phone
	Groups []group // nil if there are none
	Heads  []gridCell
	Rows   [][]gridCell
}

type group struct {
	Text  string
	Width int
	Plain bool // hidden on a phone: no word is explained there
}

type gridCell struct {
	Name                string // of its column, for cards
	Head                bool   // heading of its row
	Plain               bool   // as in a group
	Prose               bool
	Class, Text, Beside string
	Link                string
}

// nodes turns blocks into nodes.
func nodes(p *Page) []node {
	var out []node
	open := "" // kind of the open list
	for _, x := range p.blocks {
		n := node{Block: x}
		switch x.Form {
		case Gap:
			open = ""
			continue
		case Tabular:
			out = append(out, node{Kind: "table", Grid: gridOf(x.Table, slices.Concat(x.Table.cut(0)...))}) // it scrolls if it must
			open = ""
			continue
		case Inset:
			out = append(out, nodes(x.Inside)...)
			open = ""
			continue
		case Item, Bullet, Labelled:
			kind := map[Form]string{Item: "items", Bullet: "items", Labelled: "labels"}[x.Form]
			if open == kind {
				last := &out[len(out)-1]
				last.Items = append(last.Items, x)
				continue
			}
			n.Kind, n.Items = kind, []Block{x}
		case Folded:
			n.Kind, n.Nodes = "folded", nodes(x.Inside)
			later(n.Nodes)
		default:
			n.Kind = map[Form]string{
				Heading: "heading", Chapter: "chapter", Line: "line", Status: "status", Note: "note", Verbatim: "verbatim", Drawing: "drawing", Contents: "contents",
			}[x.Form]
		}
		open = n.Kind
		out = append(out, n)
	}
	return out
}

// later makes drawings ones that the script builds when their fold is opened.
func later(all []node) {
	for i := range all {
		if all[i].Kind == "drawing" {
			all[i].Kind = "later"
			all[i].Chart.Later = all[i].Chart.Timed != nil
		}
	}
}

// phoneWidth is how many characters of a table a phone shows side by side; padding is the extra width of a
// column.
const phoneWidth, padding = 44, 3

// needs is the width of some columns in characters. Prose can be wrapped.
func needs(t *Table, columns []int) int {
	widths, n := t.widths(), 0
	for _, i := range columns {
		if t.prose() {
			widths[i] = min(widths[i], 12)
		}
		n += widths[i] + padding
	}
	return n
}

// gridOf returns some columns of a table.
func gridOf(t *Table, columns []int) *grid {
	out := new(grid)
	if t.prose() {
		out.Class = "words"
	}
	if t.Cards {
		out.Class += " cards"
	}
	out.Wide = needs(t, columns) > phoneWidth && !t.Cards
	grouped := false
	classes := make([]string, len(columns))
	for n, i := range columns {
		c := t.Columns[i]
		classes[n] = [...]string{Number: "", Word: "left", Prose: "left prose"}[c.Kind]
		if last := len(out.Groups) - 1; n > 0 && c.Group == t.Columns[columns[n-1]].Group {
			out.Groups[last].Width++
		} else {
			out.Groups = append(out.Groups, group{c.Group, 1, t.Cards})
			if n > 0 {
				classes[n] = strings.TrimSpace(classes[n] + " first")
			}
		}
		grouped = grouped || c.Group != ""
		out.Heads = append(out.Heads, gridCell{Class: classes[n], Text: c.Head, Plain: t.Cards})
	}
	if !grouped {
		out.Groups = nil
	}
	for _, r := range t.Rows {
		row := make([]gridCell, len(columns))
		for n, i := range columns {
			name := ""
			if t.Cards {
				name = strings.TrimSpace(t.Columns[i].Group + " " + t.Columns[i].Head)
			}
			class := classes[n] + " " + r[i].Class()
			if t.Cards && (r[i].Text == "-" || r[i].Text == "") {
				class += " none" // a phone leaves it out
			}
			row[n] = gridCell{
				Name: name, Head: t.Columns[i].Key, Prose: t.Columns[i].Kind == Prose,
				Class: strings.Join(strings.Fields(class), " "), Text: r[i].Text, Beside: r[i].Beside, Link: r[i].Link,
			}
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}
