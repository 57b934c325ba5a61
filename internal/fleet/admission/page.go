package admission

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirmq/weir/internal/view/layout"
)

// Tokens is the output of weir fleet token --json.
type Tokens struct {
	Schema string   `json:"schema"`
	Weir   string   `json:"weir"`
	Folder string   `json:"folder"`
	Pin    string   `json:"pin"`              // of the certificate
	Listen string   `json:"listen,omitempty"` // of the created token
	Join   string   `json:"join,omitempty"`   // its URL
	Tokens []Issued `json:"tokens"`
}

// Show writes a list of the tokens to a page, the last to expire first.
func (x *Tokens) Show(p *layout.Page, now time.Time) {
	tokens := layout.Listing("token", "made", "ends", "")
	slices.SortStableFunc(x.Tokens, func(a, b Issued) int { return cmp.Compare(b.Ends.Unix(), a.Ends.Unix()) })
	for _, t := range x.Tokens {
		state := ""
		switch {
		case t.Revoked:
			state = "revoked"
		case !now.Before(t.Ends), t.Ended():
			state = "ended"
		}
		tokens.Row(t.ID, t.Made.Local().Format(time.RFC3339), t.Ends.Local().Format(time.RFC3339), state)
	}
	p.Table(tokens)
}
