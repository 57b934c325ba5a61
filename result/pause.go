package result

// A Pause is a period in which all consumers received nothing while messages were sent, and how
// they caught up. Instants are since the epoch. With several subscriptions the counts are of the
// one that had received least.
type Pause struct {
	BeganNS   int64  `json:"began_ns"`
	ResumedNS int64  `json:"resumed_ns"`
	Before    uint64 `json:"before"`  // messages waiting in 99 % of the samples before the pause, one every 2 ms, at most
	Waiting   uint64 `json:"waiting"` // at the resume; lost messages and dead letters do not wait

	CaughtUpNS *int64 `json:"caught_up_ns,omitempty"` // the first instant at which no more than Before waited; absent: not while messages were sent
	UntilNS    int64  `json:"until_ns"`               // CaughtUpNS, or the end of the plan: the figures below cover the time from the resume until here
	Left       uint64 `json:"left"`                   // waiting at UntilNS
	Received   uint64 `json:"received"`               // first deliveries in that time

	ReceivedPerS *float64 `json:"received_per_s,omitempty"` // catch-up rate; absent if that time is zero
	ShrinksPerS  *float64 `json:"shrinks_per_s,omitempty"`  // rate at which the backlog shrank; below 0: it grew

	StepNS int64 `json:"step_ns,omitempty"` // interval of the samples; absent, in older results: 2 ms

	Old  *Dist `json:"old,omitempty"`  // e2e response of messages that were due before the resume and still waited then; nil: none
	Live *Dist `json:"live,omitempty"` // of messages due after it

	OldLost uint64 `json:"old_lost,omitempty"` // messages that failed or were lost, due before the resume and after the newest one received by then; not in Old
}

// A Churn summarizes consumers that were closed and replaced while messages were sent.
type Churn struct {
	Changes   uint64 `json:"changes"`
	ClosingNS int64  `json:"closing_ns"` // the longest time until one was closed
	OpeningNS int64  `json:"opening_ns"` // the longest from then until the replacement was ready
	MeanNS    int64  `json:"mean_ns"`    // mean time of a change, both together
}
