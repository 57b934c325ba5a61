package network

import (
	"fmt"

	"github.com/weirmq/weir/internal/view/layout"
)

// Show adds to a page whether this host permits a simulated network, and the profiles with their
// sources.
func Show(p *layout.Page) {
	if err := Check(); err != nil {
		p.Labelled("host", layout.Bad.Of(err.Error()))
	} else {
		p.Labelled("host", layout.Plain.Of("this host lends weir network namespaces and TUN devices"))
	}
	p.Gap()
	t := &layout.Table{Columns: []layout.Column{
		{Head: "--network", Kind: layout.Word, Key: true}, {Head: "to the system", Kind: layout.Word}, {Head: "from the system", Kind: layout.Word}, {Head: "ref", Kind: layout.Word},
	}}
	sources := layout.Listing("", "")
	seen := map[string]string{}
	for _, x := range Profiles() {
		if seen[x.Source] == "" {
			seen[x.Source] = fmt.Sprint(len(seen) + 1)
			sources.Row(seen[x.Source], x.Source)
		}
		t.Row(x.Name, x.To.String(), x.From.String(), seen[x.Source])
	}
	p.Table(t)
	p.Gap()
	p.Table(sources)
	p.Note("latency: each way, half of the source's round trip.")
}
