package commandline

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/weirmq/weir/internal/view/layout"
)

// wide is the width that kong's two-column help needs.
const wide = 80

// usual are the flags in the help of weir run; --help=all shows all.
var usual = []string{"driver", "address", "start", "rate", "size", "measure", "producers", "consumers", "repeat", "slo", "option", "guarantee", "out", "help"}

// everything handles --help=all as --help with every flag.
func (g *Grammar) everything(args []string) []string {
	g.all = false
	args = slices.Clone(args)
	for i, a := range args {
		if a == "--" {
			break
		}
		if a == "--help=all" {
			args[i], g.all = "--help", true
		}
	}
	return args
}

// help writes help for a terminal of that many columns; 0 if unknown. On narrower terminals than kong's
// help needs, it stacks the same texts.
func (g *Grammar) help(cols int) kong.HelpPrinter {
	return func(o kong.HelpOptions, ctx *kong.Context) error {
		node := ctx.Selected()
		if node == nil {
			node = ctx.Model.Node
		}
		switch {
		case node.Name == "capacity":
			hide(node, func(f *kong.Flag) bool { return f.Group != nil }) // weir run --help=all lists them
		case node.Name == "run" && node.Parent == ctx.Model.Node && !g.all:
			shorten(node)
		}
		if cols <= 0 || cols >= wide {
			return kong.DefaultHelpPrinter(o, ctx)
		}
		p := new(layout.Page)
		p.Say("Usage: " + ctx.Model.Name + " " + strings.TrimSpace(node.Summary()))
		for _, text := range []string{node.Help, node.Detail} {
			prose(p, text)
		}
		if len(node.Positional) > 0 {
			p.Gap()
			p.Say("Arguments:")
			t := layout.Listing("", "")
			for _, a := range node.Positional {
				t.Row(a.Summary(), o.ValueFormatter(a))
			}
			p.Inset(2).Table(t)
		}
		flags(p, node, o.ValueFormatter)
		t := layout.Listing("", "")
		for _, c := range node.Children {
			if !c.Hidden {
				t.Row(c.Path(), c.Help)
			}
		}
		if len(t.Rows) > 0 {
			p.Gap()
			p.Say("Commands:")
			p.Inset(2).Table(t)
		}
		if node == ctx.Model.Node {
			p.Gap()
			p.Say(`Run "` + ctx.Model.Name + ` <command> --help" for more information on a command.`)
		}
		_, err := io.WriteString(ctx.Stdout, layout.Terminal(cols, false).Page(p))
		return err
	}
}

// hide hides flags from a command's help.
func hide(node *kong.Node, hidden func(*kong.Flag) bool) {
	for _, f := range node.Flags {
		f.Hidden = f.Hidden || hidden(f)
	}
}

// shorten keeps the usual flags in a command's help, and says how to list the others.
func shorten(node *kong.Node) {
	all := 0
	hide(node, func(f *kong.Flag) bool { all++; return !slices.Contains(usual, f.Name) })
	for _, f := range node.Flags {
		f.Group = nil
	}
	node.Detail = fmt.Sprintf("weir run --help=all shows all %d flags, the environment variables and the exit codes. Examples:\n\n  weir run --rate 5000/s --measure 60s --slo 'e2e.p99 <= 20ms' --out r1\n  weir run --driver kafka --address broker1:9092 --option acks=all --out r2", all)
}

// columns matches the column separators of tables in help texts.
var columns = regexp.MustCompile(`\s{2,}`)

// prose writes a help text to a page: paragraphs, and tables, whose lines begin with blanks.
func prose(p *layout.Page, text string) {
	for part := range strings.SplitSeq(strings.Trim(text, "\n"), "\n\n") {
		if part == "" {
			continue
		}
		p.Gap()
		if !strings.HasPrefix(part, " ") {
			p.Say(strings.Join(strings.Fields(part), " "))
			continue
		}
		t := layout.Listing("", "")
		for line := range strings.Lines(part) {
			cells := columns.Split(strings.TrimSpace(line), 2)
			if last := len(t.Rows) - 1; len(cells) == 1 && last >= 0 { // continues the line above
				t.Rows[last][1].Text += " " + cells[0]
				continue
			}
			t.Row(append(cells, "")[:2]...)
		}
		p.Inset(2).Table(t)
	}
}

// flags writes a command's flags to a page, each with its help below, under the headings of their groups.
func flags(p *layout.Page, node *kong.Node, help kong.HelpValueFormatter) {
	const rest = "Flags:"
	titles, pages := []string{rest}, map[string]*layout.Page{rest: new(layout.Page)}
	for _, f := range slices.Concat(node.AllFlags(true)...) {
		title := rest
		if f.Group != nil {
			title = f.Group.Title
		}
		if pages[title] == nil {
			titles, pages[title] = append(titles, title), new(layout.Page)
		}
		name := "--" + f.Name
		if f.Short != 0 {
			name = "-" + string(f.Short) + ", " + name
		}
		if !f.IsBool() && !f.IsCounter() {
			name += "=" + f.FormatPlaceHolder()
		}
		pages[title].Say(name)
		pages[title].Inset(2).Say(help(f.Value))
	}
	for _, title := range titles {
		p.Gap()
		p.Say(title)
		p.Add(layout.Block{Form: layout.Inset, Indent: 2, Inside: pages[title]})
	}
}
