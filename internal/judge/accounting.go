package judge

import (
	"errors"
	"fmt"

	"github.com/weirmq/weir/result"
)

// ErrAccounting is wrapped by errors about counts that do not add up. That is a bug in weir, and none of the
// figures may be used.
var ErrAccounting = errors.New("the message accounting does not balance")

// Accounting checks that every message of a result is accounted for exactly once, in the measured window and in
// the whole run. There is no accounting if others sent, unless a later run accounts for this one.
func Accounting(r *result.Result) error {
	if r.Consuming() && !r.Booked() || r.Evidence == nil {
		return nil
	}
	var errs []error
	for _, x := range []struct {
		period string
		m      *result.Messages
	}{{"measured window", &r.Messages}, {"whole run", &r.MessagesAll}} {
		// Scheduled also excludes what a truncated run never came to.
		if err := balance(x.m, 0, r.Evidence.Subscriptions); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", x.period, err))
		}
	}
	if planned := r.Evidence.Planned; planned > 0 && planned != r.MessagesAll.Scheduled {
		errs = append(errs, fmt.Errorf("whole run: %d messages were scheduled; the plan has %d: %w", r.MessagesAll.Scheduled, planned, ErrAccounting))
	}
	return errors.Join(errs...)
}

// balance checks one period. notDue is how many scheduled messages a truncated run never came to. Each of
// the subscriptions should have delivered every confirmed message; 0 if nothing consumed.
func balance(m *result.Messages, notDue uint64, subscriptions int) error {
	var errs []error
	check := func(left uint64, leftSide string, right uint64, rightSide string) {
		if left != right {
			errs = append(errs, fmt.Errorf("%w: %s is %d, %s is %d", ErrAccounting, leftSide, left, rightSide, right))
		}
	}
	check(m.Scheduled, "scheduled", m.Sent+m.Dropped+m.Unsent+notDue, "sent + dropped + unsent + not due")
	check(m.Sent, "sent", m.Confirmed+m.Failed+m.Unconfirmed, "confirmed + failed + unconfirmed")
	check(m.Confirmed*uint64(subscriptions), "confirmed for each subscription",
		m.Delivered+m.Late+m.DeadLettered+m.Corrupted+m.Lost+m.Pending+m.Unknown, "delivered + late + dead-lettered + corrupted + lost + pending + unknown")
	return errors.Join(errs...)
}
