package layout

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/view/plot"
)

// example is a page with a block of each form. Its words are w.
func example(w string) *Page {
	p := new(Page)
	p.Heading(w)
	p.Add(Block{Form: Status, Spans: []Span{Good.Of(w), Plain.Of("  the status")}})
	p.Line(Plain.Of("a line, "), Bad.Of(w))
	p.Add(Block{Form: Item, Mark: Doubtful.Of("marked"), Wide: 8, Spans: []Span{Plain.Of("an item")}, Under: w})
	p.Item(Faint.Of(w))
	p.Gap()
	p.Bullet(w)
	p.Labelled("label", Plain.Of(w))
	p.Labelled("", Plain.Of("continues"))
	p.Gap()
	p.Gap()
	p.Chapter("chapter")
	t := &Table{Columns: []Column{
		{Kind: Word, Head: "key", Key: true, Tone: Strong}, {Group: "group", Head: "a"}, {Group: "group", Head: "b", Kind: Word, Beside: true}, {Kind: Word, Head: "says", Judges: true},
	}}
	t.Row(w, "1", "..2", "x")
	t.Rows = append(t.Rows, []Span{Plain.Of("second"), Plain.Of("1,000"), {}, Bad.Of("worse")})
	p.Table(t)
	l := Listing("", "")
	l.Row("name", "some words "+w)
	p.Inset(2).Table(l)
	p.Note("~ a note: "+w+";", "which continues")
	p.Chart(&Chart{Chart: plot.Chart{
		ID: "c", Title: "a chart", Desc: w, Height: 200, X: plot.Linear(0, 1, 2, w, func(float64) string { return w }), Y: plot.Linear(0, 1, 2, w, func(float64) string { return w }),
		Lines: []plot.Line{{Class: "s1", Dots: true, Points: []plot.Point{{X: 0, Y: 1, Text: w}}}}, Marks: []plot.Mark{{X: 1, Text: w}},
		Columns: []plot.Column{{To: 1, Text: w}}, Spans: []plot.Span{{To: 1, Text: w}},
	}, Caption: w, Legend: []Key{{Class: "s1", Text: w}}})
	inside := new(Page)
	inside.Verbatim("as  it is "+w, "  two")
	p.Fold(inside, Plain.Of("folded "), Strong.Of(w))
	return p
}

func TestEachBlockAsText(t *testing.T) {
	t.Parallel()
	want := `word
word  the status
a line, word
  marked    an item
            word
  word

- word
label       word
            continues

chapter
        group
key         a  b    says
word        1  ..2  x
second  1,000       worse
  name  some words word
~ a note: word;
          which continues
a chart: word
folded word
as  it is word
  two
`
	if diff := cmp.Diff(want, Text{Width: 60, Fold: true}.Page(example("word"))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestEachBlockAsMarkdown(t *testing.T) {
	t.Parallel()
	want := `## word

**word** the status

a line, **word**

- **marked** an item
  word
- word

- word
- label: word
- continues

### chapter

| key | group a | b | says |
| :--- | ---: | :--- | :--- |
| word | 1 | ..2 | x |
| second | 1,000 |  | **worse** |

|  |  |
| :--- | :--- |
| name | some words word |

~ a note: word; which continues

a chart: word

folded **word**

    as  it is word
      two
`
	if diff := cmp.Diff(want, Markdown{Level: 2}.Page(example("word"))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestEachBlockAsHTML(t *testing.T) {
	t.Parallel()
	body := browsed(t, example("word"))
	_, body, _ = strings.Cut(body, "<main>\n")
	body, _, _ = strings.Cut(body, "</main>")
	before, rest, _ := strings.Cut(body, "<svg")
	_, after, _ := strings.Cut(rest, "</svg>\n")
	want := `<h1><span class="strong">word</span></h1>
<p class="status"><span class="good">word</span>  the status</p>
<p>a line, <span class="bad">word</span></p>
<ul class="items">
<li><span class="mark warn">marked</span> an item<div class="under">word</div></li>
<li><span class="dim">word</span></li>
</ul>
<ul class="items">
<li>word</li>
</ul>
<dl>
<div><dt>label</dt><dd>word</dd></div>
<div><dt class="on"></dt><dd>continues</dd></div>
</dl>
<h2 id="part-1">chapter</h2>
<div class="scroll" tabindex="0" role="group" aria-label="table"><table>
<thead>
<tr><th colspan="1" scope="colgroup"></th><th colspan="2" scope="colgroup">group</th><th colspan="1" scope="colgroup"></th></tr>
<tr><th scope="col" class="left">key</th><th scope="col" class="first">a</th><th scope="col" class="left">b</th><th scope="col" class="left first">says</th></tr>
</thead>
<tbody>
<tr><th scope="row" class="left">word</th><td class="first">1</td><td class="left">..2</td><td class="left first">x</td></tr>
<tr><th scope="row" class="left">second</th><td class="first">1,000</td><td class="left"></td><td class="left first bad">worse</td></tr>
</tbody>
</table></div>

<div class="scroll" tabindex="0" role="group" aria-label="table"><table class="words">
<thead>
<tr><th scope="col" class="left"></th><th scope="col" class="left prose"></th></tr>
</thead>
<tbody>
<tr><th scope="row" class="left">name</th><td class="left prose">some words word</td></tr>
</tbody>
</table></div>

<ul class="note">
<li>~ a note: word;</li>
<li>which continues</li>
</ul>
<figure>
<h3>a chart</h3>
<ul class="legend"><li><span class="key s1"></span>word</li></ul>
`
	if diff := cmp.Diff(want, before); diff != "" {
		t.Errorf("before the chart, -want +got:\n%s", diff)
	}
	want = `<figcaption>word</figcaption>
</figure>
<details>
<summary>folded <span class="strong">word</span></summary>
<pre tabindex="0">as  it is word
  two
</pre>
</details>
`
	if diff := cmp.Diff(want, after); diff != "" {
		t.Errorf("after the chart, -want +got:\n%s", diff)
	}
}

// TestContentsListTheChaptersOfAPage: they lead to chapters of the page itself, and not to
// those of what is folded. Text and Markdown have none.
func TestContentsListTheChaptersOfAPage(t *testing.T) {
	t.Parallel()
	page := func(chapters ...string) *Page {
		p := new(Page)
		p.Heading("head")
		p.Contents()
		inside := new(Page)
		inside.Chapter("folded")
		p.Fold(inside, Plain.Of("more"))
		for _, c := range chapters {
			p.Chapter(c)
		}
		return p
	}
	got := browsed(t, page("one", "<two>", "three"))
	want := `<nav aria-label="contents"><ul>
<li><a href="#part-1">one</a></li>
<li><a href="#part-2">&lt;two&gt;</a></li>
<li><a href="#part-3">three</a></li>
</ul></nav>`
	if !strings.Contains(got, want) || !strings.Contains(got, `<h2 id="part-3">three</h2>`) || !strings.Contains(got, "<h2>folded</h2>") {
		t.Errorf("there is no\n%s\nin\n%s", want, got[strings.Index(got, "<main>"):])
	}
	if strings.Contains(browsed(t, page("one", "two")), "<nav") {
		t.Error("a page of two chapters lists them")
	}
	if got := (Text{}).Page(page("one")) + (Markdown{}).Page(page("one")); strings.Contains(got, "part-") || strings.Contains(got, "contents") {
		t.Errorf("text or Markdown has contents:\n%s", got)
	}
}

// TestScriptDataCannotCloseElement: a name in it can neither end the element that it
// stands in nor begin another.
func TestScriptDataCannotCloseElement(t *testing.T) {
	t.Parallel()
	evil := "</script><script>alert(1)</script>"
	p := example(evil)
	for i := range p.blocks {
		if c := p.blocks[i].Chart; c != nil {
			c.Timed = &Timed{Unit: Nanoseconds, Of: evil}
		}
	}
	p.Embed(evil, evil)
	page := browsed(t, p)
	if n := strings.Count(page, "</script>"); n != 2 {
		t.Errorf("%d scripts end; want the data and the code", n)
	}
	_, data, _ := strings.Cut(page, `<script type="application/json" id="weir-data">`)
	data, _, _ = strings.Cut(data, "</script>")
	var got struct {
		Charts []struct{ Names []string }
		Data   map[string]string
	}
	if err := json.Unmarshal([]byte(data), &got); err != nil || len(got.Charts) != 1 || got.Charts[0].Names[0] != evil || got.Data[evil] != evil {
		t.Errorf("the data are %+v: %v", got, err)
	}
}

// TestAPageWithoutChartsHasNoScript: its policy then forbids any.
func TestAPageWithoutChartsHasNoScript(t *testing.T) {
	t.Parallel()
	p := new(Page)
	p.Heading("words")
	if page := browsed(t, p); strings.Contains(page, "<script") || strings.Contains(page, "script-src") {
		t.Errorf("it has a script, or permits one:\n%s", page)
	}
}

// TestTooWideTableShowsScrollHint: the hint is there without a script.
func TestTooWideTableShowsScrollHint(t *testing.T) {
	t.Parallel()
	for width, want := range map[int]bool{3: false, 9: true} {
		x := &Table{Columns: Columns(Word, Plain, "a", "b", "c", "d", "e")}
		x.Row(strings.Repeat("x", width), strings.Repeat("x", width), strings.Repeat("x", width), strings.Repeat("x", width), strings.Repeat("x", width))
		p := new(Page)
		p.Table(x)
		if got := strings.Contains(browsed(t, p), `<div class="scroll sideways"`); got != want {
			t.Errorf("five columns of %d characters: the hint is there: %v; want %v", width, got, want)
		}
	}
	if !strings.Contains(pageStyle, ".sideways::before") {
		t.Error("the style shows no hint")
	}
}

func browsed(t *testing.T, p *Page) string {
	t.Helper()
	var b strings.Builder
	must.Do(t, (HTML{Title: "title", Schema: "schema", Footer: "footer"}).Write(&b, p))
	return b.String()
}

// TestHostileTextIsInert puts into every block what paints, what is markup, and what ends
// lines and cells.
func TestHostileTextIsInert(t *testing.T) {
	t.Parallel()
	innocent := Markdown{}.Page(example("word"))
	for _, evil := range []string{
		"\x1b[31mred\x07", "a\r\n| b\n# c", "\u009b2J\u202e", "<script>alert(1)</script>", `"><img src=x onerror=x>`, "</style></pre></svg>",
		"![x](javascript:x) [a](//evil) `c`", "a | b", "**b** _c_ ~~d~~", "{{.}}", "&lt;b&gt;", "]]><!--",
	} {
		p := example(evil)
		text, markdown, page := Text{Width: 80, Fold: true}.Page(p), Markdown{}.Page(p), browsed(t, p)
		for name, s := range map[string]string{"text": text, "Markdown": markdown, "HTML": page} {
			if i := strings.IndexFunc(s, func(c rune) bool { return c != '\n' && Readable(string(c)) != string(c) || c == '\t' }); i >= 0 {
				t.Errorf("%q in %s: %q", evil, name, s[i:min(len(s), i+20)])
			}
		}
		if a, b := strings.Count(innocent, "\n"), strings.Count(markdown, "\n"); a != b {
			t.Errorf("%q makes %d lines of Markdown; want %d", evil, b, a)
		}
		unescaped := strings.NewReplacer(`\\`, "", `\|`, "", `\<`, "", "\\`", "", `\[`, "", `\]`, "", `\*`, "", `\_`, "", `\#`, "", `\~`, "").Replace(markdown)
		for line := range strings.Lines(unescaped) {
			if n := strings.Count(line, "|"); strings.HasPrefix(line, "| ") && n != 3 && n != 5 {
				t.Errorf("%q makes a row of %d signs: %s", evil, n, line)
			}
			if !strings.HasPrefix(line, "    ") && strings.ContainsAny(line, "<[`_") {
				t.Errorf("%q leaves markup in Markdown: %s", evil, line)
			}
		}
		if got := elements(t, page); got != elements(t, browsed(t, example("word"))) {
			t.Errorf("%q makes other elements: %s", evil, got)
		}
	}
}

// elements are those of a page of HTML, which is XML too but for the script.
func elements(t *testing.T, page string) string {
	t.Helper()
	if n := strings.Count(page, "<script>"+lean(pageScript)+"</script>"); n != 1 {
		t.Errorf("the page has the script %d times", n)
	}
	page = strings.ReplaceAll(page, "<script>"+lean(pageScript)+"</script>", "")
	var names []string
	for d := xml.NewDecoder(strings.NewReader(page)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return strings.Join(names, " ")
		}
		if err != nil {
			t.Fatalf("not well formed: %v", err)
		}
		if x, ok := token.(xml.StartElement); ok {
			names = append(names, x.Name.Local)
		}
	}
}

// grouped is a table of three groups: a of two columns, b of a column with its interval
// beside it and one more, and one column of its own.
func grouped() *Table {
	t := &Table{Columns: []Column{
		{Head: "run", Kind: Word, Key: true},
		{Group: "a", Head: "one"},
		{Group: "a", Head: "two"},
		{Group: "b", Head: "p50"},
		{Group: "b", Head: "95 %", Beside: true, Kind: Word},
		{Group: "b", Head: "p99"},
		{Head: "alone"},
	}}
	t.Row("x", "1", "2", "12345", "1..2", "9", "0")
	return t
}

func TestTablesSplitAtGroupsThenColumns(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		width int
		want  [][]int
	}{
		"without a bound it is one":                           {0, [][]int{{0, 1, 2, 3, 4, 5, 6}}},
		"one that fits is one":                                {38, [][]int{{0, 1, 2, 3, 4, 5, 6}}},
		"groups stay whole":                                   {37, [][]int{{0, 1, 2, 3, 4, 5}, {0, 6}}},
		"a group that fits a table of its own gets it":        {25, [][]int{{0, 1, 2}, {0, 3, 4, 5}, {0, 6}}},
		"one that does not is cut, but not from its interval": {17, [][]int{{0, 1, 2}, {0, 3, 4}, {0, 5, 6}}},
		"and what fits nowhere stands alone and is too wide":  {5, [][]int{{0, 1}, {0, 2}, {0, 3, 4}, {0, 5}, {0, 6}}},
	} {
		if diff := cmp.Diff(tt.want, grouped().cut(tt.width)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestEvenTableSplitsIntoEqualParts(t *testing.T) {
	t.Parallel()
	even := &Table{Even: true, Columns: Columns(Word, Plain, "k", "a", "b", "c", "d", "e")}
	for width, want := range map[int][][]int{
		16: {{0, 1, 2, 3, 4, 5}}, 15: {{0, 1, 2, 3}, {0, 4, 5}}, 9: {{0, 1, 2}, {0, 3, 4}, {0, 5}}, 1: {{0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}},
	} {
		if diff := cmp.Diff(want, even.cut(width)); diff != "" {
			t.Errorf("in %d characters (-want +got):\n%s", width, diff)
		}
	}
}

func TestSentencesWrappedOnTerminalOnly(t *testing.T) {
	t.Parallel()
	p := new(Page)
	p.Add(Block{Form: Item, Mark: Doubtful.Of("suspect"), Spans: []Span{Plain.Of("lateness: a quarter of it is the generator's own")}, Under: "A quieter host makes it go away, or a core more."})
	p.Labelled("messages", Plain.Of("scheduled 1,000, "), Bad.Of("lost 1"), Plain.Of(", duplicated 0"))
	p.Bullet("a word averylongwordthatfitsnowhereatallinit and µµµ")
	want := `  suspect  lateness: a quarter of it
           is the generator's own
           A quieter host makes it
           go away, or a core more.
messages    scheduled 1,000, lost 1,
            duplicated 0
- a word
  averylongwordthatfitsnowhereatallinit
  and µµµ
`
	if diff := cmp.Diff(want, Text{Width: 36, Fold: true}.Page(p)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := (Text{Width: 36}).Page(p); strings.Count(got, "\n") != 4 {
		t.Errorf("not a terminal, and folded:\n%s", got)
	}
}

// TestMultiSpanLineKeepsWidth: it may be broken between two spans, where the
// first ends with a blank.
func TestMultiSpanLineKeepsWidth(t *testing.T) {
	t.Parallel()
	p := new(Page)
	p.Labelled("messages", Plain.Of("scheduled 10,000"), Plain.Of(", "), Plain.Of("sent 10,000"), Plain.Of(", "), Bad.Of("confirmed 10,000"), Plain.Of(", "), Plain.Of("delivered 10,000"))
	want := `
messages    scheduled 10,000, sent
            10,000, confirmed 10,000,
            delivered 10,000
`
	if got := "\n" + (Text{Width: 37, Fold: true}).Page(p); got != want {
		t.Errorf("got%swant%s", got, want)
	}
}

func TestAListingsLastColumnIsBroken(t *testing.T) {
	t.Parallel()
	p := new(Page)
	l := Listing("", "", "")
	l.Row("a", "1", "short")
	l.Rows = append(l.Rows, []Span{Plain.Of("bµb"), Plain.Of("22"), Bad.Of("some words that do not fit into one line of it")})
	p.Inset(2).Table(l)
	want := "  a    1   short\n  bµb  22  some words that do not fit into\n           one line of it\n"
	if diff := cmp.Diff(want, Text{Width: 44, Fold: true}.Page(p)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	painted := "  bµb  22  \x1b[1;31msome words that do not fit into\x1b[0m\n           \x1b[1;31mone line of it\x1b[0m\n"
	if got := (Text{Width: 44, Fold: true, Colour: true}).Page(p); !strings.HasSuffix(got, painted) {
		t.Errorf("painted: %q", got)
	}
}

func TestColumnsOfProseShareTheWidth(t *testing.T) {
	t.Parallel()
	p := new(Page)
	l := &Table{Columns: Columns(Prose, Plain, "", "one", "two")}
	l.Columns[0].Kind = Word
	l.Row("name", "a few words that are too many", "few")
	l.Row("n", "x", "and a few words too many")
	p.Inset(2).Table(l)
	want := `
        one              two
  name  a few words      few
        that are too
        many
  n     x                and a few words
                         too many
`
	if got := "\n" + (Text{Width: 40, Fold: true}).Page(p); got != want {
		t.Errorf("got%swant%s", got, want)
	}
}

func TestATerminalsLastColumnStaysFree(t *testing.T) {
	t.Parallel()
	for columns, want := range map[int]int{0: 80, 20: 39, 40: 39, 80: 79, 300: 120} {
		if got := Terminal(columns, false).Width; got != want {
			t.Errorf("of %d columns, %d are used; want %d", columns, got, want)
		}
	}
}

func TestMarkdownIsEscaped(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"~1.59 ms":         "~1.59 ms",
		"~a~":              `\~a\~`,
		"a_b*c*":           `a\_b\*c\*`,
		"x | y":            `x \| y`,
		"<script>&lt;":     `\<script>&amp;lt;`,
		"[a](b) `c` \\ #1": "\\[a\\](b) \\`c\\` \\\\ \\#1",
		">= 104 ms":        ">= 104 ms",
	} {
		if got := Escape(in); got != want {
			t.Errorf("Escape(%q) = %q; want %q", in, got, want)
		}
	}
}

func TestLongNamesLoseTheirMiddle(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   string
		n    int
		want string
	}{{"short", 10, "short"}, {"kafka-1kib-20k", 10, "kafk…b-20k"}, {"ααααααααα", 5, "αα…αα"}, {"ab", 1, "ab"}} {
		if got := Shortened(tt.in, tt.n); got != tt.want || tt.n >= 3 && utf8.RuneCountInString(got) > tt.n {
			t.Errorf("Shortened(%q, %d) = %q; want %q", tt.in, tt.n, got, tt.want)
		}
	}
}

// TestProseTableStacksWhenNarrow: on a small terminal its rows stand one below the
// other. On a wide one nothing changes but where a line would be too long.
func TestProseTableStacksWhenNarrow(t *testing.T) {
	t.Parallel()
	l := &Table{Columns: Columns(Prose, Plain, "name", "type", "default", "meaning")}
	for i := range 3 {
		l.Columns[i].Kind = Word
	}
	l.Row("address", "list", "127.0.0.1:9092", "where the system is, one address or several of them")
	l.Row("acks", "text", "all", "")
	l.Columns[0].Head = "name"
	p := new(Page)
	p.Inset(6).Table(l)
	stacked := `
  address
    type list, default 127.0.0.1:9092
    meaning: where the system is, one
    address or several of them
  acks
    type text, default all
`
	if got := "\n" + Terminal(40, false).Page(p); got != stacked {
		t.Errorf("got%swant%s", got, stacked)
	}
	beside := `
      name     type  default         meaning
      address  list  127.0.0.1:9092  where the system is, one address or several
                                     of them
      acks     text  all
`
	if got := "\n" + Terminal(81, false).Page(p); got != beside {
		t.Errorf("got%swant%s", got, beside)
	}
	// A table that is cut stacks where a part of it is still too wide.
	w := &Table{Columns: Columns(Word, Plain, "profile", "to the system", "from the system")}
	w.Row("wifi", "20ms, 30 Mbit/s, loss 0.2 % each", "10ms")
	r := new(Page)
	r.Table(w)
	want := `
wifi
  to the system 20ms, 30 Mbit/s, loss
  0.2 % each, from the system 10ms
`
	if got := "\n" + Terminal(40, false).Page(r); got != want {
		t.Errorf("got%swant%s", got, want)
	}
	// A word that is too long for any line does not count.
	long := Listing("", "")
	long.Row("source", "https://example.com/"+strings.Repeat("x", 60))
	q := new(Page)
	q.Table(long)
	for _, cols := range []int{40, 80} {
		if got := Terminal(cols, false).Page(q); strings.Count(got, "\n") != 1 {
			t.Errorf("%d columns:\n%s", cols, got)
		}
	}
}

// TestBriefTextEndsAndFits: a sentence ends after its lines, a table loses columns, and a line
// that is longer than the terminal counts as the lines that it takes there.
func TestBriefTextEndsAndFits(t *testing.T) {
	p := new(Page)
	p.Labelled("label", Bad.Of("one two three four five six seven eight nine ten eleven twelve thirteen"))
	p.Table(&Table{Columns: append(Columns(Word, Plain, "first"), Column{Head: "a column of some width"}, Column{Head: "another that has no room"})})
	p.Add(Block{Form: Labelled, Mark: Plain.Of("next"), Spans: []Span{Plain.Of("a command that is longer than a line")}, Whole: true})
	text := Text{Width: 44, Fold: true, Brief: 2}
	want := "label       one two three four five six\n            seven eight nine ten eleven…\nfirst  a column of some width\nnext        a command that is longer than a line\n"
	if got := strings.ReplaceAll(text.Page(p), "                             \n", "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := text.Height(p); got != 5 {
		t.Errorf("%d lines; want 5", got)
	}
	for most, want := range map[int]string{
		0: "  value\n  The cause. The broker does what it can, and\n  that takes a while.\n",
		4: "  value\n  The cause. The broker does what it can, and\n  that takes a while. Its user waits for it\n  meanwhile. Do this, in so many words.\n",
	} {
		p := new(Page)
		p.Add(Block{Form: Item, Spans: []Span{Plain.Of("value")}, Under: "The cause. The broker does what it can, and that takes a while. Its user waits for it meanwhile. Do this, in so many words."})
		if got := (Text{Width: 46, Fold: true, Brief: 2, Advice: most}).Page(p); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}
