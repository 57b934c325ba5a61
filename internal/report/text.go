package report

import (
	"fmt"
	"io"
)

// Options say how a report is written.
type Options struct {
	Dir    string // the result folder, named at the end; "" leaves it out
	Partly bool   // not all of it could be written
	Colour bool   // ANSI escape sequences; of text only
	Width  int    // of the terminal in characters, for text only; 0: not known, then tables are at most 100 wide where they can be, and lines are not folded
	// Session is how many messages a session of a user has: beside each percentile
	// stands which share of sessions meets worse; 0: nothing does.
	Session uint64
	Full    bool // overviews: each run after the table

	drawn string // of HTML: what the ids of a run's charts begin with
}

// unknownWidth is what a table gets where nobody knows: files and pipes are read
// in editors and logs.
const unknownWidth = 100

func (o Options) terminal() terminal {
	t := terminal{colour: o.Colour, width: o.Width, folds: o.Width > 0}
	if t.width <= 0 {
		t.width = unknownWidth
	}
	return t
}

// Text writes a run for a terminal: the verdict first, the percentiles with
// response beside service, the outcomes, and where the files are. The error is
// that of w.
func Text(w io.Writer, e Entry, o Options) error {
	p := new(page)
	one(p, e, o)
	_, err := io.WriteString(w, o.terminal().page(p))
	return err
}

// one puts one result on a page.
func one(p *page, e Entry, o Options) {
	r := e.Result
	t := &single{page: p, r: r, session: o.Session, drawn: o.drawn, course: e.Course, review: e.Review}
	t.verdict()
	t.system()
	t.latency()
	t.outcomes()
	t.throughput()
	t.servers()
	t.agents()
	if o.drawn != "" {
		t.spectra()
		t.overTime()
		t.evidence(e)
	}
	if o.Dir != "" {
		p.gap()
		p.line(plain("written to "), span{o.Dir, bold}, plain(partly(o.Partly)+events(r.Events)))
	}
}

func partly(is bool) string {
	if !is {
		return ""
	}
	return ", but incomplete: see above"
}

func events(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return ", 1 event in events.jsonl"
	}
	return fmt.Sprintf(", %s events in events.jsonl", Count(uint64(n)))
}
