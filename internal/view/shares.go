package view

import (
	"fmt"
	"strings"

	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

const mostShares = 8

// shares writes what each of several subscriptions got: always for requests and replies, which are two
// things in one sum; otherwise for subscriptions that miss something.
func (t *single) shares() {
	n := 0
	for _, x := range t.r.Subscriptions {
		all := x.MessagesAll
		missing := all.Lost + all.Pending + all.Unknown + all.Corrupted + all.Misrouted
		if missing == 0 && x.Name != "requests" && x.Name != "replies" {
			continue
		}
		if n++; n > mostShares {
			t.Labelled("", plain("and further subscriptions: see result.json"))
			return
		}
		t.Labelled("", share(x.Name, x.Messages, missing > 0))
	}
}

func share(name string, m result.Received, bad bool) layout.Span {
	s := plain(fmt.Sprintf("of these, %s: delivered %s, lost %s", name, quantity.Count(m.Delivered), quantity.Count(m.Lost)))
	for _, c := range []struct {
		name string
		n    uint64
	}{{"late", m.Late}, {"pending", m.Pending}, {"unknown", m.Unknown}, {"duplicated", m.Duplicated}, {"corrupted", m.Corrupted}, {"misrouted", m.Misrouted}} {
		if c.n > 0 {
			s.Text += ", " + c.name + " " + quantity.Count(c.n)
		}
	}
	if bad {
		s.Tone = layout.Bad
	}
	return s
}

// Broken describes messages with outcomes that must never happen.
func Broken(r *result.Result) string {
	m := &r.MessagesAll
	var all []string
	for _, x := range []struct {
		name string
		n    uint64
	}{{"lost", m.Lost}, {"corrupted", m.Corrupted}, {"misrouted", m.Misrouted}, {"duplicated", m.Duplicated}, {"reordered", m.Reordered}} {
		if x.n > 0 {
			all = append(all, x.name+" "+quantity.Count(x.n))
		}
	}
	if len(all) == 0 {
		return "messages were damaged"
	}
	says := fmt.Sprintf("%s, of %s sent", strings.Join(all, ", "), quantity.Count(m.Sent))
	if why := discarding(r); m.Lost > 0 && why != "" {
		says += "; " + why
	}
	return says
}

// discarding says how many messages the system counted as dropped, and under which settings it drops them;
// "" if neither is known.
func discarding(r *result.Result) string {
	var all []string
	for _, d := range r.System.Discarded {
		if d.Messages > 0 {
			all = append(all, fmt.Sprintf("the %s counts %s discarded (%s)", d.By, quantity.Count(d.Messages), d.Counter))
		}
	}
	if len(r.System.Discards) > 0 {
		all = append(all, "the system is set so that "+strings.Join(r.System.Discards, ", and "))
	}
	return strings.Join(all, "; ")
}
