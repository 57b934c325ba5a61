package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/weirmq/weir/internal/layout"
)

// form is how a verb that reads folders writes what it found.
type form struct {
	JSON     bool    `name:"json" help:"Print a JSON object on stdout."`
	Markdown bool    `help:"Write Markdown."`
	HTML     bool    `name:"html" help:"Write a page for a browser, with charts, that works offline."`
	Out      *string `short:"o" placeholder:"FILE" help:"Write to a file that does not exist yet. Default: stdout."`
	NoColor  bool    `help:"No colour."`
}

// check refuses what does not go together, before anything is read. what names what is
// written: "a history".
func (f *form) check(e *env, what string) error {
	var errs []error
	if f.JSON && f.Markdown || f.JSON && f.HTML || f.Markdown && f.HTML {
		errs = append(errs, fmt.Errorf("--json, --markdown and --html: %s is written in one form (one of them)", what))
	}
	if f.HTML && f.Out == nil && e.StdoutTerminal {
		errs = append(errs, errors.New("HTML needs a file or a pipe: add -o FILE.html"))
	}
	return errors.Join(append(errs, deliveredTo{f.Out}.check(e))...)
}

// A finding is what there is to write, in each form.
type finding struct {
	title    string // of Markdown
	json     any
	html     func(io.Writer) error
	show     func(*layout.Page)
	conclude func(*layout.Page) // what only text ends with; nil: nothing
}

// write writes x in the form that was asked for.
func (f *form) write(e *env, x finding) error {
	var b bytes.Buffer
	p := new(layout.Page)
	switch {
	case f.JSON:
		if err := writeJSON(&b, x.json); err != nil {
			return err
		}
	case f.HTML:
		if err := x.html(&b); err != nil {
			return err
		}
	case f.Markdown:
		p.Heading(x.title)
		x.show(p)
		b.WriteString(layout.Markdown{}.Page(p))
	default:
		x.show(p)
		if x.conclude != nil {
			x.conclude(p)
		}
		if f.Out == nil {
			return e.show(p, f.NoColor)
		}
		b.WriteString(layout.Text{Width: layout.Usual}.Page(p))
	}
	return deliveredTo{f.Out}.deliver(e, b.Bytes())
}
