package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/weirmq/weir/internal/glossary"
	"github.com/weirmq/weir/internal/layout"
)

// glossaryCommand is `weir glossary`.
type glossaryCommand struct {
	Words   []string `arg:"" optional:"" name:"word" help:"The words to explain (none: all)."`
	NoColor bool     `help:"No colour."`
}

// run explains words, and complains of those that the glossary does not have. A word of
// two, as "held up", may be one argument or two.
func (c *glossaryCommand) run(_ context.Context, e *env) Code {
	words, code := glossary.Words(), OK
	if len(c.Words) > 0 {
		words = nil
		for i := 0; i < len(c.Words); i++ {
			w, err := glossary.Find(c.Words[i])
			if err != nil && i+1 < len(c.Words) {
				if pair, wrong := glossary.Find(c.Words[i] + " " + c.Words[i+1]); wrong == nil {
					w, err, i = pair, nil, i+1
				}
			}
			if err != nil {
				e.complain(fmt.Errorf("%w (weir glossary lists all words)", err))
				code = Usage
				continue
			}
			words = append(words, w)
		}
	}
	if len(words) == 0 {
		return code
	}
	p := new(layout.Page)
	section := ""
	for i, w := range words {
		if len(c.Words) == 0 && w.Section != section {
			section = w.Section
			p.Gap()
			p.Chapter(strings.ToUpper(section))
		}
		if i > 0 || section != "" {
			p.Gap()
		}
		p.Line(layout.Strong.Of(w.Name))
		p.Inset(2).Say(w.Text)
	}
	return cmp.Or(e.printed("the glossary", e.show(p, c.NoColor)), code)
}
