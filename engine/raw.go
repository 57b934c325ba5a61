package engine

import (
	"errors"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/internal/wire"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// Errors that tell a caller why a run ended without figures.
var (
	// ErrGuarantee: the running system confirms less than the required minimum.
	ErrGuarantee = errors.New("guarantee not given")
	// ErrNotReady: a consumer was not ready in time.
	ErrNotReady = errors.New("subscription not ready")
	// ErrContract: the driver broke its contract, such as completing twice.
	ErrContract = errors.New("driver broke its contract")
)

// A WorkerResult is what one worker knows of a run when it has ended. Its JSON leaves out Gone, and
// whatever has a binary form, is reported separately, or is known to its reader.
type WorkerResult struct {
	Worker   Worker `json:"-"`
	Epoch    pace.Epoch
	From, To int64 // the measured window as it was here
	Ended    int64 // end of the drain; of a missing worker, when it was last heard of
	Cut      bool  // the window ended early
	Facts    driver.Facts
	Missing  bool // the process vanished, or exited, before the run's end: this is what it had reported

	Interrupted bool   // asked to stop before its end
	Failed      string // why it ended at once: when_full: fail
	Gone        error  `json:"-"` // the system did not answer at the end of the drain, or a subscription was lost for good

	Silence   Silence                     // how the system answered until the end of the drain
	Snapshot  measure.Snapshot            `json:"-"` // everything observed; of an agent, without Outcome.Together
	Stages    []measure.Stage             // of the plan; nil: not recorded separately
	NotSent   []Group                     // messages dropped or left unsent
	Ledger    ledger.Part                 `json:"-"`
	Late      *ledger.Part                `json:"-"` // received after the end of the drain; nil: nothing
	Dead      *ledger.Part                `json:"-"` // dead letters received; nil: none
	Listened  time.Duration               // how long it kept listening after the end of the drain, as the scenario says
	FirstNS   int64                       // how long after its due instant the pacer turned to the first message: how late this worker began; 0 without any
	Drained   *Drained                    // mode Backlog; nil in others
	Receiving *Drained                    // mode Consume, and a closed loop that sends a count: what consumers received; nil in others
	OfRun     *OfRun                      // mode Consume: what other runs of weir sent; nil: nothing
	Paused    *Paused                     // nil: the consumers were not paused
	Blocks    []Block                     // when the system said that it accepts no messages
	Discarded []driver.Discarded          // what the run added to each total of driver.Facts, as far as known
	Churned   *Churned                    // nil: no consumer closed on purpose
	Refused   [measure.NumPhases]uint64   // deliveries that consumers refused on purpose, by the phase of the message
	Left      *uint64                     // mode Consume where nothing was received: what the system still held for it; nil: unknown
	Negative  [measure.NumPhases]Negative // deliveries before they were sent, by the corrected clock

	CorruptedReplies, ForeignReplies, Abandoned uint64                    // as in Raw
	MisroutedReplies                            [measure.NumPhases]uint64 // replies to other requests, of a driver with native requests

	Pacers      int
	PacerWaits  uint64
	Behind      uint64
	Inside      Inside
	Errors      []ErrorCount
	Stalls      []Stall `json:",omitempty"` // the longest of the host, in order of time
	Slowest     Slowest
	Wire        *wire.Report `json:",omitempty"` // nil: kernel instants were not wanted
	Host        host.Usage
	Calibration pace.Calibration
}

// A Group is N messages of a phase that were never handed over, each at least AgeNS old at the end
// of the drain.
type Group struct {
	Phase measure.Phase
	Stage int `json:",omitempty"` // of the measured window, from 0; 0 if stages are not recorded separately
	AgeNS int64
	N     uint64
}

// A Negative counts deliveries that, by the clocks of two hosts, came before they were sent;
// WorstNS is the largest such difference.
type Negative struct {
	Count   uint64
	WorstNS int64
}

// Raw is the raw result of one run: counts and histograms, no statistics. With several workers,
// Epoch, Facts and Host are those of the first.
type Raw struct {
	Workers []*WorkerResult // it was combined from
	Cut     bool            // the window ended early in some worker

	Epoch    pace.Epoch
	From, To int64 // the measured window as it was; To is earlier than planned if the run was cut short
	Ended    int64 // end of the drain
	Closed   bool
	Facts    driver.Facts

	Interrupted bool   // asked to stop before its end
	Failed      string // why the run ended at once: when_full: fail
	Gone        error  // the system did not answer at the end of the drain or accepted nothing any more, or a subscription was lost for good
	GoneFrom    int64  // with Gone: the latest confirmation or delivery, ns since the epoch

	Snapshot measure.Snapshot                      // everything observed
	Censored [measure.NumKinds][2]measure.Censored // what did not complete, at its age at the end of the drain
	Stages   []StageRecord                         // stages that the run reached; nil: not recorded separately, or incomplete
	All      result.Messages                       // the whole run
	Measured result.Messages                       // due in the window (closed loop: started in it)

	Streams []result.Stream // mode Produce to existing destinations: what was sent, by stream; nil: unknown, or too much

	Shares           []result.Subscription // of All and Measured, for each of several subscriptions; nil for one
	Subscriptions    int                   // that each confirmed message must reach, including that of replies if the engine echoes
	CorruptedReplies uint64                // to native requests of a driver; the requests have failed
	ForeignReplies   uint64                // to native requests, replies to no message of the run; also in All.Foreign

	Drained   *Drained                    // mode Backlog; nil in others
	Receiving *Drained                    // mode Consume, and a closed loop that sends a count: what consumers received; nil in others
	Left      *uint64                     // mode Consume where nothing was received: what the system still held for it; nil: unknown
	OfRun     *OfRun                      // mode Consume: what other runs of weir sent; nil: nothing
	Paused    *Paused                     // nil: the consumers were not paused
	Blocks    []Block                     // of all workers, when the system said that it accepts no messages
	Discarded []driver.Discarded          // what the run added to each total of driver.Facts, as far as known
	Churned   *Churned                    // nil: no consumer closed on purpose
	Negative  [measure.NumPhases]Negative // deliveries before they were sent, by the corrected clock

	Listened   time.Duration   // how long the consumers kept listening after the end of the drain
	Backlog    uint64          // the largest seen, without Lost: see measure.Backlog.Net
	Lost       []*measure.Lost // by subscription; nil for one that has not run dry
	Evicted    uint64          // messages that the ledger closed with unknown fate, because of its bound
	Planned    uint64          // messages of the plan, counted again; 0: not counted (closed loop, cut short, too many)
	Damaged    uint64          // messages that were not confirmed and arrived corrupted, corrupted replies included; All.Corrupted counts confirmed ones
	Abandoned  uint64          // slots retired because a client kept their bytes
	Dry        []bool          // by subscription: ran dry in the drain, so what is missing is lost
	DrainNeeds int64           // ns that the pending messages would still have needed at the drain's rate; 0 unknown or none

	Pacers     int
	PacerWaits uint64 // times that a pacer waited because its backlog was full
	Behind     uint64 // messages that were due and not sent because pacers were late by their own fault
	Inside     Inside // what threads did while a message waited for Publish to return
	Errors     []ErrorCount
	Stalls     []Stall // the longest of all hosts, in order of time
	Slowest    Slowest
	Wire       *wire.Report // of all workers; nil: kernel instants were not wanted
	Host       host.Usage
}

// A StageRecord is the result of one stage of a run's plan.
type StageRecord struct {
	From, To int64 // ns since the epoch; To is earlier than planned if the run was cut short
	measure.Stage
	Censored [measure.NumKinds]measure.Counts // as in Raw, of messages due in it; of responses and those on time
}

// An ErrorCount is one kind of failure, with longer numbers removed from its text.
type ErrorCount struct {
	Class string // "timeout", "disconnected", "overloaded", "blocked", "too large", "closed", "other"
	Text  string
	Count uint64

	Failed uint64 // how many of Count failed a message; consumers reported the others
}
