package drivertest

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/weirmq/weir/driver"
)

// An env is the environment of one check.
type env struct {
	*recorder
	s    *suite
	caps driver.Capabilities
	ctx  context.Context // ends with the check
}

func newEnv(r *recorder, s *suite) *env {
	ctx, cancel := context.WithCancel(context.Background())
	r.cleanup(cancel)
	return &env{recorder: r, s: s, caps: s.def.Capabilities, ctx: ctx}
}

// eventually reports whether ok became true within the suite's patience.
func eventually(ok func() bool) bool {
	end := time.Now().Add(patience)
	for pause := time.Millisecond; ; pause = min(pause*5/4, 100*time.Millisecond) {
		if ok() {
			return true
		}
		if time.Now().After(end) {
			return ok()
		}
		time.Sleep(pause)
	}
}

// nap is the unit of a limit.
const nap = 50 * time.Millisecond

// within runs f, which may hang, and reports whether it returned in time. Time is counted in naps,
// not read from a clock: while a host does not let this process run no driver is late.
func within(limit time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	// The driver's own limit, which is as long, comes first.
	for range (limit + time.Second) / nap {
		select {
		case <-done:
			return true
		case <-time.After(nap):
		}
	}
	return false
}

// call makes one call into the driver that takes a context, within the limits, and returns its
// error. A call that hangs ends the check.
func (e *env) call(what string, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(e.ctx, patience)
	defer cancel()
	var err error
	if !within(patience, func() { err = f(ctx) }) {
		e.fatalf("%s has not returned after %v, its context long over", what, patience)
	}
	return err
}

// must is call for what has to succeed.
func (e *env) must(what string, f func(ctx context.Context) error) {
	if err := e.call(what, f); err != nil {
		e.fatalf("%s: %s", what, e.s.once(err.Error()))
	}
}

// once returns a text in full the first time, so that the author of a driver that cannot open yet,
// and fails most checks for that reason, reads it once. A text of one line is returned each time.
func (s *suite) once(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(text) < 120 {
		return text
	}
	if s.reported[text] {
		return "the same error as in an earlier check"
	}
	s.reported[text] = true
	return text
}

// later makes a call in the cleanup.
func (e *env) later(f func(ctx context.Context) error) {
	e.cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		within(patience, func() { _ = f(ctx) })
	})
}

// config is suite.config; an error ends the check.
func (e *env) config(more map[string][]string) driver.Config {
	cfg, err := e.s.config(more)
	if err != nil {
		e.fatalf("set an option of the harness: %v", err)
	}
	return cfg
}

func newRun() driver.Run {
	return driver.Run{ID: fmt.Sprintf("ct-%016x", rand.Uint64()), Log: slog.New(slog.DiscardHandler)}
}

// A session is one open connection, for a run of its own.
type session struct {
	*env
	conn     driver.Conn
	run      string   // its id
	back     sync.Map // subscriptions of consumers that have reconnected
	declared []driver.Destination
}

// open connects. The connection is closed, and what was declared deleted, when
// the check ends.
func (e *env) open() *session { return e.openFor(newRun()) }

func (e *env) openFor(run driver.Run) *session {
	s := &session{env: e, run: run.ID}
	run.Back = func(subscription string) { s.back.Store(subscription, true) }
	cfg := e.config(nil)
	// OpenClose checks that the context may end before the connection does.
	ctx, cancel := context.WithTimeout(e.ctx, patience)
	e.cleanup(cancel)
	e.must("open", func(context.Context) (err error) {
		s.conn, err = driver.Open(ctx, e.s.def, cfg, run)
		return err
	})
	e.later(s.conn.Close)
	e.later(func(ctx context.Context) error { return s.conn.Delete(ctx, s.declared...) })
	return s
}

// plain returns a destination with one partition and one replica.
func plain(name string) driver.Destination {
	return driver.Destination{Name: name, Partitions: 1, Replicas: 1}
}

// declare declares plain destinations.
func (s *session) declare(names ...string) {
	for _, n := range names {
		s.declareAs(plain(n))
	}
}

func (s *session) declareAs(d driver.Destination) {
	s.declared = append(s.declared, d)
	s.must("declare "+d.Name, func(ctx context.Context) error { return s.conn.Declare(ctx, d) })
}

// messages returns n messages to destination. Their payloads are text of at least size bytes, begin
// with label, and differ.
func messages(destination, label string, n, size int) []*driver.Message {
	ms := make([]*driver.Message, n)
	for i := range ms {
		text := fmt.Sprintf("%s-%06d", label, i)
		text += strings.Repeat(".", max(0, size-len(text)))
		ms[i] = &driver.Message{Destination: destination, Payload: []byte(text)}
	}
	return ms
}

// payloads returns the payloads of ms, in order.
func payloads(ms []*driver.Message) []string {
	ps := make([]string, len(ms))
	for i, m := range ms {
		ps[i] = string(m.Payload)
	}
	return ps
}

// quiet waits for what should not arrive.
func (e *env) quiet() { time.Sleep(e.s.h.Quiet) }

// expect waits until the receivers together have as many messages as want, and a little longer, and
// reports differences. It returns whether there are none.
func (e *env) expect(who string, want []string, rs ...*receiver) bool {
	total := func() int {
		n := 0
		for _, r := range rs {
			n += len(r.texts())
		}
		return n
	}
	eventually(func() bool { return total() >= len(want) })
	e.quiet()
	var got []string
	for _, r := range rs {
		got = append(got, r.texts()...)
	}
	missing, extra := difference(want, got)
	if len(missing)+len(extra) == 0 {
		return true
	}
	e.errorf("%s: of %d messages %d are missing%s, %d came that should not have, or twice%s%s",
		who, len(want), len(missing), sample(missing), len(extra), sample(extra), lost(rs))
	return false
}

// lost describes consumers that ended or reported faults.
func lost(rs []*receiver) string {
	var b strings.Builder
	for _, r := range rs {
		r.mu.Lock()
		if r.err != nil {
			fmt.Fprintf(&b, "; Run returned: %v", r.err)
		}
		for _, err := range r.faults {
			fmt.Fprintf(&b, "; fault: %v", err)
		}
		r.mu.Unlock()
	}
	return b.String()
}

// difference returns what is in want and not in got, and the reverse, as
// multisets.
func difference(want, got []string) (missing, extra []string) {
	count := map[string]int{}
	for _, w := range want {
		count[w]++
	}
	for _, g := range got {
		if count[g] == 0 {
			extra = append(extra, g)
			continue
		}
		count[g]--
	}
	for _, w := range want {
		if count[w] > 0 {
			count[w]--
			missing = append(missing, w)
		}
	}
	return missing, extra
}

// sample shows the first of some payloads.
func sample(ps []string) string {
	if len(ps) == 0 {
		return ""
	}
	p := ps[0]
	if len(p) > 40 {
		return fmt.Sprintf(" (first: %q, %d bytes)", p[:40], len(p))
	}
	return fmt.Sprintf(" (first: %q)", p)
}
