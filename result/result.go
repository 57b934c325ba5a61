// Package result writes and reads the result folder of a run: versioned files with the names that
// docs/formats/result.md fixes. It computes no statistics.
package result

import (
	"cmp"
	"math"

	"github.com/weirmq/weir/internal/host"
)

// The schemas named in the files. Within a version fields are added, never changed or removed.
const (
	Schema            = "weir.result/v1"
	SchemaIntervals   = "weir.intervals/v1"
	SchemaHGRM        = "weir.hgrm/v1"
	SchemaEnvironment = "weir.environment/v1"
	SchemaEvents      = "weir.events/v1"
	SchemaReport      = "weir.report/v1"
	SchemaHost        = "weir.host/v1"
	SchemaLive        = "weir.live/v1"
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
	Servers     *Servers   `json:"servers,omitempty"` // absent if weir neither started nor watched the system, or the host does not report usage
	Events      int        `json:"events"`            // lines of events.jsonl after its first

	// Resources are the usage of each host in the measured window, first the host on which weir was
	// started: sums of lines of host.jsonl. Absent if no host reports usage, and in results of
	// older versions.
	Resources  []host.Sample `json:"resources,omitempty"`
	Efficiency *Efficiency   `json:"efficiency,omitempty"` // absent without Servers and without a price
	Slowest    []Slowest     `json:"slowest,omitempty"`    // absent in results of older versions

	// Figures are those of the measured window by the names of objectives ("e2e.p99", "sent.rate",
	// "lost"), in ns, per second and messages: the same values as above, for readers that want a
	// single number. Unsupported figures, and mere lower bounds, are left out. Nil in results of
	// older versions.
	Figures map[string]float64 `json:"figures,omitempty"`

	// Exit is the exit code of weir run; absent if 0, and in results of older versions.
	Exit *Exit `json:"exit,omitempty"`

	// Subscriptions split up Messages and MessagesAll, if there are several subscriptions.
	Subscriptions []Subscription `json:"subscriptions,omitempty"`

	// Streams are what a run in mode produce sent, by stream number, so that a later run can
	// determine what became of it (consume.of). Absent if it exceeds MostStreams streams and spans.
	Streams []Stream `json:"streams,omitempty"`

	// Stages are those of the scenario's profile, in order, as far as the run got; absent if the
	// rate is constant, or if a stage is incomplete.
	Stages []Stage `json:"stages,omitempty"`

	Faults []Fault `json:"faults,omitempty"` // faults injected into servers, in order of time; absent if none

	Pause *Pause `json:"pause,omitempty"` // of the consumers; absent if none
	Churn *Churn `json:"churn,omitempty"` // consumers closed and reopened on purpose; absent if none

	OfRun *OfRun `json:"of_run,omitempty"` // what other runs of weir sent, in mode consume; absent if nothing

	Network *Network `json:"network,omitempty"` // between clients and servers, if weir set it up

	Wire *Wire `json:"wire,omitempty"` // where the time of messages went, by kernel instants; nil if it was not wanted, and in results of older versions

	Evidence *Evidence `json:"evidence,omitempty"` // other input of the verdict; nil in results of older versions

	// For a fleet; absent if one process executed the run.
	Agents []Agent     `json:"agents,omitempty"`
	Clock  *FleetClock `json:"clock,omitempty"`
}

// WindowFrom returns where the measured window begins, in ns since the epoch. In an older result it
// is known only to the second: the first second of that phase.
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

// An Exit is why weir run exited with a code other than 0.
type Exit struct {
	Code int    `json:"code"`
	Why  string `json:"why"` // the last line on the terminal
}

// A Run identifies the run.
type Run struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	StartedAt   string   `json:"started_at"` // RFC 3339, UTC, ns
	Epoch       Epoch    `json:"epoch"`
	WarmUpS     *float64 `json:"warmup_s,omitempty"`  // length of the warm-up, from the epoch to the measured window; nil if the run ended before, and in results of older versions
	MeasureS    float64  `json:"measure_s"`           // actual length of the measured window
	HorizonS    float64  `json:"horizon_s,omitempty"` // rarest stall that this run would have seen: what comes less often than every HorizonS seconds may be missing from the figures and their intervals; 0: unknown
	Weir        string   `json:"weir"`                // version, including the build if it does not name the source
	Interrupted bool     `json:"interrupted"`
	Seed        uint64   `json:"seed"`
	Loop        string   `json:"loop"`             // LoopOpen or LoopClosed
	Series      string   `json:"series,omitempty"` // the scenario's name, if this is one of several repeats of it
	Repeat      int      `json:"repeat,omitempty"` // number of the repeat, from 1
	Place       int      `json:"place,omitempty"`  // position of its scenario in the series, from 1, as in the file; absent in a single run
	Mode        string   `json:"mode,omitempty"`   // "stream", "produce", "consume", "request" or "backlog"; absent in results of older versions

	Number uint64 `json:"number,omitempty"` // of the run in the headers of its messages; absent in results of older versions

	Gone *Gone `json:"gone,omitempty"` // the system was gone for good at the end; nil if it was there

	Gaps []Absence `json:"gaps,omitempty"` // when a fleet's run had no coordinator, until another took over
}

// Scenario returns the name of the run's scenario, without the number of its repeat.
func (r *Run) Scenario() string { return cmp.Or(r.Series, r.Name) }

// A Gone says when, and why, a system counts as gone for good.
type Gone struct {
	FromNS int64  `json:"from_ns"` // the latest confirmation or delivery, since the epoch: until then the run's seconds describe the system
	Why    string `json:"why"`

	// Answers says that the system was back, as Why says, but had lost what the run needs.
	Answers bool `json:"answers,omitempty"`
}

// Values of Run.Mode and of Evidence.WhenFull that affect the verdict.
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

// An Epoch is instant 0 of the run, on the wall clock and on the host's monotonic clock.
type Epoch struct {
	Wall        string `json:"wall"` // RFC 3339, UTC, ns
	MonotonicNS int64  `json:"monotonic_ns"`
	BootID      string `json:"boot_id"`
}

// A System identifies what was measured.
type System struct {
	Driver string `json:"driver"`
	Client string `json:"client"` // library and version

	ClientPath string `json:"client_path,omitempty"` // what published; empty: the library's own publisher, or an older result

	// Batch says how batches of more than one message were handed over: BatchNative or
	// BatchOneByOne; empty without batches, or in an older result.
	Batch string `json:"batch,omitempty"`
	// ConsumeBatch says the same of the batches that consumers acknowledged.
	ConsumeBatch string `json:"consume_batch,omitempty"`

	Server    Server         `json:"server"`
	Guarantee string         `json:"guarantee"` // the meaning of a confirmation
	Copies    string         `json:"copies"`
	Stable    string         `json:"stable"`
	Weaker    []Weaker       `json:"weaker,omitempty"` // periods when it meant less, in a run with faults
	Options   map[string]any `json:"options"`          // of the driver, with secrets masked

	// Discards lists the settings by which the system drops messages that it confirmed, with their
	// values; empty if none, or unknown.
	Discards []string `json:"discards,omitempty"`
	// Discarded are the messages dropped during the run according to the system, which counts for
	// all its users, or to client libraries. They explain losses, and are in no other count.
	Discarded []Discarded `json:"discarded,omitempty"`

	StartedOn *StartedOn `json:"started_on,omitempty"` // nil if weir started it on its own host, or not at all
}

// A Weaker is a period, since the epoch, in which the running system reported that a confirmation
// meant less than when it was opened.
type Weaker struct {
	FromNS    int64  `json:"from_ns"`
	ToNS      int64  `json:"to_ns"`
	Guarantee string `json:"guarantee"`
	Copies    string `json:"copies"`
	Stable    string `json:"stable"`
}

// A Discarded is a count of messages dropped during the run.
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
	BatchNative   = "native"     // one call per batch
	BatchOneByOne = "one by one" // one call per message
)

// A StartedOn is the agent of a fleet that started the system on its host.
type StartedOn struct {
	Agent    string    `json:"agent"`
	Hostname string    `json:"hostname"`
	Part     bool      `json:"part"`               // it also executed a part of the run: it is one of the agents
	Absences []Absence `json:"absences,omitempty"` // when the coordinator did not hear from it, if it executed none
}

// A Server is how the running system identifies itself.
type Server struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Nodes   int    `json:"nodes"`
}

// A Status is the outcome of a check, or of all of them.
type Status string

// The statuses, from good to bad; NotRun is neutral.
const (
	Valid   Status = "valid"
	Suspect Status = "suspect"
	Invalid Status = "invalid"
	NotRun  Status = "not_run"
)

// A Verdict says how far the figures can be trusted.
type Verdict struct {
	Status Status  `json:"status"` // of the run as a whole: the worst of the checks that ran
	Checks []Check `json:"checks"`
	SLO    []SLO   `json:"slo"`

	// Figures has a verdict on each latency percentile with enough samples, and on each rate. Absent in
	// results of older versions.
	Figures []Figure `json:"figures,omitempty"`
}

// A Check is one reason for a verdict.
type Check struct {
	Name   string `json:"name"`
	Status Status `json:"status"`
	Value  string `json:"value"` // what was found
	Limit  string `json:"limit"` // the limit for Value
	Why    string `json:"why"`   // sentences: what it means and what to do

	// The same as data: the codes of finding and cause, from docs/method/findings.md, and the
	// values that they name, with those of the limit. Absent in older results.
	Codes  []string       `json:"codes,omitempty"`
	Values map[string]any `json:"values,omitempty"`

	// Inapplicable says that the check did not run because it makes no sense in such a run: a
	// closed loop cannot be late.
	Inapplicable bool `json:"inapplicable,omitempty"`

	// Noted says that a valid check found something that decides nothing about the run: it names a cause,
	// or marks figures. Absent in older results.
	Noted bool `json:"noted,omitempty"`

	// With names another check with the same finding; "" for a separate finding. People are shown
	// both as one.
	With string `json:"with,omitempty"`
}

// An SLO is one objective with its outcome.
type SLO struct {
	Expr  string  `json:"expr"`
	Pass  bool    `json:"pass"`  // only if Status is Pass
	Value float64 `json:"value"` // in Unit; 0 if the run has no such figure

	// Absent in results of older versions.
	Status  Outcome  `json:"status,omitempty"`
	AtLeast bool     `json:"at_least,omitempty"` // Value is only a lower bound
	Unit    string   `json:"unit,omitempty"`     // "ns", "messages", "per_s" or "ratio"; absent without a figure
	Lo      *float64 `json:"lo,omitempty"`       // the 95 % interval of Value that was judged, in Unit
	Hi      *float64 `json:"hi,omitempty"`       // absent if unbounded
	Why     string   `json:"why,omitempty"`      // why it could not be decided
	NeedsS  float64  `json:"needs_s,omitempty"`  // length of a measured window that would probably decide it; absent if unknown

	Codes  []string       `json:"codes,omitempty"`  // of Why, as in a Check
	Values map[string]any `json:"values,omitempty"` // named by Codes
}

// An Outcome is whether an objective was met.
type Outcome string

// The outcomes of an objective.
const (
	Pass      Outcome = "pass"      // the whole interval meets it
	Fail      Outcome = "fail"      // the whole interval misses it
	Undecided Outcome = "undecided" // neither
)

// Outcome returns Status or, for a result without one, derives it from Pass.
func (s *SLO) Outcome() Outcome {
	switch {
	case s.Status != "":
		return s.Status
	case s.Pass:
		return Pass
	}
	return Fail
}

// Messages counts outcomes, which must balance: see judge.Accounting and METHOD.md. From Delivered on
// they are sums over subscriptions.
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
	DeadLettered         uint64 `json:"dead_lettered,omitempty"` // confirmed, not delivered, and received as dead letters
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
	Refused              uint64 `json:"refused,omitempty"` // deliveries that consumers nacked on purpose; in no other count
}

// A Stream is what one producer sent to one destination, numbered from 0 as in the headers,
// including warm-up. Messages that neither failed nor stayed unconfirmed were confirmed.
type Stream struct {
	Destination string `json:"destination"`
	Sent        uint64 `json:"sent"`
	Failed      []Seqs `json:"failed,omitempty"`
	Unconfirmed []Seqs `json:"unconfirmed,omitempty"`
}

// Seqs is a range of message numbers, inclusive.
type Seqs struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

// MostStreams is the maximum number of streams and number ranges in a result.
const MostStreams = 10_000

// An OfRun counts the messages of other runs of weir that a run in mode consume received. Their
// headers identify the run, and whether a message arrived intact.
type OfRun struct {
	Booked bool `json:"booked,omitempty"` // the run was named (consume.of): Messages and MessagesAll account for what it sent

	Number    uint64 `json:"number,omitempty"`  // run.number of the run that sent all of them; absent if there were several
	Several   bool   `json:"several,omitempty"` // more than one run sent them
	Received  uint64 `json:"received"`          // deliveries, including duplicates
	Corrupted uint64 `json:"corrupted"`         // of these, with a damaged body
}

// A Subscription is what one of several subscriptions received. In mode request, if weir sends the
// replies, they are the second.
type Subscription struct {
	Name        string   `json:"name"`         // "requests" and "replies", or "s0" and so on
	Messages    Received `json:"messages"`     // of the measured window
	MessagesAll Received `json:"messages_all"` // of the whole run
}

// Received counts the fate of confirmed messages at one subscription, with the terms of Messages.
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

// Throughput is the rates of the measured window: events with their own instant in it, per second.
type Throughput struct {
	OfferedPerS       float64  `json:"offered_per_s"`
	SentPerS          float64  `json:"sent_per_s"`
	ConfirmedPerS     float64  `json:"confirmed_per_s"`
	ReceivedPerS      *float64 `json:"received_per_s"` // nil if unknown: all came at one instant
	SentBytesPerS     float64  `json:"sent_bytes_per_s"`
	ReceivedBytesPerS *float64 `json:"received_bytes_per_s"` // likewise

	SendS    float64 `json:"send_s,omitempty"`    // length of the window for offered, sent and confirmed; absent if nothing is sent, and in results of older versions
	ReceiveS float64 `json:"receive_s,omitempty"` // length of the window for received, which may differ; absent if it is zero
}

// Latency holds the distributions; one without samples is nil and absent from the file.
type Latency struct {
	Send   Send  `json:"send"`
	E2E    Pair  `json:"e2e"`
	RTT    Pair  `json:"rtt"`
	Settle *Dist `json:"settle,omitempty"`

	// Hiccups is how late a thread of the generator's host woke that only sleeps; absent if not watched.
	Hiccups *Dist `json:"hiccups,omitempty"`
}

// Send is the sending side.
type Send struct {
	Response *Dist `json:"response,omitempty"` // done - due
	OnTime   *Dist `json:"on_time,omitempty"`  // done - due less lateness; nil in results of older versions
	Service  *Dist `json:"service,omitempty"`  // done - start
	Lateness *Dist `json:"lateness,omitempty"` // ready - due
	HeldUp   *Dist `json:"held_up,omitempty"`  // the part of lateness that the generator cannot have caused
	Blocked  *Dist `json:"blocked,omitempty"`  // start - ready
	Hop      *Dist `json:"hop,omitempty"`      // the part of service outside the driver's child process; absent if there is none
	Failed   *Dist `json:"failed,omitempty"`   // done - due of what failed
}

// A Pair is a response with its service time.
type Pair struct {
	Response *Dist `json:"response,omitempty"` // from the due instant
	OnTime   *Dist `json:"on_time,omitempty"`  // the same less lateness; nil in results of older versions
	Service  *Dist `json:"service,omitempty"`  // from the start
}

// A Dist is one distribution. Count, minimum, maximum, mean and standard deviation are of the
// observed samples; percentiles rank over the observed and the censored ones, which are only known
// to exceed some age.
type Dist struct {
	Count       uint64       `json:"count"`               // observed samples; the lines of intervals.hlog sum to it
	MinNS       *int64       `json:"min_ns"`              // nil if nothing was observed
	MeanNS      *float64     `json:"mean_ns"`             // nil with censored samples
	StdDevNS    *float64     `json:"stddev_ns"`           // nil with censored samples
	MeanDeff    float64      `json:"mean_deff,omitempty"` // design effect of the mean: that many samples are worth one independent sample; 0: unknown
	MaxNS       *int64       `json:"max_ns"`              // nil if nothing was observed
	Censored    uint64       `json:"censored"`
	Overflow    uint64       `json:"overflow"` // samples over an hour, observed and censored
	Percentiles []Percentile `json:"percentiles"`

	// ClockBoundNS is the error of every value due to comparing clocks of several hosts; absent if
	// one clock is read, or if it is unknown.
	ClockBoundNS *int64 `json:"clock_bound_ns,omitempty"`
}

// A Percentile is a point of a distribution with its 95 % interval.
type Percentile struct {
	P         float64 `json:"p"`     // percent; 100 is the maximum of this run, not an estimate
	NS        int64   `json:"ns"`    // with AtLeast: the true value is not below it
	LoNS      *int64  `json:"lo_ns"` // lower end of the interval, nil if unknown
	HiNS      *int64  `json:"hi_ns"` // upper end, nil if unknown, or if the samples give none
	Supported bool    `json:"supported"`
	AtLeast   bool    `json:"at_least"`
	Deff      float64 `json:"deff,omitempty"` // design effect: that many samples are worth one independent sample, which the interval takes into account; 0: unknown

	Blocks      float64 `json:"blocks,omitempty"`       // number of independent blocks of time that the run is worth here; 0: too few to say
	Episodes    int     `json:"episodes,omitempty"`     // separate episodes with more than the usual share beyond
	UnboundedBy string  `json:"unbounded_by,omitempty"` // ByDependence or ByEpisodes: why an end is unknown; absent if both are known, or the samples are too few for one

	UnsupportedBy string `json:"unsupported_by,omitempty"` // ByClock, ByUnknownClock or ByLostAgents; absent if it is supported, or has too few samples

	Stalls *Stalls `json:"stalls,omitempty"` // absent: not known, or not a headline distribution
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

// An Interval is about one second of the run, by the instant of the events.
type Interval struct {
	TS        float64 `json:"t_s"`   // its start, since the epoch
	Phase     string  `json:"phase"` // "warmup", "measure", "drain"
	Sent      uint64  `json:"sent"`
	Confirmed uint64  `json:"confirmed"`
	Received  uint64  `json:"received"`
	Failed    uint64  `json:"failed,omitempty"`  // absent in results of older versions, like Dropped
	Dropped   uint64  `json:"dropped,omitempty"` // messages that found no free slot
	Backlog   uint64  `json:"backlog"`           // at its end
	Send      Points  `json:"send"`              // response (closed loop: service) of what was confirmed in it
	E2E       Points  `json:"e2e"`               // the same for first deliveries in it
	RTT       *Points `json:"rtt,omitempty"`     // the same for first replies in it; nil without any

	LatestNS *int64 `json:"latest_ns,omitempty"` // largest lateness of the messages of the measured window that were handed over in it; nil: none, or an older version
}

// Points are the percentiles of an interval; nil if too few samples lie beyond one.
type Points struct {
	P50NS  *int64 `json:"p50_ns"`
	P99NS  *int64 `json:"p99_ns"`
	P999NS *int64 `json:"p999_ns"`
	MaxNS  *int64 `json:"max_ns"`
}

// A Fault is a fault that weir injected into servers of the system. Instants are since the epoch.
type Fault struct {
	Do        string   `json:"do"`                  // "kill", "stop", "restart", "disconnect", "cut", "fill", "slow", "clock" or "partition"
	To        string   `json:"to"`                  // the target, as in the scenario
	From      string   `json:"from,omitempty"`      // for a disconnect the servers, for a cut the others, as in the scenario
	ByNS      int64    `json:"by_ns,omitempty"`     // for a slow: added delay of each flush and each read; for a clock: size of the step, negative for back
	Processes []string `json:"processes,omitempty"` // affected processes; absent if the fault failed
	DueNS     int64    `json:"due_ns"`
	BeganNS   int64    `json:"began_ns"`            // just before its first signal, or its first change
	UndoneNS  *int64   `json:"undone_ns,omitempty"` // when the servers were started or resumed; absent if they were not
	Error     string   `json:"error,omitempty"`     // why the fault, or undoing it, failed

	Connections int    `json:"connections,omitempty"` // number broken by a disconnect
	Means       string `json:"means,omitempty"`       // the mechanism, if there are several

	Agents  []string `json:"agents,omitempty"`   // in a fleet, those that injected it; absent: this weir did
	BoundNS *int64   `json:"bound_ns,omitempty"` // error bound of the instants on those agents, from their clocks; absent: unknown, or this weir did it

	Effect *FaultEffect `json:"effect,omitempty"` // consequences; absent if the fault did not happen
	Log    *ServerLog   `json:"log,omitempty"`    // server logs until one second after it was undone and messages were confirmed again; absent if weir did not start the servers on its host
}

// A FaultEffect is the effect of a fault until the next fault, or until the end of the measured
// window.
type FaultEffect struct {
	UntilNS     int64  `json:"until_ns"`
	StepNS      int64  `json:"step_ns,omitempty"`     // resolution of its times
	Unconfirmed *Span  `json:"unconfirmed,omitempty"` // longest time without a confirmation, in whole steps: up to two steps too long; absent if none was more than twice as long as before the fault
	Undelivered *Span  `json:"undelivered,omitempty"` // the same of deliveries
	Failed      uint64 `json:"failed,omitempty"`      // messages
	Failing     *Span  `json:"failing,omitempty"`     // from the first to the last of them
	WorstNS     *int64 `json:"worst_ns,omitempty"`    // largest latency of what was delivered in that time, or confirmed if nothing is received
	BandNS      *int64 `json:"band_ns,omitempty"`     // upper limit of a step's 99th percentile that counts as normal: twice the median before the first fault, or the largest before it
	BackNS      *int64 `json:"back_ns,omitempty"`     // how long after the fault the percentile was in the band again and stayed; absent: not before UntilNS, or the band is unknown
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
	Count      uint64 `json:"count,omitempty"`       // number of similar events that this line stands for; 0: one
	DurationNS int64  `json:"duration_ns,omitempty"` // if it took time
}

// Consuming reports whether the run only received what others had sent. Results of older versions
// do not contain the mode, so it is derived from the counts.
func (r *Result) Consuming() bool {
	perS, _ := r.Throughput.Received()
	return r.Run.Mode == ModeConsume || r.Run.Mode == "" && r.MessagesAll.Scheduled == 0 && perS > 0
}

// Booked reports whether a run that only received accounts for what an earlier run sent.
func (r *Result) Booked() bool { return r.OfRun != nil && r.OfRun.Booked }

// Received returns the rate of deliveries and whether it is known.
func (t Throughput) Received() (perS float64, known bool) {
	if t.ReceivedPerS == nil {
		return 0, false
	}
	return *t.ReceivedPerS, true
}

// Deliveries returns how many messages reached consumers, of any kind.
func (m *Messages) Deliveries() uint64 {
	return m.Delivered + m.Corrupted + m.Duplicated + m.Foreign + m.Misrouted + m.FailedDelivered + m.UnconfirmedDelivered
}
