package layout

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// An Output holds the output flags of a verb that reads folders.
type Output struct {
	JSON     bool    `name:"json" help:"Print a JSON object on stdout."`
	Markdown bool    `help:"Write Markdown."`
	HTML     bool    `name:"html" help:"Write a page for a browser, with charts, that works offline."`
	Out      *string `short:"o" placeholder:"FILE" help:"Write to a file that does not exist yet; .html, .md and .json choose the form (default: stdout)."`
	NoColor  bool    `help:"No colour."`
}

// ErrTerminal refuses to write HTML to a terminal.
var ErrTerminal = errors.New("HTML needs a file or a pipe: add -o FILE.html")

// Check refuses contradictory flags, before anything is read, and takes the form from the file's name if no flag
// says it. what names the output: "a history".
func (f *Output) Check(to Outlet, what string) error {
	var errs []error
	if f.Out != nil && !f.JSON && !f.Markdown && !f.HTML {
		ext := strings.ToLower(filepath.Ext(*f.Out))
		f.JSON, f.Markdown, f.HTML = ext == ".json", ext == ".md", ext == ".html"
	}
	if f.JSON && f.Markdown || f.JSON && f.HTML || f.Markdown && f.HTML {
		errs = append(errs, fmt.Errorf("--json, --markdown and --html: %s is written in one form (one of them)", what))
	}
	if f.HTML && f.Out == nil && to.Terminal {
		errs = append(errs, ErrTerminal)
	}
	return errors.Join(append(errs, to.Check(f.Out))...)
}

// A Document is an output in each format.
type Document struct {
	Title    string // of Markdown; "": Show has it
	JSON     any
	HTML     func(io.Writer) error
	Show     func(*Page)
	Conclude func(*Page) // end of text only; nil: none

	// Screen writes the short form on stdout; nil: stdout gets all of it.
	Screen func(io.Writer) error
}

// Write writes x in the requested format.
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
		if x.Title != "" {
			p.Heading(x.Title)
		}
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
		b.WriteString(Terminal(0, false).Page(p))
	}
	return to.Deliver(f.Out, b.Bytes())
}

// JSON writes v as one indented object.
func JSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
