package view

import (
	"cmp"
	"io"
	"path/filepath"

	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// Options control how a report is written.
type Options struct {
	Dir    string // result folder, named at the end; "": not named
	Partly bool   // some of it could not be written
	Colour bool   // ANSI escape sequences, in text only
	Width  int    // of the terminal in characters, for text only; 0: layout.Usual
	// Session is the number of messages in a user's session: each percentile then has the share of sessions
	// that meet worse; 0: not shown.
	Session uint64
	Short   bool // for text: fit one screen of a terminal
	Full    bool // overviews: each run after the table
	// Percentiles are the percentiles in the table, in percent; nil: those with enough samples, and those
	// of objectives.
	Percentiles []float64
	Shown       []string  // overviews: the figure that runs were added for, and whether it is known
	Left        int       // overviews: runs of an interrupted series that did not begin
	Rest        int       // overviews: planned runs that did not complete; also 0 if no plan is known
	Searches    []*Search // overviews: the searches that the runs belong to
	Fleet       *Fleet    // how the run's agents met; nil: unknown, or no agents
	Link        Linking   // HTML: to the pages of runs

	lone  bool   // only run of its page, which has the short answer
	first string // of a lone run with the answer first: path of its scenario
	drawn string // HTML: prefix of the ids of a run's charts

	files  []string // HTML: what lies beside the run's page
	spoken bool     // HTML: the main figure of the runs was said
}

// A Fleet has the flags that repeat a run on agents.
type Fleet struct {
	Again string // for weir run; "": in the scenario
	Look  string // the command that looks at its hosts; "": none
}

func (o Options) text() layout.Text {
	return layout.Text{Width: cmp.Or(max(0, o.Width), layout.Usual), Fold: true, Colour: o.Colour}
}

// markdown is GitHub's, with headings from a level.
func markdown(level int) layout.Markdown {
	return layout.Markdown{Level: level, Width: layout.MarkdownWidth}
}

func plain(s string) layout.Span { return layout.Plain.Of(s) }

// Text writes a run for a terminal: the verdict first, the percentiles with response beside service, the
// outcomes, and where the files are. It returns the error of w.
func Text(w io.Writer, e Entry, o Options) error {
	p := new(layout.Page)
	o.lone = true
	if o.Short {
		return singleOf(nil, e, o).screen().Write(w, MostLines, o.Width, o.Colour)
	}
	one(p, e, o)
	_, err := io.WriteString(w, o.text().Page(p))
	return err
}

// Markdown writes a result like Text, in GitHub Markdown: its name, the verdict, the percentiles, the
// outcomes. It returns the error of w.
func Markdown(w io.Writer, e Entry, o Options) error {
	_, err := io.WriteString(w, markdown(1).Page(RunPage(e, o)))
	return err
}

// RunPage is what Markdown writes.
func RunPage(e Entry, o Options) *layout.Page {
	p := new(layout.Page)
	p.Heading(title(e.Result))
	o.lone, o.first = true, filepath.Join(o.Dir, result.FileScenario)
	one(p, e, o)
	return p
}

// title names a run on pages that need a heading.
func title(r *result.Result) string {
	if r.Run.Name == "" {
		return r.System.Driver
	}
	return r.Run.Name
}

func singleOf(p *layout.Page, e Entry, o Options) *single {
	return &single{Page: p, Entry: e, r: e.Result, o: o}
}

func one(p *layout.Page, e Entry, o Options) {
	r := e.Result
	t := singleOf(p, e, o)
	t.verdict(nil)
	if o.lone && o.first != "" {
		t.answer(o.first, false)
		p.Gap()
	}
	t.findings()
	if o.drawn != "" && o.lone {
		p.Gap()
		p.Line(layout.Faint.Of(born(e)))
		p.Contents()
	}
	if o.drawn != "" {
		t.pictured()
	} else {
		t.figures()
	}
	if o.lone && o.first == "" {
		p.Gap()
		scenario := ""
		if o.Dir != "" {
			scenario = filepath.Join(o.Dir, result.FileScenario)
		}
		t.answer(scenario, true)
	}
	if o.Dir != "" {
		if o.first != "" || !o.lone {
			p.Gap()
		}
		p.Line(plain("written to "), layout.Strong.Of(o.Dir), plain(partly(o.Partly)+events(r.Events)))
	}
}

// figures writes all figures in the order of a terminal.
func (t *single) figures() {
	t.system()
	t.load()
	t.latency()
	t.wire()
	t.stages()
	t.windows()
	t.outcomes()
	t.throughput()
	t.network()
	t.servers()
	t.hosts(false)
	t.efficiency()
	t.slowest()
	t.faults()
	t.pause()
	t.churn()
	t.agents()
}

// pictured writes all figures with charts, the most asked for first: percentiles, the time, the messages,
// and folded the host and the evidence.
func (t *single) pictured() {
	chapter := func(s string) {
		t.Gap()
		t.Chapter(s)
	}
	t.spectra()
	t.latency()
	t.wire()
	t.overTime()
	t.stages()
	t.windows()
	t.faults()
	t.pause()
	t.churn()
	if t.o.lone {
		t.heat()
	}
	chapter("system and messages")
	t.system()
	t.load()
	t.outcomes()
	t.throughput()
	t.slowest()
	t.agents()
	t.clockCourses()
	chapter("environment and checks")
	page := t.Page
	t.Page = new(layout.Page)
	t.network()
	t.servers()
	t.hosts(false)
	t.efficiency()
	t.hostsOverTime()
	if inside := t.Page; !inside.Empty() {
		page.Fold(inside, plain("host and servers"))
	}
	t.Page = page
	t.evidence()
}

func partly(is bool) string {
	if !is {
		return ""
	}
	return ", but incomplete: see above"
}

func events(n int) string {
	if n == 0 {
		return ""
	}
	return ", " + quantity.Counted(n, "event", "events") + " in events.jsonl"
}
