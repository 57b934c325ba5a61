package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/internal/wire"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
	"github.com/weirmq/weir/schedule"
)

// An assembly is a run being put together from its workers' results.
type assembly struct {
	*shape
	parts  []*WorkerResult
	ledger *ledger.Joined
	dead   *ledger.Joined // including dead letters; nil: there were none
	after  *ledger.Joined // including dead letters and what came after the end of the drain; nil: nothing did
	raw    *Raw
	staged []StageRecord // of the whole plan; nil: stages are not recorded separately, or are incomplete
}

// Assemble combines the results of a run's workers, one per process: every producer and consumer of
// cfg is in exactly one of them. cfg.Worker does not matter. Histograms and counts are summed, the
// message accounting comes from the joined ledgers, and what was never confirmed or delivered is
// censored; nothing is averaged. found is the outcome of the drain for all workers. An error means
// that the results contradict one another; the figures are returned all the same.
//
// For a worker that vanished (WorkerResult.Missing), what it had reported until then counts, its
// messages of unknown fate are unconfirmed, and the rest of its plan is unsent.
func Assemble(cfg Config, parts []*WorkerResult, found Outcome) (*Raw, error) {
	cfg.Worker = Worker{}
	sh, err := newShape(cfg)
	if err != nil {
		return nil, err
	}
	j := &assembly{shape: sh, parts: parts, raw: &Raw{
		Closed: sh.closed(), Workers: parts, Interrupted: found.Interrupted, Subscriptions: sh.subscriptions(),
		Dry: slices.Clone(found.Dry), DrainNeeds: found.Needs,
	}}
	for len(j.raw.Dry) < j.raw.Subscriptions {
		j.raw.Dry = append(j.raw.Dry, false)
	}
	var ledgers []*ledger.Part
	for _, p := range parts {
		if !p.Ledger.Empty() { // empty if the process vanished before it reported
			ledgers = append(ledgers, &p.Ledger)
		}
	}
	if j.ledger, err = ledger.Join(ledgers, j.missing()); err != nil {
		return nil, fmt.Errorf("joining the ledgers of %d parts: %w", len(parts), err)
	}
	before := len(ledgers)
	for _, p := range parts {
		if p.Dead != nil {
			ledgers = append(ledgers, p.Dead)
		}
	}
	if len(ledgers) > before {
		if j.dead, err = ledger.Join(ledgers, j.missing()); err != nil {
			return nil, fmt.Errorf("joining the dead letters of %d parts: %w", len(ledgers)-before, err)
		}
	}
	before = len(ledgers)
	for _, p := range parts {
		if p.Late != nil {
			ledgers = append(ledgers, p.Late)
		}
	}
	if len(ledgers) > before {
		if j.after, err = ledger.Join(ledgers, j.missing()); err != nil {
			return nil, fmt.Errorf("joining what came late to %d parts: %w", len(ledgers)-before, err)
		}
	}
	j.staged = j.stagesOfParts()
	j.raw.Snapshot.Merge(&found.Together)
	for i, p := range parts {
		j.add(p, i == 0)
	}
	alive := slices.ContainsFunc(parts, func(p *WorkerResult) bool { return !p.Missing })
	if !alive {
		j.raw.Ended = max(j.raw.Ended, found.Ended) // no other worker ran on
	}
	j.window()
	if j.raw.Gone == nil {
		j.raw.Gone = j.gone()
	}
	for _, p := range parts {
		if j.raw.Gone != nil {
			j.raw.GoneFrom = max(j.raw.GoneFrom, p.Silence.From)
		}
	}
	if j.raw.Gone != nil || j.deaf() {
		clear(j.raw.Dry) // clear(j.raw.Dry): what an unreachable system still holds, or what reached a vanished process, is not lost
	}
	for sub := range j.raw.Dry {
		if _, _, of, _ := j.book(sub); of.late > 0 {
			j.raw.Dry[sub] = false // late messages came, so what is missing may still come
		}
	}
	j.raw.Evicted = j.ledger.Evicted()
	j.raw.Lost = j.lost()
	j.raw.Backlog = found.Peaks.most(j.raw.Lost)
	if j.raw.Drained != nil {
		lay := slices.Repeat(measure.Backlog{{Missing: j.raw.Drained.Lay}}, j.raw.Subscriptions)
		j.raw.Backlog = max(j.raw.Backlog, lay.Net(j.raw.Ended, j.raw.Lost))
	}
	if j.cfg.Pause.Wanted() {
		j.raw.Paused = pausedOf(parts, j.raw.Lost, j.raw.Subscriptions, j.from+int64(j.cfg.Pause.At))
	}
	j.raw.Errors = tallied(parts)
	if !j.raw.Cut && !j.closed() && j.cfg.Mode != Consume && (alive || j.raw.Ended >= j.to) {
		j.raw.Planned = j.planned()
	}
	j.censor()
	j.count()
	j.raw.Streams = j.streams()
	j.raw.Stages = j.reached()
	return j.raw, nil
}

// missing returns whether a stream's producer was in a process that vanished; nil if none vanished.
func (j *assembly) missing() func(stream uint32) bool {
	var gone map[uint32]bool
	for _, p := range j.parts {
		if !p.Missing {
			continue
		}
		if gone == nil {
			gone = map[uint32]bool{}
		}
		for _, i := range (&assigned{Worker: p.Worker, of: j.cfg.Plan.Producers}).ownProducers() {
			for _, d := range j.plan.DestinationsOf(i) {
				gone[j.plan.Stream(i, d)] = true
			}
		}
	}
	if gone == nil {
		return func(uint32) bool { return false }
	}
	return func(stream uint32) bool { return gone[stream] }
}

// deaf reports whether a process with consumers vanished: what they received after its last report
// is unknown.
func (j *assembly) deaf() bool {
	return slices.ContainsFunc(j.parts, func(p *WorkerResult) bool {
		s := &assigned{Worker: p.Worker, of: j.cfg.Plan.Producers}
		return p.Missing && (j.cfg.Mode == Request || len(s.ownConsumers(j.cfg.Consumers)) > 0)
	})
}

// add adds a worker's own counts.
func (j *assembly) add(p *WorkerResult, first bool) {
	raw := j.raw
	if first {
		raw.Epoch, raw.Facts = p.Epoch, p.Facts
	}
	raw.Ended = max(raw.Ended, p.Ended)
	raw.Interrupted = raw.Interrupted || p.Interrupted
	raw.Cut = raw.Cut || p.Cut && !p.Missing
	raw.Failed = cmp.Or(raw.Failed, p.Failed)
	if raw.Gone == nil || !driver.IsAnswer(raw.Gone) && driver.IsAnswer(p.Gone) { // it answers one of them
		raw.Gone = p.Gone
	}
	raw.Snapshot.Merge(&p.Snapshot)
	if !p.Missing { // only its messages are known
		raw.Pacers += p.Pacers
		raw.PacerWaits += p.PacerWaits
		raw.Behind += p.Behind
		raw.Inside.add(&p.Inside)
	}
	if p.Left != nil && (raw.Left == nil || *raw.Left < *p.Left) { // all ask about the same subscriptions
		raw.Left = p.Left
	}
	if p.OfRun != nil {
		if raw.OfRun == nil {
			raw.OfRun = &OfRun{}
		}
		raw.OfRun.merge(p.OfRun)
	}
	if p.Churned != nil {
		if raw.Churned == nil {
			raw.Churned = &Churned{}
		}
		raw.Churned.merge(p.Churned)
	}
	raw.All.Refused += p.Refused[measure.WarmUp] + p.Refused[measure.Measure]
	raw.Measured.Refused += p.Refused[measure.Measure]
	raw.Abandoned += p.Abandoned
	raw.Listened = max(raw.Listened, p.Listened)
	raw.ForeignReplies += p.ForeignReplies
	raw.CorruptedReplies += p.CorruptedReplies
	raw.Blocks = append(raw.Blocks, p.Blocks...)
	raw.Discarded = addDiscarded(raw.Discarded, p.Discarded)
	raw.Stalls = longest(append(raw.Stalls, p.Stalls...))
	raw.Slowest.merge(&p.Slowest)
	if p.Wire != nil {
		if raw.Wire == nil {
			raw.Wire = &wire.Report{}
		}
		raw.Wire.Merge(p.Wire)
	}
	for i, n := range p.Negative {
		raw.Negative[i].Count += n.Count
		raw.Negative[i].WorstNS = max(raw.Negative[i].WorstNS, n.WorstNS)
	}
	if first {
		raw.Host = p.Host
	}
	for _, x := range []struct{ of, into **Drained }{{&p.Drained, &raw.Drained}, {&p.Receiving, &raw.Receiving}} {
		if *x.of == nil {
			continue
		}
		if *x.into == nil {
			*x.into = &Drained{}
		}
		(*x.into).merge(*x.of)
	}
}

// window computes the actual measured window: the workers' own windows where it was cut short or is
// defined by what was received.
func (j *assembly) window() {
	raw := j.raw
	raw.From, raw.To = j.from, j.to
	consuming := j.cfg.Mode == Consume
	if raw.Cut || consuming || j.closed() && j.cfg.Messages > 0 {
		raw.From, raw.To = never, 0
		for _, p := range j.parts {
			if consuming && p.To == 0 {
				continue // it received nothing
			}
			raw.From, raw.To = min(raw.From, p.From), max(raw.To, p.To)
		}
		if raw.From == never {
			raw.From = 0
		}
	}
	raw.To = max(raw.From, min(raw.To, raw.Ended))
}

// tallied sums the workers' failures by text, most frequent first.
func tallied(parts []*WorkerResult) []ErrorCount {
	var all []ErrorCount
	for _, p := range parts {
		for _, e := range p.Errors {
			if i := slices.IndexFunc(all, func(x ErrorCount) bool { return x.Text == e.Text && x.Class == e.Class }); i >= 0 {
				all[i].Count += e.Count
				all[i].Failed += e.Failed
			} else {
				all = append(all, e)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b ErrorCount) int {
		if n := cmp.Compare(b.Count, a.Count); n != 0 {
			return n
		}
		return cmp.Compare(a.Text, b.Text)
	})
	return all
}

// merge adds what another worker drained.
func (d *Drained) merge(o *Drained) {
	d.Messages += o.Messages
	d.Bytes += o.Bytes
	d.Opening += o.Opening
	d.Lay, d.Full = max(d.Lay, o.Lay), d.Full || o.Full
	if d.Began == 0 || o.Began > 0 && o.Began < d.Began {
		d.Began = o.Began
	}
	if o.Messages > 0 && (d.From == 0 || o.From < d.From) {
		d.From, d.FirstMessages, d.FirstBytes = o.From, o.FirstMessages, o.FirstBytes
	}
	d.To = max(d.To, o.To)
}

// planned counts the plan again, as a check of what the pacers report; 0 if that would take long.
func (j *assembly) planned() (n uint64) {
	whole := schedule.Part{Count: 1}
	switch j.cfg.Plan.Arrival.Kind {
	case schedule.Constant, schedule.Trace:
		return j.plan.Remaining(whole, 0, 0, j.plan.End())
	}
	for range j.plan.Due(whole) {
		if n++; n > mostWalked {
			return 0
		}
	}
	return n
}

// censor adds what did not complete, at its age at the end of the drain (DESIGN 2, Censoring).
func (j *assembly) censor() {
	if j.cfg.Mode == Consume {
		return // it has no latencies
	}
	end := j.raw.Ended
	age := func(from int64) int64 { return max(0, end-from) }
	into := func(k measure.Kind, take func(k measure.Kind)) {
		if j.cfg.Mode == Backlog && (k == measure.E2EResponse || k == measure.E2EService) {
			return // this mode does not have that distribution
		}
		take(k)
		if onTime, ok := k.OnTime(); ok {
			take(onTime) // lateness is negligible next to such an age
		}
	}
	add := func(k measure.Kind, p measure.Phase, stage int, v int64, n uint64) {
		_, response := k.OnTime()
		into(k, func(k measure.Kind) {
			j.raw.Censored[k][p].Add(end-v, v, n)
			if response && p == measure.Measure && stage >= 0 && stage < len(j.staged) {
				j.staged[stage].Censored[k].Add(v, n)
			}
		})
	}
	forgotten := func(k measure.Kind, p measure.Phase, v int64, n uint64) { // whose due instants are known
		into(k, func(k measure.Kind) { j.raw.Censored[k][p].AddUndated(v, n) })
	}
	open := !j.closed()
	response, service := j.confirmKinds()
	j.ledger.Unsuccessful(func(_ ledger.Fate, measured bool, n uint64, due, start int64) {
		p := phaseOf(measured)
		if open {
			add(response, p, j.stageAt(due), age(due), n)
		}
		add(service, p, none, age(start), n)
	})
	if open {
		notSent := func(g Group) {
			add(response, g.Phase, g.Stage, g.AgeNS, g.N)
			for sub := range j.raw.Subscriptions {
				response, _ := j.kindsOf(sub)
				add(response, g.Phase, g.Stage, g.AgeNS, g.N)
			}
		}
		known := j.sentSince()
		for _, p := range j.parts {
			for _, g := range p.NotSent {
				g.AgeNS += end - p.Ended
				notSent(g)
			}
			known = j.unsent(p, known, notSent)
		}
	}
	for sub := range j.raw.Subscriptions {
		response, service := j.kindsOf(sub)
		j.ledger.Undelivered(sub, func(fate ledger.Fate, measured bool, n uint64, due, start int64) {
			p := phaseOf(measured)
			if open {
				add(response, p, j.stageAt(due), age(due), n)
				j.raw.Paused.censor(sub, fate, j.raw.Dry[sub], due, age(due), n)
			}
			add(service, p, none, age(start), n)
		})
		j.ledger.Unknown(sub, func(measured bool, n uint64, atLeast, serviceAtLeast int64) {
			p := phaseOf(measured)
			if open {
				forgotten(response, p, atLeast, n)
				j.staged = nil
			}
			forgotten(service, p, serviceAtLeast, n)
		})
	}
}

// unsent visits what a vanished process had still to send, at its age at the end of the run or just
// less: the part of its plan beyond what it reported. The first of those messages were sent after
// all, as other workers saw: known is how many. It returns what remains of known.
func (j *assembly) unsent(p *WorkerResult, known uint64, visit func(Group)) uint64 {
	if !p.Missing {
		return known
	}
	var counted uint64
	for i := range p.Snapshot.Counters {
		c := &p.Snapshot.Counters[i]
		counted += c.Sent + c.Dropped + c.Unsent
	}
	s := assigned{Worker: p.Worker, of: j.cfg.Plan.Producers}
	j.dueUntil(s.part(), j.raw.Ended, func(due int64, n uint64) {
		for _, sent := range []*uint64{&counted, &known} {
			k := min(n, *sent)
			*sent -= k
			n -= k
		}
		if n > 0 {
			visit(Group{Phase: phaseOf(due >= j.from), AgeNS: j.raw.Ended - due, N: n})
		}
	})
	return known
}

// sentSince returns how many messages vanished processes sent after their last report: the ledgers
// know of more, for example by deliveries.
func (j *assembly) sentSince() uint64 {
	var counted uint64
	for _, p := range j.parts {
		for phase := range p.Snapshot.Counters {
			counted += p.Snapshot.Counters[phase].Sent
		}
	}
	all, _ := j.ledger.Senders()
	return all.Sent - min(all.Sent, counted)
}

func phaseOf(measured bool) measure.Phase {
	if measured {
		return measure.Measure
	}
	return measure.WarmUp
}

// count fills the outcomes of the window and of the whole run.
func (j *assembly) count() {
	raw := j.raw
	var all, measured ledger.Book
	for sub := range raw.Subscriptions {
		a, m, of, ofMeasured := j.book(sub)
		late, lateMeasured := of.late, ofMeasured.late
		raw.All.Late += late
		raw.Measured.Late += lateMeasured
		raw.All.DeadLettered += of.dead
		raw.Measured.DeadLettered += ofMeasured.dead
		if j.isReplies(sub) {
			// Replies arrive at several consumers at once: no system promises their order.
			a.Reordered, m.Reordered = 0, 0
		}
		addBook(&all, &a)
		addBook(&measured, &m)
		if raw.Subscriptions > 1 {
			raw.Shares = append(raw.Shares, result.Subscription{
				Name: j.nameOf(sub), Messages: received(&m, lateMeasured, raw.Dry[sub]), MessagesAll: received(&a, late, raw.Dry[sub]),
			})
		}
		into := func(msgs *result.Messages, b *ledger.Book) {
			if raw.Dry[sub] {
				msgs.Lost += b.Missing
			} else {
				msgs.Pending += b.Missing
			}
		}
		into(&raw.All, &a)
		into(&raw.Measured, &m)
	}
	// Unconfirmed comes from the ledger, the rest from the recorder. The two count independently,
	// so that the message accounting can fail to balance.
	sentAll, sentMeasured := j.ledger.Senders()
	vanished := slices.ContainsFunc(j.parts, func(p *WorkerResult) bool { return p.Missing })
	fill := func(msgs *result.Messages, b, sent *ledger.Book, phases ...measure.Phase) {
		for _, p := range phases {
			c := &raw.Snapshot.Counters[p]
			msgs.Scheduled += c.Scheduled
			msgs.Sent += c.Sent
			msgs.Dropped += c.Dropped
			msgs.Unsent += c.Unsent
			msgs.Confirmed += c.Confirmed
			msgs.Failed += c.Failed
			msgs.Settled += c.Settled
		}
		if vanished || j.cfg.Of != nil {
			// Its counters and its ledger were read one after the other while it ran; use the
			// ledgers for everything. An earlier run has no counters here.
			msgs.Sent, msgs.Confirmed, msgs.Failed = sent.Sent, sent.Confirmed, sent.Failed
		}
		if vanished {
			msgs.Scheduled = j.scheduled(phases)
			msgs.Unsent = msgs.Scheduled - min(msgs.Scheduled, msgs.Sent+msgs.Dropped)
		}
		if j.closed() {
			msgs.Scheduled, msgs.Unsent = msgs.Sent, 0 // a closed loop schedules what it starts
		}
		msgs.Unconfirmed = sent.Unconfirmed
		msgs.Delivered = b.Delivered
		msgs.Unknown = b.Unknown
		msgs.Misrouted = b.Misrouted
		msgs.Corrupted = b.Corrupted
		msgs.Duplicated = b.Duplicated
		msgs.Redelivered = b.Redelivered
		msgs.Reordered = b.Reordered
		msgs.Foreign = b.Foreign
		msgs.FailedDelivered = b.FailedDelivered
		msgs.UnconfirmedDelivered = b.UnconfirmedDelivered
	}
	raw.Damaged = all.CorruptedUnconfirmed + raw.CorruptedReplies
	all.Foreign += raw.ForeignReplies
	for _, p := range j.parts {
		all.Misrouted += p.MisroutedReplies[measure.WarmUp] + p.MisroutedReplies[measure.Measure]
		measured.Misrouted += p.MisroutedReplies[measure.Measure]
	}
	fill(&raw.All, &all, &sentAll, measure.WarmUp, measure.Measure)
	fill(&raw.Measured, &measured, &sentMeasured, measure.Measure)
}

// scheduled counts the messages that came due in a run. For processes that vanished it counts their
// plan until the end.
func (j *assembly) scheduled(phases []measure.Phase) (n uint64) {
	end := j.raw.Ended
	if j.raw.Cut {
		end = j.raw.To
	}
	for _, p := range j.parts {
		if !p.Missing {
			for _, phase := range phases {
				n += p.Snapshot.Counters[phase].Scheduled
			}
			continue
		}
		s := assigned{Worker: p.Worker, of: j.cfg.Plan.Producers}
		j.dueUntil(s.part(), end, func(due int64, k uint64) {
			if slices.Contains(phases, phaseOf(due >= j.from)) {
				n += k
			}
		})
	}
	return n
}

// received converts one subscription's book.
func received(b *ledger.Book, late uint64, dry bool) result.Received {
	x := result.Received{
		Delivered: b.Delivered, Late: late, Pending: b.Missing, Duplicated: b.Duplicated, Redelivered: b.Redelivered,
		Reordered: b.Reordered, Corrupted: b.Corrupted, Foreign: b.Foreign, Unknown: b.Unknown, Misrouted: b.Misrouted,
	}
	if dry {
		x.Pending, x.Lost = 0, b.Missing
	}
	return x
}

// addBook sums the per-subscription counts; the sender's side is the same in each.
func addBook(sum, b *ledger.Book) {
	sum.Delivered += b.Delivered
	sum.Corrupted += b.Corrupted
	sum.Duplicated += b.Duplicated
	sum.Redelivered += b.Redelivered
	sum.Reordered += b.Reordered
	sum.Foreign += b.Foreign
	sum.Unknown += b.Unknown
	sum.Misrouted += b.Misrouted
	sum.FailedDelivered += b.FailedDelivered
	sum.UnconfirmedDelivered += b.UnconfirmedDelivered
	sum.CorruptedUnconfirmed += b.CorruptedUnconfirmed
}
