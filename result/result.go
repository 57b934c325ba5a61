// Package result is the result folder of a run: its types, versioned and with
// the names that docs/formats/result.md fixes, and the code that writes and
// reads its files. It computes no statistics.
package result

import (
	"cmp"
	"math"

	"github.com/weirmq/weir/internal/host"
)

// The schemas that the files name. Within a version fields are added, never
// changed or removed.
const (
	Schema            = "weir.result/v1"
	SchemaIntervals   = "weir.intervals/v1"
	SchemaHGRM        = "weir.hgrm/v1"
	SchemaEnvironment = "weir.environment/v1"
	SchemaEvents      = "weir.events/v1"
	SchemaReport      = "weir.report/v1"
	SchemaHost        = "weir.host/v1"
)

// A Result is result.json: all figures of one run. Names ending in NS are
// nanoseconds, in S seconds, PerS events or bytes per second.
type Result struct {
	Schema      string     `json:"schema"`
	Run         Run        `json:"run"`
	System      System     `json:"system"`
	Verdict     Verdict    `json:"verdict"`
	Messages    Messages   `json:"messages"`     // of the measured window, by due instant (closed loop: by start)
	MessagesAll Messages   `json:"messages_all"` // of the whole run, warm-up included
	Throughput  Throughput `json:"throughput"`
	Latency     Latency    `json:"latency"` // of the measured window
	Intervals   []Interval `json:"intervals"`
	Host        Host       `json:"host"`
	Servers     *Servers   `json:"servers,omitempty"` // absent where weir neither started nor watched the system, or the host does not tell
	Events      int        `json:"events"`            // lines of events.jsonl after its first

	// Resources are what each host did in the measured window, the one on which weir was
	// started first: the sums of lines of host.jsonl. Absent where no host tells, and in
	// results of older versions.
	Resources  []host.Sample `json:"resources,omitempty"`
	Efficiency *Efficiency   `json:"efficiency,omitempty"` // absent without Servers and without a price
	Slowest    []Slowest     `json:"slowest,omitempty"`    // absent in results of older versions

	// Figures are those of the measured window by the names of objectives ("e2e.p99",
	// "sent.rate", "lost"), in ns, per second and messages: the same as above, for readers
	// that want one number. What the samples do not support, or bound from below only, is
	// left out. Nil in results of older versions.
	Figures map[string]float64 `json:"figures,omitempty"`

	// Exit is the exit code that weir run gave the run; absent where that is 0, and in
	// results of older versions.
	Exit *Exit `json:"exit,omitempty"`

	// Subscriptions are the parts of what Messages and MessagesAll sum up, where
	// there are several.
	Subscriptions []Subscription `json:"subscriptions,omitempty"`

	// Streams are what a run in mode produce sent, by stream number, so that a later run can say
	// what became of it (consume.of). Absent where it was more than MostStreams streams and spans.
	Streams []Stream `json:"streams,omitempty"`

	// Stages are those of the scenario's profile, in order, as far as the run came; absent
	// where the rate is the same throughout, or where not all of one is known.
	Stages []Stage `json:"stages,omitempty"`

	Faults []Fault `json:"faults,omitempty"` // what was done to the servers, in order of time; absent without any

	Pause *Pause `json:"pause,omitempty"` // of the consumers; absent without one
	Churn *Churn `json:"churn,omitempty"` // consumers that closed and opened again on purpose; absent without

	OfRun *OfRun `json:"of_run,omitempty"` // what other runs of weir sent, in mode consume; absent where nothing came of them

	Network *Network `json:"network,omitempty"` // between clients and servers, where weir made it

	Evidence *Evidence `json:"evidence,omitempty"` // what else the verdict rests on; nil in results of older versions

	// Of a run by a fleet; absent where one process did it.
	Agents []Agent     `json:"agents,omitempty"`
	Clock  *FleetClock `json:"clock,omitempty"`
}

// WindowFrom is where the measured window begins, in ns since the epoch. Of an older
// result it is known to the second only: as the first second of that phase.
func (r *Result) WindowFrom() int64 {
	if w := r.Run.WarmUpS; w != nil {
		return int64(math.Round(*w * 1e9))
	}
	for i := range r.Intervals {
		if r.Intervals[i].Phase == "measure" {
			return int64(r.Intervals[i].TS * 1e9)
		}
	}
	return 0
}

// An Exit is why weir run ended with another exit code than 0 for a run.
type Exit struct {
	Code int    `json:"code"`
	Why  string `json:"why"` // as the last line on the terminal had it
}

// A Run says which run it was.
type Run struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	StartedAt   string   `json:"started_at"` // RFC 3339, UTC, ns
	Epoch       Epoch    `json:"epoch"`
	WarmUpS     *float64 `json:"warmup_s,omitempty"`  // length of the warm-up, from the epoch to the measured window; nil where the run ended before, and in results of older versions
	MeasureS    float64  `json:"measure_s"`           // length of the measured window, as far as the run came
	HorizonS    float64  `json:"horizon_s,omitempty"` // what comes less often than so many seconds may be missing from the figures and their intervals; 0: not known
	Weir        string   `json:"weir"`                // version, and which build where that does not name the source
	Interrupted bool     `json:"interrupted"`
	Seed        uint64   `json:"seed"`
	Loop        string   `json:"loop"`             // LoopOpen or LoopClosed
	Series      string   `json:"series,omitempty"` // the scenario's name where this is one of several repeats of it
	Repeat      int      `json:"repeat,omitempty"` // which of them, from 1
	Place       int      `json:"place,omitempty"`  // of its scenario among those of the series, from 1, as the file has them; absent in a single run
	Mode        string   `json:"mode,omitempty"`   // "stream", "produce", "consume", "request" or "backlog"; absent where an earlier weir wrote it

	Number uint64 `json:"number,omitempty"` // of the run in the stamps of its messages; absent in results of older versions

	Gone *Gone `json:"gone,omitempty"` // the system was gone for good at the end; nil where it was there

	Gaps []Absence `json:"gaps,omitempty"` // when a fleet's run had no coordinator, until another took it up
}

// Scenario returns the name of the scenario that the run is of, without the number of its
// repeat.
func (r *Run) Scenario() string { return cmp.Or(r.Series, r.Name) }

// A Gone says since when, and why, a system counts as gone for good.
type Gone struct {
	FromNS int64  `json:"from_ns"` // the latest confirmation or delivery, since the epoch: until then the seconds of the run describe the system
	Why    string `json:"why"`

	// Answers says that the system was there again, as Why says, and had lost what the run needs.
	Answers bool `json:"answers,omitempty"`
}

// Values of Run.Mode and of Evidence.WhenFull that decide what a verdict looks at.
const (
	ModeProduce  = "produce"
	ModeConsume  = "consume"
	ModeRequest  = "request"
	ModeBacklog  = "backlog"
	WhenFullWait = "wait"
)

// The values of Run.Loop.
const (
	LoopOpen   = "open"
	LoopClosed = "closed"
)

// An Epoch is instant 0 of the run, on the wall and on the host's clock.
type Epoch struct {
	Wall        string `json:"wall"` // RFC 3339, UTC, ns
	MonotonicNS int64  `json:"monotonic_ns"`
	BootID      string `json:"boot_id"`
}

// A System says what was measured.
type System struct {
	Driver string `json:"driver"`
	Client string `json:"client"` // library and version

	ClientPath string `json:"client_path,omitempty"` // what published; empty: the library's own publisher, or an earlier weir wrote this

	// Batch says how batches of more than one message were handed over: BatchNative or
	// BatchOneByOne; empty where there were none, or an earlier weir wrote this.
	Batch string `json:"batch,omitempty"`
	// ConsumeBatch says the same of the batches that consumers acknowledged.
	ConsumeBatch string `json:"consume_batch,omitempty"`

	Server    Server         `json:"server"`
	Guarantee string         `json:"guarantee"` // what a confirmation meant
	Copies    string         `json:"copies"`
	Stable    string         `json:"stable"`
	Weaker    []Weaker       `json:"weaker,omitempty"` // when it meant less, in a run with faults
	Options   map[string]any `json:"options"`          // the driver's, secrets masked

	// Discards say by which of its settings the system drops messages that it confirmed, with their
	// values; empty where it has none or does not say.
	Discards []string `json:"discards,omitempty"`
	// Discarded are the messages dropped in the run by the counts of the system, which are of all
	// its users, or of client libraries. They explain what was lost, and are in no other count.
	Discarded []Discarded `json:"discarded,omitempty"`

	StartedOn *StartedOn `json:"started_on,omitempty"` // nil where weir started it on its own host, or not at all
}

// A Weaker is a time, since the epoch, in which the running system said that a confirmation
// meant less than when it was opened.
type Weaker struct {
	FromNS    int64  `json:"from_ns"`
	ToNS      int64  `json:"to_ns"`
	Guarantee string `json:"guarantee"`
	Copies    string `json:"copies"`
	Stable    string `json:"stable"`
}

// A Discarded is how many messages somebody counted as dropped in the run.
type Discarded struct {
	Counter  string `json:"counter"` // the vendor's name for it
	By       string `json:"by"`      // BySystem or ByClient
	Messages uint64 `json:"messages"`
}

// The values of Discarded.By.
const (
	BySystem = "system"
	ByClient = "client library"
)

// The values of System.Batch and System.ConsumeBatch.
const (
	BatchNative   = "native"     // one call for all of a batch
	BatchOneByOne = "one by one" // one for each of its messages
)

// A StartedOn is the agent of a fleet that started the system on its host.
type StartedOn struct {
	Agent    string    `json:"agent"`
	Hostname string    `json:"hostname"`
	Part     bool      `json:"part"`               // it did a part of the run too: it is one of the agents
	Absences []Absence `json:"absences,omitempty"` // when it was not heard of, where it did none
}

// A Server is what the running system says that it is.
type Server struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Nodes   int    `json:"nodes"`
}

// A Status is what a check, or all of them, says about the figures.
type Status string

// The statuses, from good to bad; NotRun says nothing.
const (
	Valid   Status = "valid"
	Suspect Status = "suspect"
	Invalid Status = "invalid"
	NotRun  Status = "not_run"
)

// A Verdict says how far the figures can be trusted.
type Verdict struct {
	Status Status  `json:"status"` // the worst of the checks that ran
	Checks []Check `json:"checks"`
	SLO    []SLO   `json:"slo"`
}

// A Check is one reason for a verdict.
type Check struct {
	Name   string `json:"name"`
	Status Status `json:"status"`
	Value  string `json:"value"` // what was found
	Limit  string `json:"limit"` // what it was held against
	Why    string `json:"why"`   // sentences: what it means and what to do

	// The same as data: the codes of what was found and why, of docs/method/findings.md, and
	// the values that they name, with those of the limit. Absent in older results.
	Codes  []string       `json:"codes,omitempty"`
	Values map[string]any `json:"values,omitempty"`

	// Inapplicable says of one that did not run that there is nothing for it to
	// judge in such a run: a closed loop cannot be late.
	Inapplicable bool `json:"inapplicable,omitempty"`

	// With names another check with the same finding; "" for a finding of its own. People
	// are told both as one.
	With string `json:"with,omitempty"`
}

// An SLO is one objective and whether it was met.
type SLO struct {
	Expr  string  `json:"expr"`
	Pass  bool    `json:"pass"`  // only where Status is Pass
	Value float64 `json:"value"` // in Unit; 0 where the run has no such figure

	// Since weir began to judge; absent before.
	Status  Outcome  `json:"status,omitempty"`
	AtLeast bool     `json:"at_least,omitempty"` // the true value is not below Value
	Unit    string   `json:"unit,omitempty"`     // "ns", "messages", "per_s" or "ratio"; absent where there is no figure
	Lo      *float64 `json:"lo,omitempty"`       // the 95 % interval of Value that was judged, in Unit
	Hi      *float64 `json:"hi,omitempty"`       // absent where nothing bounds it
	Why     string   `json:"why,omitempty"`      // what it could not be decided for
	NeedsS  float64  `json:"needs_s,omitempty"`  // length of a measured window that would probably decide it; absent where none is known

	Codes  []string       `json:"codes,omitempty"`  // of Why, as in a Check
	Values map[string]any `json:"values,omitempty"` // that they name
}

// An Outcome says whether an objective was met.
type Outcome string

// The outcomes of an objective.
const (
	Pass      Outcome = "pass"      // the whole interval keeps it
	Fail      Outcome = "fail"      // the whole interval misses it
	Undecided Outcome = "undecided" // neither
)

// Outcome returns Status, and for a result without one what Pass says.
func (s *SLO) Outcome() Outcome {
	switch {
	case s.Status != "":
		return s.Status
	case s.Pass:
		return Pass
	}
	return Fail
}

// Messages counts outcomes. The books balance: see judge.Books and METHOD.md.
// From Delivered on they are sums over subscriptions.
type Messages struct {
	Scheduled            uint64 `json:"scheduled"`
	Sent                 uint64 `json:"sent"`
	Dropped              uint64 `json:"dropped"`
	Unsent               uint64 `json:"unsent"`
	Confirmed            uint64 `json:"confirmed"`
	Failed               uint64 `json:"failed"`
	Unconfirmed          uint64 `json:"unconfirmed"`
	FailedDelivered      uint64 `json:"failed_delivered"`
	UnconfirmedDelivered uint64 `json:"unconfirmed_delivered"`
	Delivered            uint64 `json:"delivered"`
	Late                 uint64 `json:"late,omitempty"`
	DeadLettered         uint64 `json:"dead_lettered,omitempty"` // confirmed, not delivered, and received from the dead letters
	Settled              uint64 `json:"settled"`
	Pending              uint64 `json:"pending"`
	Lost                 uint64 `json:"lost"`
	Duplicated           uint64 `json:"duplicated"`
	Redelivered          uint64 `json:"redelivered"`
	Reordered            uint64 `json:"reordered"`
	Corrupted            uint64 `json:"corrupted"`
	Foreign              uint64 `json:"foreign"`
	Unknown              uint64 `json:"unknown,omitempty"`
	Misrouted            uint64 `json:"misrouted,omitempty"`
	Refused              uint64 `json:"refused,omitempty"` // deliveries that consumers returned unsettled on purpose; in no other count
}

// A Stream is what one producer sent to one destination, numbered from 0 as in the stamps,
// warm-up included. What neither failed nor stayed unconfirmed was confirmed.
type Stream struct {
	Destination string `json:"destination"`
	Sent        uint64 `json:"sent"`
	Failed      []Seqs `json:"failed,omitempty"`
	Unconfirmed []Seqs `json:"unconfirmed,omitempty"`
}

// Seqs are the numbers of messages in a row, both ends included.
type Seqs struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

// MostStreams is how many streams and spans of numbers in them a result holds.
const MostStreams = 10_000

// An OfRun counts what a run in mode consume received of messages that other runs of weir
// sent. Their stamps tell which run it was, and whether a message arrived as it was sent.
type OfRun struct {
	Booked bool `json:"booked,omitempty"` // the run was named (consume.of): Messages and MessagesAll say what became of what it sent

	Number    uint64 `json:"number,omitempty"`  // run.number of the run that sent all of them; absent where several did
	Several   bool   `json:"several,omitempty"` // more than one run sent them
	Received  uint64 `json:"received"`          // deliveries, duplicates among them
	Corrupted uint64 `json:"corrupted"`         // of these, with a damaged body
}

// A Subscription is what one of several subscriptions got. In mode request, where
// weir sends the replies, they are the second.
type Subscription struct {
	Name        string   `json:"name"`         // "requests" and "replies", or "s0" and so on
	Messages    Received `json:"messages"`     // of the measured window
	MessagesAll Received `json:"messages_all"` // of the whole run
}

// Received counts what became of confirmed messages at one subscription; the
// words are those of Messages.
type Received struct {
	Delivered   uint64 `json:"delivered"`
	Late        uint64 `json:"late,omitempty"`
	Pending     uint64 `json:"pending"`
	Lost        uint64 `json:"lost"`
	Duplicated  uint64 `json:"duplicated"`
	Redelivered uint64 `json:"redelivered"`
	Reordered   uint64 `json:"reordered"`
	Corrupted   uint64 `json:"corrupted"`
	Foreign     uint64 `json:"foreign"`
	Unknown     uint64 `json:"unknown,omitempty"`
	Misrouted   uint64 `json:"misrouted,omitempty"`
}

// Throughput is the rates of the measured window: events with their own instant in it,
// per second.
type Throughput struct {
	OfferedPerS       float64  `json:"offered_per_s"`
	SentPerS          float64  `json:"sent_per_s"`
	ConfirmedPerS     float64  `json:"confirmed_per_s"`
	ReceivedPerS      *float64 `json:"received_per_s"` // nil where it is not known: all came at one instant
	SentBytesPerS     float64  `json:"sent_bytes_per_s"`
	ReceivedBytesPerS *float64 `json:"received_bytes_per_s"` // likewise

	SendS    float64 `json:"send_s,omitempty"`    // length of the window of what is offered, sent and confirmed; absent where nothing is sent, and in results of an earlier weir
	ReceiveS float64 `json:"receive_s,omitempty"` // and of that of what is received, which may be another; absent where it has no length
}

// Latency holds the distributions; one without any sample is nil and absent
// from the file.
type Latency struct {
	Send   Send  `json:"send"`
	E2E    Pair  `json:"e2e"`
	RTT    Pair  `json:"rtt"`
	Settle *Dist `json:"settle,omitempty"`
}

// Send is what the sender's side knows.
type Send struct {
	Response *Dist `json:"response,omitempty"` // done - due
	OnTime   *Dist `json:"on_time,omitempty"`  // done - due less lateness; nil in results of older versions
	Service  *Dist `json:"service,omitempty"`  // done - start
	Lateness *Dist `json:"lateness,omitempty"` // ready - due
	HeldUp   *Dist `json:"held_up,omitempty"`  // of lateness, what the generator cannot have made
	Blocked  *Dist `json:"blocked,omitempty"`  // start - ready
	Hop      *Dist `json:"hop,omitempty"`      // of service, what the driver's child process did not take; absent where there is none
	Failed   *Dist `json:"failed,omitempty"`   // done - due of what failed
}

// A Pair is a response and the service in it.
type Pair struct {
	Response *Dist `json:"response,omitempty"` // from the due instant
	OnTime   *Dist `json:"on_time,omitempty"`  // the same less lateness; nil in results of older versions
	Service  *Dist `json:"service,omitempty"`  // from the start
}

// A Dist is one distribution. Count, minimum, maximum, mean and standard
// deviation are of the observed samples; percentiles rank over the observed and
// the censored ones, which are known only to be longer than some age.
type Dist struct {
	Count       uint64       `json:"count"`               // observed samples; the lines of intervals.hlog sum to it
	MinNS       *int64       `json:"min_ns"`              // nil where nothing was observed
	MeanNS      *float64     `json:"mean_ns"`             // nil with censored samples
	StdDevNS    *float64     `json:"stddev_ns"`           // nil with censored samples
	MeanDeff    float64      `json:"mean_deff,omitempty"` // so many samples tell as much of the mean as one independent one; 0: not known
	MaxNS       *int64       `json:"max_ns"`              // nil where nothing was observed
	Censored    uint64       `json:"censored"`
	Overflow    uint64       `json:"overflow"` // samples over an hour, observed and censored
	Percentiles []Percentile `json:"percentiles"`

	// ClockBoundNS is how far every value may be off because the clocks of several
	// hosts are compared; absent where one clock is read, or nothing is known.
	ClockBoundNS *int64 `json:"clock_bound_ns,omitempty"`
}

// A Percentile is a point of a distribution with its 95 % interval.
type Percentile struct {
	P         float64 `json:"p"`     // percent; 100 is the maximum of this run, not an estimate
	NS        int64   `json:"ns"`    // with AtLeast: the true value is not below it
	LoNS      *int64  `json:"lo_ns"` // lower end of the interval, nil where it is not known
	HiNS      *int64  `json:"hi_ns"` // upper end, nil where it is not known, or the samples give none
	Supported bool    `json:"supported"`
	AtLeast   bool    `json:"at_least"`
	Deff      float64 `json:"deff,omitempty"` // so many samples tell as much as one independent one: the interval is of those; 0: not known

	Blocks      float64 `json:"blocks,omitempty"`       // as many independent blocks of time the run is worth here; 0: it is in too few parts to tell
	Episodes    int     `json:"episodes,omitempty"`     // separate spells in which more than the usual share lay beyond
	UnboundedBy string  `json:"unbounded_by,omitempty"` // ByDependence or ByEpisodes: why an end is not known; absent where both are, or the samples are too few for one

	UnsupportedBy string `json:"unsupported_by,omitempty"` // ByClock, ByUnknownClock or ByLostAgents; absent where it is supported, or has too few samples
}

// Percentile returns the row of percentile p, or nil; d may be nil.
func (d *Dist) Percentile(p float64) *Percentile {
	if d == nil {
		return nil
	}
	for i := range d.Percentiles {
		if d.Percentiles[i].P == p {
			return &d.Percentiles[i]
		}
	}
	return nil
}

// An Interval is one second or so of the run, by the instant of the events.
type Interval struct {
	TS        float64 `json:"t_s"`   // its start, since the epoch
	Phase     string  `json:"phase"` // "warmup", "measure", "drain"
	Sent      uint64  `json:"sent"`
	Confirmed uint64  `json:"confirmed"`
	Received  uint64  `json:"received"`
	Failed    uint64  `json:"failed,omitempty"`  // absent in results of older versions, and so is Dropped
	Dropped   uint64  `json:"dropped,omitempty"` // messages that found no room
	Backlog   uint64  `json:"backlog"`           // at its end
	Send      Points  `json:"send"`              // response (closed loop: service) of what was confirmed in it
	E2E       Points  `json:"e2e"`               // the same of what was delivered first in it
	RTT       *Points `json:"rtt,omitempty"`     // the same of what was answered first in it; nil where nothing was

	LatestNS *int64 `json:"latest_ns,omitempty"` // greatest lateness of the messages of the measured window that were handed over in it; nil: none were, or an older version wrote this
}

// Points are the percentiles of an interval; nil where too few samples lie
// beyond one.
type Points struct {
	P50NS  *int64 `json:"p50_ns"`
	P99NS  *int64 `json:"p99_ns"`
	P999NS *int64 `json:"p999_ns"`
	MaxNS  *int64 `json:"max_ns"`
}

// A Fault is something that weir did to servers of the system in the run. Instants are
// since the epoch.
type Fault struct {
	Do        string   `json:"do"`                  // "kill", "stop", "restart", "disconnect", "cut", "fill", "slow", "clock" or "partition"
	To        string   `json:"to"`                  // the target, as the scenario has it
	From      string   `json:"from,omitempty"`      // of a disconnect the servers, of a cut the others, as the scenario has them
	ByNS      int64    `json:"by_ns,omitempty"`     // of a slow: how much longer each flush and each read took; of a clock: how far it stepped, below 0 back
	Processes []string `json:"processes,omitempty"` // those it was done to; absent where it could not be done
	DueNS     int64    `json:"due_ns"`
	BeganNS   int64    `json:"began_ns"`            // just before its first signal, or its first change
	UndoneNS  *int64   `json:"undone_ns,omitempty"` // when the servers were started or went on; absent where they did not
	Error     string   `json:"error,omitempty"`     // why it, or what undoes it, failed

	Connections int    `json:"connections,omitempty"` // that a disconnect broke
	Means       string `json:"means,omitempty"`       // what did it, where there are several

	Agents  []string `json:"agents,omitempty"`   // of a fleet, those that did it; absent: this weir did
	BoundNS *int64   `json:"bound_ns,omitempty"` // of those, how far the instants may be off, as their clocks tell; absent: that is not known, or this weir did it

	Effect *FaultEffect `json:"effect,omitempty"` // what followed; absent where it did not happen
	Log    *ServerLog   `json:"log,omitempty"`    // what the logs of servers said until one second after it was undone and messages were confirmed again; absent where weir did not start them on its own host
}

// A FaultEffect is how the run went from a fault until the next, or until the end of the
// measured window.
type FaultEffect struct {
	UntilNS     int64  `json:"until_ns"`
	StepNS      int64  `json:"step_ns,omitempty"`     // how fine its times are
	Unconfirmed *Span  `json:"unconfirmed,omitempty"` // longest time without a confirmation, in whole steps: up to two steps longer; absent where none was more than twice as long as before the first fault
	Undelivered *Span  `json:"undelivered,omitempty"` // the same of deliveries
	Failed      uint64 `json:"failed,omitempty"`      // messages
	Failing     *Span  `json:"failing,omitempty"`     // from the first of them to the last
	WorstNS     *int64 `json:"worst_ns,omitempty"`    // greatest latency of what was delivered in that time, or confirmed where nothing is received
	BandNS      *int64 `json:"band_ns,omitempty"`     // up to which a step's 99th percentile counts as it was: twice the median of those before the first fault, or the greatest of them
	BackNS      *int64 `json:"back_ns,omitempty"`     // how long after the fault the percentile was in the band again and stayed; absent: not before UntilNS, or the band is not known
}

// A Span is from one instant to another, since the epoch.
type Span struct {
	FromNS int64 `json:"from_ns"`
	ToNS   int64 `json:"to_ns"`
}

// An Event is a line of events.jsonl: something that happened in the run.
type Event struct {
	TNS        int64  `json:"t_ns"` // since the epoch
	Kind       string `json:"kind"` // "gc", "hiccup", "fault", "error", ...
	Text       string `json:"text,omitempty"`
	Count      uint64 `json:"count,omitempty"`       // how many like it this line stands for; 0: one
	DurationNS int64  `json:"duration_ns,omitempty"` // where it took time
}

// Consuming reports whether the run only received what others had sent. Older
// versions do not tell the mode: of their results the counts do.
func (r *Result) Consuming() bool {
	perS, _ := r.Throughput.Received()
	return r.Run.Mode == ModeConsume || r.Run.Mode == "" && r.MessagesAll.Scheduled == 0 && perS > 0
}

// Booked reports whether a run that only received says what became of what an earlier run sent.
func (r *Result) Booked() bool { return r.OfRun != nil && r.OfRun.Booked }

// Received returns the rate of deliveries and whether it is known.
func (t Throughput) Received() (perS float64, known bool) {
	if t.ReceivedPerS == nil {
		return 0, false
	}
	return *t.ReceivedPerS, true
}

// Deliveries is how many messages came to consumers, whatever they were: 0 where none did.
func (m *Messages) Deliveries() uint64 {
	return m.Delivered + m.Corrupted + m.Duplicated + m.Foreign + m.Misrouted + m.FailedDelivered + m.UnconfirmedDelivered
}
