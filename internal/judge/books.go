package judge

import (
	"errors"
	"fmt"

	"github.com/weirmq/weir/result"
)

// ErrBooks is wrapped by errors about counts that do not add up: weir itself is
// at fault then, and none of its figures may be used.
var ErrBooks = errors.New("the books do not balance")

// Books checks that every message is accounted for, exactly once. notDue is how
// many scheduled messages a run that was cut short never came to. subscriptions
// is how many there were, each of which should have delivered every confirmed
// message; 0 where nothing consumed.
func Books(m *result.Messages, notDue uint64, subscriptions int) error {
	var errs []error
	check := func(left uint64, leftSide string, right uint64, rightSide string) {
		if left != right {
			errs = append(errs, fmt.Errorf("%w: %s is %d, %s is %d", ErrBooks, leftSide, left, rightSide, right))
		}
	}
	check(m.Scheduled, "scheduled", m.Sent+m.Dropped+m.Unsent+notDue, "sent + dropped + unsent + not due")
	check(m.Sent, "sent", m.Confirmed+m.Failed+m.Unconfirmed, "confirmed + failed + unconfirmed")
	check(m.Confirmed*uint64(subscriptions), "confirmed for each subscription",
		m.Delivered+m.Late+m.Corrupted+m.Lost+m.Pending+m.Unknown, "delivered + late + corrupted + lost + pending + unknown")
	return errors.Join(errs...)
}
