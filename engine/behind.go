package engine

import (
	"slices"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/measure"
)

// subscriptionStatus returns the status of a subscription in this process, without its instants.
func (r *run) subscriptionStatus(sub int) SubscriptionStatus {
	x := SubscriptionStatus{Distinct: r.ledger.Distinct(sub)}
	if m := r.deadReceiver.Load(); m != nil && sub == requests { // a run with dead letters has one subscription
		x.Dead = m.ledger.Distinct(0)
	}
	if r.cfg.Definition.Capabilities.Delivery == driver.AtMostOnce && r.cfg.Consumers == 1 && !r.isReplies(sub) {
		x.Passed = r.ledger.Passed(sub)
	}
	return x
}

// behind sets b to what waits, as known in this process.
func (r *run) behind(b measure.Backlog) measure.Backlog {
	b = b[:0]
	for sub := range r.receivers { // read before confirmed, so that no confirmed message is hidden by a delivery that comes meanwhile
		x := r.subscriptionStatus(sub)
		b = append(b, measure.Behind{Missing: x.Distinct + x.Dead, Passed: x.Passed})
	}
	return missing(b, r.ledger.Confirmations())
}

// Behind returns what waits, given the status of every worker.
func Behind(parts []Status) (b measure.Backlog) {
	var confirmed uint64
	for i := range parts {
		confirmed += parts[i].Confirmed
		for sub, x := range parts[i].Subs {
			if sub == len(b) {
				b = append(b, measure.Behind{})
			}
			b[sub].Missing += x.Distinct + x.Dead
			b[sub].Passed += x.Passed
		}
	}
	return missing(b, confirmed)
}

// missing turns the received counts of each subscription of b into the counts that are still
// missing.
func missing(b measure.Backlog, confirmed uint64) measure.Backlog {
	for sub := range b {
		b[sub].Missing = confirmed - min(confirmed, b[sub].Missing)
	}
	return b
}

// mostPeaks is how many peaks are kept; beyond that, pairs are merged.
const mostPeaks = 4096

// Peaks holds the largest backlog of each second of a run, or of every two, four and so on.
type Peaks struct {
	every int64 // ns
	all   []peak
}

type peak struct {
	at      int64
	backlog measure.Backlog
}

// Note records the backlog at an instant. It does not keep b.
func (p *Peaks) Note(at int64, b measure.Backlog) {
	if p.every == 0 {
		p.every = 1e9
	}
	for max(0, at)/p.every >= mostPeaks {
		for i := 0; i < len(p.all); i += 2 {
			p.all[i/2] = p.all[i]
			if i+1 < len(p.all) && p.all[i+1].backlog.Waiting() > p.all[i].backlog.Waiting() {
				p.all[i/2] = p.all[i+1]
			}
		}
		p.all, p.every = p.all[:(len(p.all)+1)/2], 2*p.every
	}
	i := int(max(0, at) / p.every)
	for len(p.all) <= i {
		p.all = append(p.all, peak{})
	}
	if x := &p.all[i]; x.backlog == nil || b.Waiting() > x.backlog.Waiting() {
		*x = peak{at, slices.Clone(b)}
	}
}

// most returns the largest backlog, without lost messages.
func (p *Peaks) most(lost []*measure.Lost) (most uint64) {
	for i := range p.all {
		most = max(most, p.all[i].backlog.Net(p.all[i].at, lost))
	}
	return most
}

// lost returns the due instants of the messages that each subscription lost; nil for one that has
// not run dry.
func (j *assembly) lost() []*measure.Lost {
	joined := j.ledger
	for _, more := range []*ledger.Joined{j.dead, j.after} {
		if more != nil {
			joined = more
		}
	}
	all := make([]*measure.Lost, len(j.raw.Dry))
	for sub, dry := range j.raw.Dry {
		if !dry || sub >= j.raw.Subscriptions {
			continue
		}
		all[sub] = &measure.Lost{}
		joined.Missed(sub, func(n uint64, due int64) { all[sub].Add(due, n) })
	}
	return all
}
