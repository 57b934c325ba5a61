package layout

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// A Output is the flags by which a verb that reads folders is told how to write what it found.
type Output struct {
	JSON     bool    `name:"json" help:"Print a JSON object on stdout."`
	Markdown bool    `help:"Write Markdown."`
	HTML     bool    `name:"html" help:"Write a page for a browser, with charts, that works offline."`
	Out      *string `short:"o" placeholder:"FILE" help:"Write to a file that does not exist yet. Default: stdout."`
	NoColor  bool    `help:"No colour."`
}

// ErrTerminal: a page for a browser is not for a terminal.
var ErrTerminal = errors.New("HTML needs a file or a pipe: add -o FILE.html")

// Check refuses what does not go together, before anything is read. what names what is
// written: "a history".
func (f *Output) Check(to Outlet, what string) error {
	var errs []error
	if f.JSON && f.Markdown || f.JSON && f.HTML || f.Markdown && f.HTML {
		errs = append(errs, fmt.Errorf("--json, --markdown and --html: %s is written in one form (one of them)", what))
	}
	if f.HTML && f.Out == nil && to.Terminal {
		errs = append(errs, ErrTerminal)
	}
	return errors.Join(append(errs, to.Check(f.Out))...)
}

// A Document is what there is to write, in each form.
type Document struct {
	Title    string // of Markdown
	JSON     any
	HTML     func(io.Writer) error
	Show     func(*Page)
	Conclude func(*Page) // what only text ends with; nil: nothing

	// Screen writes it in short on stdout; nil: there it is written whole, too.
	Screen func(io.Writer) error
}

// Write writes x in the form that was asked for.
func (f *Output) Write(to Outlet, x Document) error {
	var b bytes.Buffer
	p := new(Page)
	switch {
	case f.JSON:
		if err := JSON(&b, x.JSON); err != nil {
			return err
		}
	case f.HTML:
		if err := x.HTML(&b); err != nil {
			return err
		}
	case f.Markdown:
		p.Heading(x.Title)
		x.Show(p)
		b.WriteString(Markdown{}.Page(p))
	case x.Screen != nil && f.Out == nil:
		return x.Screen(to.Stdout)
	default:
		x.Show(p)
		if x.Conclude != nil {
			x.Conclude(p)
		}
		if f.Out == nil {
			return to.Show(p, f.NoColor)
		}
		b.WriteString(Text{Width: Usual}.Page(p))
	}
	return to.Deliver(f.Out, b.Bytes())
}

// JSON writes v as the programs that read us want it: indented, one object.
func JSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
