package series

import (
	"context"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/result"
)

// How often a run with faults asks the system what a confirmation means, how long it waits for the answer,
// and how many answers it keeps.
const (
	promiseEvery = time.Second
	promiseLimit = 3 * time.Second // shorter than a fault waits for its own query
	mostPromises = 1000
)

// A reportedConfirms is what a confirmation means, as the system reported at an instant.
type reportedConfirms struct {
	at       int64 // since the epoch, ns
	confirms driver.Confirms
}

// follow asks the system at intervals what a confirmation means, until ctx ends, and returns the answers
// that differ from the previous one. It calls tell with each but the first. No answer is not a change.
func follow(ctx context.Context, ask func(context.Context) (driver.Facts, error), now func() int64, tell func(reportedConfirms)) (all []reportedConfirms) {
	tick := time.NewTicker(promiseEvery)
	defer tick.Stop()
	for len(all) < mostPromises {
		limited, cancel := context.WithTimeout(ctx, promiseLimit)
		f, err := ask(limited)
		cancel()
		if n := len(all); err == nil && (n == 0 || all[n-1].confirms != f.Confirms) {
			all = append(all, reportedConfirms{now(), f.Confirms})
			if n > 0 {
				tell(all[n])
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return all
		}
	}
	return all
}

// weaker returns the times, up to end, in which the system guaranteed less than first.
func weaker(first driver.Confirms, all []reportedConfirms, end int64) (w []result.Weaker) {
	for i, p := range all {
		if first.Weaker(p.confirms) == first {
			continue
		}
		to := max(end, p.at)
		if i+1 < len(all) {
			to = all[i+1].at
		}
		c := p.confirms
		w = append(w, result.Weaker{FromNS: p.at, ToNS: to, Guarantee: c.Guarantee.String(), Copies: c.Copies.String(), Stable: c.Stable.String()})
	}
	return w
}
