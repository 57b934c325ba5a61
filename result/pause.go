package result

// A Pause is a time in which all consumers took nothing while messages were sent, and how
// they caught up. Instants are since the epoch. Of several subscriptions the counts are of
// the one that had received least.
type Pause struct {
	BeganNS   int64  `json:"began_ns"`
	ResumedNS int64  `json:"resumed_ns"`
	Before    uint64 `json:"before"`  // messages waiting that 99 % of the looks before the pause, one in 2 ms, did not exceed
	Waiting   uint64 `json:"waiting"` // at the resume; lost messages and dead letters do not wait

	CaughtUpNS *int64 `json:"caught_up_ns,omitempty"` // the first instant at which no more than Before waited; absent: not while messages were sent
	UntilNS    int64  `json:"until_ns"`               // that, or the end of the plan: the figures below are of the time from the resume until here
	Left       uint64 `json:"left"`                   // waited then
	Received   uint64 `json:"received"`               // first deliveries in that time

	ReceivedPerS *float64 `json:"received_per_s,omitempty"` // catch-up rate; absent where the time has no length
	ShrinksPerS  *float64 `json:"shrinks_per_s,omitempty"`  // by how much the backlog became less; below 0: it grew

	StepNS int64 `json:"step_ns,omitempty"` // how far the looks are apart; absent, in older results: 2 ms

	Old  *Dist `json:"old,omitempty"`  // e2e response of messages that were due before the resume and still waited then; nil: there were none
	Live *Dist `json:"live,omitempty"` // of those that were due after it

	OldLost uint64 `json:"old_lost,omitempty"` // messages that failed or were lost, due before the resume and after the newest one received by then; not in Old
}

// A Churn is consumers that closed on purpose while messages were sent, with others opened
// in their place.
type Churn struct {
	Changes   uint64 `json:"changes"`
	ClosingNS int64  `json:"closing_ns"` // the longest time until one was closed
	OpeningNS int64  `json:"opening_ns"` // the longest from then until the other was ready
	MeanNS    int64  `json:"mean_ns"`    // mean time of a change, both together
}
