package view

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/result"
)

// allowedParts are the elements of a page with their attributes: none that loads, links out, executes or
// styles.
var allowedParts = map[string]string{
	"html": "lang", "head": "", "meta": "charset http-equiv content name", "title": "id", "style": "", "body": "", "main": "", "footer": "",
	"h1": "", "h2": "id", "nav": "aria-label", "a": "href", "h3": "", "p": "class", "span": "class", "ul": "class", "li": "", "div": "class tabindex role aria-label id popover",
	"dl": "", "dt": "class", "dd": "", "table": "class", "thead": "", "tbody": "", "tr": "", "th": "colspan scope class", "td": "class data-name", "small": "", "template": "", "b": "",
	"script": "type id", "pre": "tabindex", "figure": "", "figcaption": "", "details": "", "summary": "",
	"svg": "class viewBox role aria-labelledby data-heads", "desc": "id", "g": "class data-n", "path": "class d data-n data-v", "rect": "class x y width height data-v",
	"circle": "class cx cy r data-v", "text": "class x y data-n",
}

// A seen page is what its reader perceives.
type seen struct {
	text  string // all of it, the style and what the script computes with apart
	cells []string
	style string

	script string // the one that runs
}

// ownScript finds the script that is weir's own, by how it begins and ends.
var ownScript = regexp.MustCompile(`(?s)<script>("use strict";\n\(\(\) => \{\nconst data = JSON.*?\n}\)\(\);\n)</script>`)

// withoutScript takes weir's own script out of a page.
func withoutScript(page string) (rest string, scripts []string) {
	for _, m := range ownScript.FindAllStringSubmatch(page, -1) {
		scripts = append(scripts, m[1])
	}
	return ownScript.ReplaceAllString(page, ""), scripts
}

// inPage is a link to a chapter of the same page, to a file beside it, or to the page of a run below it.
var inPage = regexp.MustCompile(`^(#part-[0-9]+|\./[A-Za-z0-9_.%-]+(/([A-Za-z0-9_.%-]+/)*report\.html)?)$`)

// look parses a page as strictly as XML, and returns its faults: an unknown element or attribute, or a
// duplicate id.
func look(page string) (s seen, err error) {
	var text, style, cell, data strings.Builder
	var errs []error
	ids := map[string]bool{}
	in := 0 // elements deep in a cell
	var open []string
	// Browsers take a script literally, unlike XML. Any script but weir's own stays, to be refused.
	page, scripts := withoutScript(wordButton.ReplaceAllString(page, "$1"))
	d := xml.NewDecoder(strings.NewReader(page))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return s, fmt.Errorf("not well formed: %w", err)
		}
		switch x := token.(type) {
		case xml.StartElement:
			open = append(open, x.Name.Local)
			may, ok := allowedParts[x.Name.Local]
			if !ok {
				errs = append(errs, fmt.Errorf("has an element %s", x.Name.Local))
			}
			for _, a := range x.Attr {
				if !slices.Contains(strings.Fields(may), a.Name.Local) {
					errs = append(errs, fmt.Errorf("has an attribute %s of %s", a.Name.Local, x.Name.Local))
				}
				if a.Name.Local == "id" && ids[a.Value] {
					errs = append(errs, fmt.Errorf("has the id %s twice", a.Value))
				}
				if x.Name.Local == "script" && a.Name.Local == "type" && a.Value != "application/json" {
					errs = append(errs, fmt.Errorf("has a script of the type %s", a.Value))
				}
				if a.Name.Local == "href" && !inPage.MatchString(a.Value) {
					errs = append(errs, fmt.Errorf("has a link to %s", a.Value))
				}
				ids[a.Value] = ids[a.Value] || a.Name.Local == "id"
				if (a.Name.Local == "d" || a.Name.Local == "x" || a.Name.Local == "y") && strings.ContainsAny(a.Value, "NaIif") {
					errs = append(errs, fmt.Errorf("has a place that is not a number: %.60s", a.Value))
				}
			}
			if x.Name.Local == "script" && len(x.Attr) != 2 {
				errs = append(errs, errors.New("has another script"))
			}
			if x.Name.Local == "td" || x.Name.Local == "th" {
				cell.Reset()
				in = len(open)
			}
		case xml.EndElement:
			if len(open) == in {
				s.cells, in = append(s.cells, cell.String()), 0
			}
			open = open[:len(open)-1]
			if !slices.Contains([]string{"span"}, x.Name.Local) {
				text.WriteByte('\n')
			}
		case xml.CharData:
			switch {
			case len(open) > 0 && open[len(open)-1] == "style":
				style.Write(x)
			case len(open) > 0 && open[len(open)-1] == "script":
				data.Write(x)
			default:
				text.Write(x)
				if in > 0 {
					cell.Write(x)
				}
			}
		case xml.Comment, xml.ProcInst:
			errs = append(errs, fmt.Errorf("has %T", x))
		}
	}
	s.text, s.style, s.script = text.String(), style.String(), strings.Join(scripts, "")
	if len(scripts) > 0 && !json.Valid([]byte(data.String())) || len(scripts) > 1 {
		errs = append(errs, fmt.Errorf("has %d scripts, or what they compute with is not JSON: %.80s", len(scripts), data.String()))
	}
	return s, errors.Join(errs...)
}

// html1 is a run's page.
func html1(t testing.TB, e Entry, o Options) string {
	t.Helper()
	b := rendered(t, HTML, e, o)
	return b
}

// old is the folder of a run that an earlier weir measured.
const old = "../../result/testdata/v1/jetstream"

func TestThePageOfAnEarlierRun(t *testing.T) {
	t.Parallel()
	e, missing, err := Load(old, "results/jetstream", Loading{Drawn: true})
	if err != nil || len(missing) > 0 {
		t.Fatal(missing, err)
	}
	page := same(t, "page.html", func(w io.Writer) error { return HTML(w, e, Options{}) })
	if _, err := look(page); err != nil {
		t.Error(err)
	}
	if n := len(page); n > 250_000 {
		t.Errorf("the page of a run of few seconds has %d bytes", n)
	}
	for _, id := range []string{"c-send", "c-e2e", "c-delays", "c-rates", "c-send-time", "c-e2e-time", "c-lateness-time"} {
		if !strings.Contains(page, `aria-labelledby="`+id+"-t "+id+`-d"`) {
			t.Errorf("there is no chart %s", id)
		}
	}
	if strings.Contains(page, `"c-rtt`) {
		t.Error("there is a chart of round trips, and there were none")
	}
}

// Every figure, cell and sentence of the text must be in Markdown and HTML.
func TestAllRenderingsAgree(t *testing.T) {
	t.Parallel()
	inputs, err := filepath.Glob("testdata/*.json")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	for _, in := range inputs {
		e := entry(stored(t, in, "lost == 0", "send.p99 <= 50ms", "e2e.p99.9 <= 1s"))
		o := Options{Session: 200}
		var text, markdown strings.Builder
		must.Do(t, errors.Join(Text(&text, entry(e.Result), o), Markdown(&markdown, entry(e.Result), o)))
		agree(t, in, text.String(), markdown.String(), html1(t, e, o))
	}
	var text, markdown, page strings.Builder
	must.Do(t, errors.Join(Overview(&text, fiveRuns(t), Options{Width: 1000}), OverviewMarkdown(&markdown, fiveRuns(t), Options{}), OverviewHTML(&page, fiveRuns(t), Options{})))
	agree(t, "the overview", text.String(), markdown.String(), page.String())
}

// pieces are what two blanks or more part in a text, and what a comma does.
var pieces = regexp.MustCompile(` {2,}|, |; |\n`)

func agree(t *testing.T, name, text, markdown, page string) {
	t.Helper()
	got, err := look(page)
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	// Markdown without its signs.
	unescaped := regexp.MustCompile(`\\(.)`).ReplaceAllString(strings.ReplaceAll(strings.ReplaceAll(markdown, "**", ""), "&amp;", "&"), "$1")
	seen := strings.Join(strings.Fields(got.text), " ")
	n := 0
	for _, piece := range pieces.Split(text, -1) {
		piece = strings.Join(strings.Fields(piece), " ")
		if piece == "" {
			continue
		}
		n++
		if !strings.Contains(strings.Join(strings.Fields(unescaped), " "), piece) {
			t.Errorf("%s: Markdown does not say %q", name, piece)
		}
		if !strings.Contains(seen, piece) {
			t.Errorf("%s: HTML does not say %q", name, piece)
		}
	}
	// Every cell of Markdown's tables is one of HTML's, and as often.
	count := map[string]int{}
	for _, c := range got.cells {
		count[c]++
	}
	for line := range strings.Lines(unescaped) {
		if !strings.HasPrefix(line, "| ") || strings.Contains(line, "---") {
			continue
		}
		for c := range strings.SplitSeq(strings.Trim(line, "| \n"), " | ") {
			c = strings.TrimSpace(c)
			if strings.ContainsAny(c, "0123456789") && strings.IndexAny(c, "0123456789~>=!<+") == 0 {
				if count[c]--; count[c] < 0 {
					t.Errorf("%s: the cell %q is not in HTML as often as in Markdown", name, c)
				}
			}
		}
	}
	if n < 10 {
		t.Errorf("%s: only %d pieces were compared", name, n)
	}
}

// hostile is what an attacker may write in place of a word.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `</style><script>`, `</title></pre></svg><iframe src="//evil">`, `' onload='x`,
	`]]><!--`, `javascript:alert(1)`, "\x1b[31m\x00\u009b\ufffe", `{{.}}`, `&lt;b&gt;`, `url(http://evil)`,
}

func TestAHostileResultIsInert(t *testing.T) {
	t.Parallel()
	e, _ := must.Two(Load(old, "x", Loading{Drawn: true}))(t)
	plain, err := look(html1(t, e, Options{}))
	if err != nil || plain.style == "" {
		t.Fatalf("a page without a style: %v", err)
	}
	for i, evil := range hostile {
		r := *e.Result
		r.Run.Name, r.Run.ID, r.Run.StartedAt, r.Run.Mode, r.Run.Weir, r.Run.Series = evil, evil, evil, evil, evil, evil
		r.System = result.System{Driver: evil, Client: evil, Guarantee: evil, Copies: evil, Stable: evil, Server: result.Server{Name: evil, Version: evil}}
		r.Verdict = result.Verdict{Status: result.Status(evil), Checks: []result.Check{
			{Name: evil, Status: result.Suspect, Value: evil, Limit: evil, Why: evil}, {Name: evil, Status: result.Status(evil)},
		}, SLO: []result.SLO{{Expr: evil, Status: result.Outcome(evil), Why: evil, Unit: evil}}}
		r.Subscriptions = []result.Subscription{{Name: evil, MessagesAll: result.Received{Lost: 1}}}
		course := newCourse(0, []result.Interval{{Phase: evil, Sent: 5, Confirmed: 3}, {TS: 1, Phase: evil, Sent: 3}}, nil, 2)
		course.marks = []happening{{at: 1, kind: evil, text: evil, count: 2}}
		x := Entry{Entry: result.Entry{Dir: evil, Result: &r, Scenario: []byte("weir: 1\nname: " + evil + "\n")}, Course: course}
		x.Environment = result.Environment{
			Weir: result.Build{Version: evil}, System: result.EnvironmentSystem{Settings: map[string]string{evil: evil}},
			Hosts: []host.Facts{{Hostname: evil, CPUModel: evil, Kernel: evil, Distribution: evil, ClockSource: evil, Container: evil}},
		}
		var page, several strings.Builder
		must.Do(t, errors.Join(HTML(&page, x, Options{}), OverviewHTML(&several, []Entry{x, e, x}, Options{})))
		for _, text := range []string{page.String(), several.String()} {
			got, err := look(text)
			if err != nil {
				t.Errorf("%q: %v", evil, err)
			}
			if i < 7 && strings.Count(got.text, evil) < 10 {
				t.Errorf("%q is not shown as it is", evil)
			}
			if got.style != plain.style || got.script != plain.script {
				t.Errorf("%q: another style, or another script", evil)
			}
		}
	}
}

func TestPageLoadsNoResources(t *testing.T) {
	t.Parallel()
	page := html1(t, run(t, "jetstream-500"), Options{})
	seen, err := look(page)
	if err != nil || regexp.MustCompile(`(?i)url\(|@import|@font-face|://|expression|<|&`).MatchString(seen.style) {
		t.Errorf("the style fetches something, or is no XML: %v", err)
	}
	hash := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	want := `<meta http-equiv="Content-Security-Policy" content="` + strings.NewReplacer("+", "&#43;", "'", "&#39;").Replace(
		"default-src 'none'; style-src "+hash(seen.style)+"; script-src "+hash(seen.script)+"; img-src data:; base-uri 'none'; form-action 'none'") + `"/>`
	if seen.script == "" || regexp.MustCompile(`fetch\(|XMLHttpRequest|WebSocket|EventSource|sendBeacon|import|innerHTML|outerHTML|insertAdjacent|document\.write|eval|Function\(|localStorage|cookie|\.src\b|\.href\b`).MatchString(seen.script) {
		t.Error("there is no script, or it asks for something, keeps something, or makes elements of texts")
	}
	if !strings.Contains(page, want) {
		t.Errorf("the page's policy is not %s", want)
	}
	if strings.Index(page, "http-equiv") > strings.Index(page, "<style>") {
		t.Error("the policy comes after what it is about")
	}
	if strings.Contains(page, "http://") || strings.Contains(page, "https://") {
		t.Error("the page names an address to fetch from")
	}
}

func TestEveryChartHasWords(t *testing.T) {
	t.Parallel()
	e, _ := must.Two(Load(old, "x", Loading{Drawn: true}))(t)
	page := html1(t, e, Options{})
	charts := strings.Count(page, "<svg ")
	if n := len(regexp.MustCompile(`<title id="[^"]+">[^<]{5,}</title><desc id="[^"]+">[^<]{20,}</desc>`).FindAllString(page, -1)); n != charts || n < 6 {
		t.Errorf("%d of %d charts have a title and a description", n, charts)
	}
	// The headline says what the table says.
	if want := "99 % " + distributions(e.Result)[0].figure(e.Result, 99).Text; !strings.Contains(page, want) {
		t.Errorf("no chart says %q", want)
	}
}

func TestUnsupportedAndCensoredAreDrawnApart(t *testing.T) {
	t.Parallel()
	hi := int64(3e6)
	d := &result.Dist{Count: 990, Censored: 10, Percentiles: []result.Percentile{
		{P: 50, NS: 1e6, LoNS: new(int64(9e5)), HiNS: &hi, Supported: true},
		{P: 90, NS: 2e6, LoNS: new(int64(1e6)), Supported: true},
		{P: 99, NS: 9e9, LoNS: new(int64(2e6)), Supported: true, AtLeast: true},
		{P: 99.9, NS: 9e9, LoNS: new(int64(1e6)), AtLeast: true},
		{P: 99.99, NS: 9e9},
		{P: 100, NS: 9e9, Supported: true, AtLeast: true},
	}}
	r := &result.Result{Run: result.Run{Loop: result.LoopOpen}, Latency: result.Latency{Send: result.Send{Response: d}}}
	page := html1(t, entry(r), Options{Percentiles: []float64{50, 90, 99, 99.9, 99.99}})
	for what, want := range map[string]int{
		`<circle class="dot"[^>]*><title>response 50 %: 1.00 ms \(95 %: 900 µs to 3.00 ms\)`: 1,
		`<path class="hollow"[^>]*><title>response 99 %: &gt;= 9.00 s`:                       1,
		`<path class="line s1 dash"`: 1,
		`response 99.99 %`:           0, // beyond the samples there is only the maximum
		`<path class="hollow"[^>]*><title>response max: &gt;= 9.00 s`: 1,
		`>~&gt;= 9.00 s<`: 1, // the table has it
		`>send service<`:  0,
	} {
		if got := len(regexp.MustCompile(what).FindAllString(page, -1)); got != want {
			t.Errorf("%d times %s; want %d", got, what, want)
		}
	}
}

// The table says what is missing and why, and what a run of that length has seen; the band has a gap.
func TestUnknownIntervalIsNotDrawn(t *testing.T) {
	t.Parallel()
	ends := func(p float64, lo, hi *int64, by string) result.Percentile {
		return result.Percentile{P: p, NS: 1e6, LoNS: lo, HiNS: hi, Supported: true, UnboundedBy: by}
	}
	lo, hi := new(int64(9e5)), new(int64(3e6))
	d := &result.Dist{Count: 10_000, Percentiles: []result.Percentile{
		ends(50, lo, hi, ""), ends(75, lo, hi, ""), ends(90, nil, nil, result.ByDependence), ends(95, lo, nil, result.ByEpisodes), ends(99, nil, hi, result.ByDependence), ends(99.9, lo, nil, ""),
		{P: 100, NS: 9e6, Supported: true},
	}}
	r := &result.Result{Run: result.Run{Loop: result.LoopOpen, MeasureS: 10, HorizonS: 2.711}, Latency: result.Latency{Send: result.Send{Response: d}}}
	text := rendered(t, Text, entry(r), Options{})
	mentions(t, unwrapped(text), "not known", "900 µs to 3.00 ms", ">= 900 µs", "<= 3.00 ms", "a stall that comes every 2.71 s on average", "neighbouring messages took similar times", "too few samples lie beyond", "fewer than six separate bursts")
	page := html1(t, entry(r), Options{})
	if strings.Contains(page, "NaN") {
		t.Error("the page draws what is not known")
	}
	if n := len(regexp.MustCompile(`<path class="band[^"]*" d="[^"]*z[^"]*z"`).FindAllString(page, -1)); n != 1 {
		t.Errorf("%d bands have a gap; want one", n)
	}
}

func TestManyRunsMakeUsablePage(t *testing.T) {
	t.Parallel()
	e, _ := must.Two(Load(old, "x", Loading{Drawn: true}))(t)
	var many []Entry
	for i := range 200 {
		x := e
		x.Dir = fmt.Sprintf("r/%d", i)
		many = append(many, x)
	}
	var b bytes.Buffer
	must.Do(t, OverviewHTML(&b, many, Options{}))
	if _, err := look(b.String()); err != nil {
		t.Error(err)
	}
	if n := b.Len(); n > 6_000_000 {
		t.Errorf("200 runs make %d bytes", n)
	}
	if got := strings.Count(b.String(), `-rates-t">`); got != mostDrawn {
		t.Errorf("%d runs have charts; want %d", got, mostDrawn)
	}
}

func TestHTMLReturnsWriteError(t *testing.T) {
	t.Parallel()
	if err := HTML(failing{}, run(t, "nats-500"), Options{}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, os.ErrClosed }
