package drivertest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
)

// askLimit is how long a run gives a system to report a subscription's backlog.
const askLimit = 500 * time.Millisecond

// backlogChecks test the backlog of a subscription.
func backlogChecks() []check {
	return []check{
		{
			name: "BacklogCounts", rule: "Backlog returns how many messages the subscription's consumers have not accepted yet",
			lacks: lacksConsume, run: backlogCounts,
		},
		{
			name: "BacklogIsAsked", rule: "Each answer of Backlog comes from the system, and is made for this call",
			lacks: func(d driver.Definition) string {
				return lackIf(!d.Capabilities.Consume || d.Capabilities.InProcess, "a consumer side with a connection")
			},
			needs: func(h *Harness) string { return lackIf(h.Stall == nil, "Stall") },
			run:   backlogIsAsked,
		},
	}
}

// backlog asks with the time limit of a run.
func (s *session) backlog(subscription string, destinations ...string) (uint64, error) {
	ctx, cancel := context.WithTimeout(s.ctx, askLimit)
	defer cancel()
	var n uint64
	var err error
	if !within(patience, func() { n, err = s.conn.(driver.Backlogger).Backlog(ctx, subscription, destinations) }) {
		s.fatalf("Backlog has not returned after %v, its context long over", patience)
	}
	return n, err
}

func backlogCounts(e *env) {
	s := e.open()
	if _, can := s.conn.(driver.Backlogger); !can {
		e.fatalf("the Conn of a driver that declares Consume is not a Backlogger")
	}
	s.declare("d")
	entered, let := make(chan struct{}), make(chan struct{})
	var once sync.Once
	release := func() { once.Do(func() { close(let) }) }
	e.cleanup(release)
	var first sync.Once
	r := s.receive(e.spec("s", "d"), func([]driver.Delivery) error {
		first.Do(func() { close(entered) })
		<-let
		return nil
	})
	ms := messages("d", "backlog", 10, 64)
	s.sender("d").send(ms...)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-entered:
	case <-timer.C:
		e.fatalf("none of %d messages was delivered within %v", len(ms), patience)
	}
	// No answer is fine: if the answer comes behind the messages the system cannot give it.
	if n, err := s.backlog("s", "d"); n == 0 && err == nil {
		e.errorf("nothing, while Deliver had not returned from the first of %d messages", len(ms))
	}
	release()
	if !eventually(func() bool { return len(r.texts()) >= len(ms) }) {
		e.fatalf("%d of %d messages were delivered%s", len(r.texts()), len(ms), lost([]*receiver{r}))
	}
	var n uint64
	var err error
	if !eventually(func() bool { n, err = s.backlog("s", "d"); return n == 0 && err == nil }) {
		e.errorf("%d, %v, when Deliver had accepted all", n, err)
	}
}

func backlogIsAsked(e *env) {
	s := e.open()
	if _, can := s.conn.(driver.Backlogger); !can {
		return // that is another check's concern
	}
	s.declare("d")
	x := s.sender("d")
	r := s.receive(e.spec("s", "d"), nil)
	ms := messages("d", "asked", 5, 64)
	x.send(ms...)
	var n uint64
	var err error
	if !eventually(func() bool {
		n, err = s.backlog("s", "d")
		return len(r.texts()) >= len(ms) && n == 0 && err == nil
	}) {
		e.fatalf("of %d messages %d were delivered, and Backlog is %d, %v%s", len(ms), len(r.texts()), n, err, lost([]*receiver{r}))
	}
	resume, err := e.s.h.Stall()
	if err != nil {
		e.fatalf("the harness cannot stall the system: %v", err)
	}
	var once sync.Once
	release := func() { once.Do(resume) }
	e.cleanup(release)
	switch n, err := s.backlog("s", "d"); {
	case err == nil:
		e.errorf("%d, of a system that stood still and could not be asked", n)
	case !errors.Is(err, driver.ErrUnreachable):
		e.errorf("failed with %v, of a system that stood still; want ErrUnreachable", err)
	}
	release()
	if !eventually(func() bool { n, err = s.backlog("s", "d"); return n == 0 && err == nil }) {
		e.errorf("%d, %v, when the system continued", n, err)
	}
}
