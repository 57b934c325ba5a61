package layout

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/must"
)

func TestWordsAreExplainedAtFirstUse(t *testing.T) {
	t.Parallel()
	h := HTML{Title: "t", Words: []Term{
		{Name: "Delay", Text: "Any."},
		{Name: "Wake-up delay", Text: "Late <waking>."},
		{Name: "Send", Text: "To the confirmation.", Alone: true},
		{Name: "Percentile", Text: "A rank.", Forms: `p\d+(?:\.\d+)?`},
		{Name: "Interval", Text: "A range."},
		{Name: "Unused", Text: "Never shown."},
	}}
	p := new(Page)
	p.Heading("a wake-up delay of headings")
	p.Say("intervals.hlog and --interval=2 and an interval: <b>wake-up delays</b>, send p99.9, p50")
	p.Labelled("send", Plain.Of("another interval and delay"))
	cards := &Table{Cards: true, Columns: []Column{{Head: "percentile", Key: true, Kind: Word}}}
	cards.Row("x")
	p.Table(cards)
	var b strings.Builder
	must.Do(t, h.Write(&b, p))
	page := b.String()
	for _, want := range []string{
		`<h1><span class="strong">a wake-up delay of headings</span></h1>`,
		`<p>intervals.hlog and --interval=2 and an <button class="word" popovertarget="word-2">interval</button>: &lt;b&gt;<button class="word" popovertarget="word-0">wake-up delays</button>&lt;/b&gt;, send <button class="word" popovertarget="word-1">p99.9</button>, p50</p>`,
		`<dt><button class="word" popovertarget="word-5">send</button></dt><dd>another interval and <button class="word" popovertarget="word-4">delay</button></dd>`,
		`<div id="word-0" popover="auto"><b>Wake-up delay</b> Late &lt;waking&gt;.</div>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in\n%s", want, page[strings.Index(page, "<body>"):])
		}
	}
	if strings.Contains(page, "Never shown") || strings.Count(page, "<button") != 5 {
		t.Error("a word is explained twice, or without being used")
	}
}
