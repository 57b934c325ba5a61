package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/weirmq/weir/internal/glossary"
	"github.com/weirmq/weir/internal/view/layout"
)

// glossaryCommand is `weir glossary`.
type glossaryCommand struct {
	Words   []string `arg:"" optional:"" name:"word" help:"The words to explain (none: all)."`
	NoColor bool     `help:"No colour."`
}

// run explains words, and reports those missing from the glossary.
func (c *glossaryCommand) run(_ context.Context, e *env) Code {
	words, code, all := glossary.Words(), OK, len(c.Words) == 0
	if !all {
		var faults []error
		words, faults = glossary.FindAll(c.Words)
		for _, err := range faults {
			e.complain(fmt.Errorf("%w (weir glossary lists all words)", err))
			code = Usage
		}
	}
	if len(words) == 0 {
		return code
	}
	p := new(layout.Page)
	glossary.Show(p, words, all)
	return cmp.Or(e.printed("the glossary", e.show(p, c.NoColor)), code)
}
