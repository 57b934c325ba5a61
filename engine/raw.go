package engine

import (
	"errors"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/ledger"
	"github.com/weirmq/weir/internal/pace"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

// Errors by which a caller decides how a run ended that has no figures.
var (
	// ErrGuarantee: the running system confirms less than the minimum asked for.
	ErrGuarantee = errors.New("guarantee not given")
	// ErrNotReady: a consumer was not ready in time.
	ErrNotReady = errors.New("subscription not ready")
	// ErrContract: the driver broke its contract, such as completing twice.
	ErrContract = errors.New("driver broke its contract")
)

// A WorkerResult is what one process knows of a run when its part of it has ended. Its
// JSON leaves out what has a binary form or comes in other reports, what its reader knows,
// and Gone.
type WorkerResult struct {
	Worker   Worker `json:"-"`
	Epoch    pace.Epoch
	From, To int64 // the measured window as it was here
	Ended    int64 // end of the drain; of a part that is missing, when it was last heard of
	Cut      bool  // the window ended before its time
	Facts    driver.Facts
	Missing  bool // the process vanished, or ended by itself, before the run's end: this is what it had reported

	Interrupted bool   // asked to stop before its end
	Failed      string // why it ended at once: when_full: fail
	Gone        error  `json:"-"` // the system did not answer at the end of the drain, or a subscription was lost for good

	Silence   Silence                     // how the system answered until the end of the drain
	Snapshot  measure.Snapshot            `json:"-"` // everything observed
	Stages    []measure.Stage             // of the plan; nil where they are not told apart
	NotSent   []Group                     // messages dropped or left unsent
	Ledger    ledger.Part                 `json:"-"`
	Late      *ledger.Part                `json:"-"` // what it got after the end of the drain; nil: nothing
	Dead      *ledger.Part                `json:"-"` // what came to the dead letters; nil: nothing
	Listened  time.Duration               // how long it listened on after the end of the drain, as the scenario has it
	FirstNS   int64                       // how long after its due instant the first message was turned to: how late this part began; 0 without any
	Drained   *Drained                    // mode Backlog; nil in others
	Receiving *Drained                    // mode Consume, and a closed loop that sends a count: what consumers received; nil in others
	OfRun     *OfRun                      // mode Consume: what other runs of weir sent; nil: nothing
	Paused    *Paused                     // nil: the consumers were not paused
	Blocks    []Block                     // when the system said that it takes no messages for now
	Discarded []driver.Discarded          // what the run added to each total of driver.Facts, as far as it is known
	Churned   *Churned                    // nil: none closed on purpose
	Refused   [measure.NumPhases]uint64   // deliveries that consumers refused on purpose, by the phase of the message
	Left      *uint64                     // mode Consume where nothing was received: what the system still held for it; nil: it does not tell
	Negative  [measure.NumPhases]Negative // deliveries before they were sent, by the corrected clock

	CorruptedReplies, ForeignReplies, Abandoned uint64                    // as in Raw
	MisroutedReplies                            [measure.NumPhases]uint64 // to another request than their own, of a driver that knows requests

	Lanes       int
	LaneWaits   uint64
	Behind      uint64
	Inside      Inside
	Errors      []ErrorCount
	Hiccups     measure.Counts
	Stalls      []Stall `json:",omitempty"` // the longest of the host, in the order of time
	Slowest     Slowest
	Host        host.Usage
	Calibration pace.Calibration
}

// A Group is N messages of a phase that were never handed over, each at least
// AgeNS old at the end of the drain.
type Group struct {
	Phase measure.Phase
	Stage int `json:",omitempty"` // of the measured window, from 0; 0 where stages are not told apart
	AgeNS int64
	N     uint64
}

// A Negative counts deliveries that, by the clocks of two hosts, came before they
// were sent: WorstNS is by how much at most.
type Negative struct {
	Count   uint64
	WorstNS int64
}

// Raw is what one run gave: counts and histograms, no statistics. Where several
// processes did it, Epoch, Facts and Host are those of the first of Parts.
type Raw struct {
	Workers []*WorkerResult // that it was joined from
	Cut     bool            // the window ended before its time, somewhere

	Epoch    pace.Epoch
	From, To int64 // the measured window as it was; To is earlier than planned in a run cut short
	Ended    int64 // end of the drain
	Closed   bool
	Facts    driver.Facts

	Interrupted bool   // asked to stop before its end
	Failed      string // why the run ended at once: when_full: fail
	Gone        error  // the system did not answer at the end of the drain or took nothing any more, or a subscription was lost for good
	GoneFrom    int64  // with Gone: the latest confirmation or delivery, ns since the epoch

	Snapshot measure.Snapshot                      // everything observed
	Censored [measure.NumKinds][2]measure.Censored // what did not complete, at its age at the end of the drain
	Stages   []StageRecord                         // that the run came to; nil where they are not told apart, or not all of one is known
	All      result.Messages                       // the whole run
	Measured result.Messages                       // due in the window (closed loop: started in it)

	Streams []result.Stream // mode Produce to existing destinations: what was sent, stream by stream; nil: that is not known, or too much

	Shares           []result.Subscription // of All and Measured, of each of several subscriptions; nil for one
	Subscriptions    int                   // that each confirmed message is owed to; the replies' is one of them where the engine echoes
	CorruptedReplies uint64                // to requests of a driver that knows them; the requests have failed
	ForeignReplies   uint64                // likewise, replies that were to no message of the run; also in All.Foreign

	Drained   *Drained                    // mode Backlog; nil in others
	Receiving *Drained                    // mode Consume, and a closed loop that sends a count: what consumers received; nil in others
	Left      *uint64                     // mode Consume where nothing was received: what the system still held for it; nil: it does not tell
	OfRun     *OfRun                      // mode Consume: what other runs of weir sent; nil: nothing
	Paused    *Paused                     // nil: the consumers were not paused
	Blocks    []Block                     // of all parts, when the system said that it takes no messages for now
	Discarded []driver.Discarded          // what the run added to each total of driver.Facts, as far as it is known
	Churned   *Churned                    // nil: none closed on purpose
	Negative  [measure.NumPhases]Negative // deliveries before they were sent, by the corrected clock

	Listened   time.Duration   // how long the consumers listened on after the end of the drain
	Backlog    uint64          // the largest seen, of Lost: see measure.Backlog.Net
	Lost       []*measure.Lost // by subscription; nil of one that has not run dry
	Evicted    uint64          // messages that the ledger closed before all was known of them, because of its bound
	Planned    uint64          // messages of the plan, counted anew; 0: not counted (closed loop, cut short, too many)
	Damaged    uint64          // messages that were not confirmed and arrived corrupted, corrupted replies among them; the corrupted of All are of the confirmed
	Abandoned  uint64          // slots retired because a client kept their bytes
	Dry        []bool          // per subscription: ran dry in the drain, so that what is missing is lost
	DrainNeeds int64           // ns that the pending messages would still have needed at the rate seen in the drain; 0 unknown or none

	Lanes     int
	LaneWaits uint64 // times that a lane's backlog was full, so that it waited
	Behind    uint64 // messages that were due and not sent because lanes were late by their own doing
	Inside    Inside // what threads did while a message waited for Publish to return
	Errors    []ErrorCount
	Hiccups   measure.Counts
	Stalls    []Stall // the longest of all hosts, in the order of time
	Slowest   Slowest
	Host      host.Usage
}

// A StageRecord is what one run gave of a stage of its plan.
type StageRecord struct {
	From, To int64 // ns since the epoch; To is earlier than planned where the run was cut short
	measure.Stage
	Censored [measure.NumKinds]measure.Counts // as in Raw, of messages due in it; of responses and those on time
}

// An ErrorCount is one kind of failure, its longer numbers removed.
type ErrorCount struct {
	Class string // "timeout", "disconnected", "overloaded", "blocked", "too large", "closed", "other"
	Text  string
	Count uint64

	Failed uint64 // of Count, how many failed a message; of the others a consumer told
}
