package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/fleet/wire"
	"github.com/weirmq/weir/internal/offset"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
	"github.com/weirmq/weir/schedule"
)

// A form is a message's: a value to decode into, and how large it may be.
type form struct {
	value any
	most  int
	check func() error
}

// forms are those of all messages, by number, each with nothing in it.
func forms() []form {
	j, f, w, h := new(job), new(final), new(wish), new(hosted)
	return []form{
		{new(beacon), smallSize, nil},
		{new(challenge), smallSize, nil},
		{new(answer), smallSize, nil},
		{new(About), smallSize, nil},
		{j, jobSize, j.check},
		{new(standing), standingSize, nil},
		{new(orders), ordersSize, nil},
		{f, wire.MaxReport, f.check},
		{w, jobSize, w.check},
		{h, smallSize, h.check},
		{new(query), jobSize, nil},
	}
}

// examples are good messages, in the order of forms.
func examples() []any {
	all := schedule.Part{Count: 1}
	return []any{
		&beacon{Session: "s1", Version: "v1", Host: "h"}, &challenge{Agent: "a"}, &answer{Error: "no", Nonce: "5", Nothing: true, Answered: true, Busy: true},
		&About{Name: "a", Instance: "1", Version: "v1", Labels: map[string]string{"zone": "a"}, Host: "h", Clock: "c", Cores: 4, Allow: []string{AllowBroker}, MemoryB: 1 << 30},
		&job{Session: "s1", Run: "r", Number: 5, Scenario: []byte("weir: 1"), Files: Files{"/a": []byte("b")}, Agents: []string{"a"}, Shares: []engine.Share{{Producers: all, Consumers: all}}},
		&standing{Run: "r", Come: 2, Facts: &driver.Facts{Name: "x"}, Status: &engine.Status{Subs: []engine.Reception{{Distinct: 5}}}, Exchanges: []offset.Exchange{{T1: 1, T2: 2, T3: 3, T4: 4}}},
		&orders{Run: "r", Released: 2, Epoch: map[string]int64{"a": 7}, Stop: true, Why: "x", Lines: []line{{1, 2, 3.5}}},
		&final{Part: &engine.Part{From: 1, To: 2, NotSent: []engine.Group{{Phase: measure.Measure, AgeNS: 5, N: 1}}}, Window: measure.Window{Sent: 5}},
		&wish{Session: "s1", Run: "r", Scenario: []byte("weir: 1"), Files: Files{"/a": []byte("b")}},
		&hosted{Up: true, Address: []string{"10.0.0.5:4222"}, Options: map[string][]string{"monitor": {"x"}}, Started: &result.Started{By: "process", Agent: "b", Processes: []result.Process{{Name: "server-1", Node: 1, Pids: []int{5}}}}},
		&query{Needs: []scenario.Need{{Env: "PASSWORD"}, {File: "/a"}}},
	}
}

// Whatever comes is a message, or ErrMalformed; and one that is taken says when it is
// written again what it said.
func FuzzMessages(f *testing.F) {
	for i, v := range examples() {
		f.Add(byte(i), encode(v))
	}
	for _, s := range []string{"", "{}", "null", "[]", "{}{}", `{"x":1}`, `{"name":5}`, strings.Repeat("[", 20_000), `{"session":"` + strings.Repeat("x", 70_000) + `"}`} {
		f.Add(byte(len(s)), []byte(s))
	}
	f.Fuzz(func(t *testing.T, which byte, b []byte) {
		all := forms()
		x := all[int(which)%len(all)]
		if err := decode(b, x.most, x.value); err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Errorf("%T: %v", x.value, err)
			}
			return
		}
		if x.check != nil {
			if err := x.check(); err != nil && !errors.Is(err, ErrMalformed) {
				t.Errorf("%T: %v", x.value, err)
			}
		}
		again := encode(x.value)
		y := forms()[int(which)%len(all)]
		if err := decode(again, 16*max(x.most, len(again)), y.value); err != nil {
			t.Errorf("%T as %s: %v", x.value, again, err)
		} else if !bytes.Equal(encode(y.value), again) {
			t.Errorf("%T: %s came back as %s", x.value, again, encode(y.value))
		}
	})
}

func TestMessagesAreBounded(t *testing.T) {
	t.Parallel()
	for i, x := range forms() {
		good := encode(examples()[i])
		if err := decode(good, len(good)-1, x.value); !errors.Is(err, ErrMalformed) {
			t.Errorf("%T of a byte too much: %v", x.value, err)
		}
		for what, b := range map[string][]byte{
			"two": append(bytes.Clone(good), good...), "half": good[:len(good)/2], "another field": []byte(`{"another":1}`), "nothing": nil, "a list": []byte("[]"),
		} {
			if err := decode(b, x.most, forms()[i].value); !errors.Is(err, ErrMalformed) {
				t.Errorf("%T, %s: %v", x.value, what, err)
			}
		}
		if err := decode(good, x.most, x.value); err != nil {
			t.Errorf("%T: %v", x.value, err)
		}
	}
}

func TestJobsAndLastReportsThatCannotBe(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*job){
		"no session": func(j *job) { j.Session = "" }, "no run": func(j *job) { j.Run = "" }, "no scenario": func(j *job) { j.Scenario = nil },
		"nobody": func(j *job) { j.Agents = nil }, "another number of shares": func(j *job) { j.Shares = nil }, "beyond the last": func(j *job) { j.Index = 1 },
		"before the first": func(j *job) { j.Index = -1 }, "a share of nothing": func(j *job) { j.Shares[0].Consumers = schedule.Part{} },
		"a share beyond the last": func(j *job) { j.Shares[0].Producers.Index = 1 }, "a share before the first": func(j *job) { j.Shares[0].Producers.Index = -1 },
	} {
		j := examples()[4].(*job)
		if err := j.check(); err != nil {
			t.Fatal(err)
		}
		change(j)
		if err := j.check(); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, f := range map[string]*final{
		"no part": {}, "a phase that there is not": {Part: &engine.Part{NotSent: []engine.Group{{Phase: measure.NumPhases}}}},
	} {
		if err := f.check(); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// refusals are the violations that a server told a client of.
type refusals struct {
	mu  sync.Mutex
	all []string
}

func (r *refusals) option() nats.Option {
	return nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all = append(r.all, strings.ToLower(err.Error()))
	})
}

func (r *refusals) of(subject string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.all {
		if strings.Contains(s, "permissions violation") && strings.Contains(s, strings.ToLower(subject)) {
			return true
		}
	}
	return false
}

// Somebody who has a way in sends what it should not: all of it is refused and told
// of, and a run under way is not disturbed.
func TestWhatNobodyShouldSendDisturbsNothing(t *testing.T) {
	t.Parallel()
	_, drivers := memoryDrivers(t)
	w := fleetOf(t, 2, drivers)
	refused := &refusals{}
	nc, id := dial(t, w.address(t), "stranger", refused.option())
	r := runOf(t, drivers, "run", "topology: {producers: 4, consumers: 4, subscriptions: 2}\nload: {rate: 1000/s}\nwarmup: 500ms\nmeasure: 1h"+common)
	begun := make(chan struct{})
	var once sync.Once
	r.Config.OnInterval = func(*measure.Interval) { once.Do(func() { close(begun) }) }
	attacked := make(chan struct{}) // which ends the run, and nothing else does
	go func() {
		defer close(attacked)
		select {
		case <-begun:
			attack(t, w, nc, id)
		case <-time.After(patience):
			t.Error("the run did not begin")
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	done, err := w.Do(ctx, attacked, r)
	if err != nil {
		t.Fatal(err)
	}
	if !isClosed(attacked) || !done.Raw.Interrupted {
		t.Error("the run ended before it was stopped")
	}
	<-attacked
	balanced(t, done.Raw)
	if done.Raw.All.Sent == 0 {
		t.Error("the run has sent nothing")
	}
	exact(t, done.Raw, done.Raw.All.Sent)
	a := w.of(t, "a").Instance
	for _, subject := range []string{
		beaconSubject, ordersPrefix + w.session, orderSubject(a, "job"), standingSubject(w.session, a), reportSubject(w.session, "run", a), doorSubject(w.session, a, "join"),
	} {
		until(t, "a refusal to publish "+subject, func() bool { return refused.of(subject) })
	}
	for _, words := range [][]string{
		{"challenge refused", "malformed"},
		{"join refused", "malformed"},
		{"join refused", "nonce was used before, or not given"},
		{"a standing was refused", "from=a", "malformed"},
		{"a standing was refused", "from=" + id, "an agent outside this run"},
		{"a report was refused", "from=a", "it is not a piece"},
		{"a report was refused", "from=a", "a report of agent b"},
		{"a report was refused", "from=a", "it is not a report"},
		{"a report was refused", "from=" + id, "an agent outside this run"},
		{"orders refused", "malformed"},
		{"job refused", "malformed"},
		{"job refused", "another coordinator"},
		{"job refused", "is for agent b"},
		{"job refused", "the agent is busy with run run"},
	} {
		w.diary.has(t, words...)
	}
	exact(t, w.do(t, runOf(t, drivers, "next", "topology: {producers: 4, consumers: 4}\nload: {rate: 1000/s}\nwarmup: 0s\nmeasure: 500ms"+common)).Raw, 500)
}

// attack sends what is not to be sent: from outside, where the server takes of a stranger
// what is its own alone, and from where the coordinator is, as at an existing server
// anybody might.
func attack(t *testing.T, w *world, nc *nats.Conn, id string) {
	publish := func(nc *nats.Conn, subject string, b []byte) {
		if err := nc.Publish(subject, b); err != nil {
			t.Errorf("publishing to %s: %v", subject, err)
		}
	}
	valid := func(agent string) []byte {
		b, err := (&wire.Report{Agent: agent, Seq: 1 << 40, Last: true}).Append(nil)
		if err != nil {
			t.Error(err)
		}
		return b
	}
	a := w.of(t, "a")
	run := func(instance string) string { return reportSubject(w.session, "run", instance) }
	failed := encode(&standing{Run: "run", Come: 4, Error: "it failed", Kind: "auth"})
	garbage := [][]byte{nil, []byte("{"), []byte(`{"run":5}`), bytes.Repeat([]byte("x"), 2<<20)}
	for _, nc := range []*nats.Conn{nc, w.nc} {
		for _, g := range garbage {
			for _, subject := range []string{
				doorSubject(w.session, id, "challenge"), doorSubject(w.session, id, "join"), doorSubject(w.session, a.Instance, "join"), clockSubject(w.session),
				standingSubject(w.session, a.Instance), standingSubject("another", a.Instance), run(a.Instance), run(id), reportSubject("another", "run", a.Instance),
				reportSubject(w.session, "another", a.Instance), fleetPrefix + w.session + ".unheard",
			} {
				publish(nc, subject, g)
			}
		}
		publish(nc, doorSubject(w.session, id, "join"), []byte(`{"agent":"a","version":"`+ownVersion+`","nonce":"00000000000000000000000000000000"}`))
		publish(nc, standingSubject(w.session, id), failed)
	}
	publish(nc, standingSubject(w.session, a.Instance), failed) // which it would believe
	for _, piece := range wire.Split(99, []byte("no report"), 1<<10) {
		publish(w.nc, run(a.Instance), piece)
	}
	for _, piece := range wire.Split(98, valid("b"), 1<<10) {
		publish(w.nc, run(a.Instance), piece)
		publish(nc, run(id), piece)
	}
	for _, piece := range wire.Split(97, valid("a"), 1<<10) {
		publish(nc, run(a.Instance), piece) // which would end its part
	}
	// Orders, and what only a coordinator says, the server takes from nobody else.
	stop := encode(&orders{Run: "run", Stop: true, Over: true, Cut: true, Abort: "because"})
	publish(nc, ordersPrefix+w.session, stop)
	publish(nc, beaconSubject, encode(&beacon{Session: "another", Version: ownVersion}))
	publish(nc, orderSubject(a.Instance, "job"), sealed(t, a, examples()[4]))
	if err := nc.Flush(); err != nil {
		t.Error(err)
	}
	// A coordinator that says nonsense.
	for _, g := range garbage {
		for _, subject := range []string{ordersPrefix + w.session, beaconSubject, orderSubject(a.Instance, "job"), orderSubject(a.Instance, "may"), orderSubject(a.Instance, "holds"), booksSubject(w.session, "run")} {
			if err := w.nc.PublishRequest(subject, "elsewhere", g); err != nil {
				t.Error(err)
			}
		}
	}
	j := examples()[4].(*job)
	for _, c := range []struct {
		what   string
		change func()
	}{
		{"another coordinator", func() { j.Session = "another" }},
		{"is for agent b", func() { j.Session, j.Agents = w.session, []string{"b"} }},
		{"busy with run run", func() { j.Agents = []string{"a"} }},
	} {
		c.change()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		m, err := w.nc.RequestWithContext(ctx, orderSubject(a.Instance, "job"), sealed(t, a, j))
		cancel()
		var got answer
		if err != nil || json.Unmarshal(m.Data, &got) != nil || !strings.Contains(got.Error, c.what) {
			t.Errorf("a job is answered by %+v, %v; want %q", got, err, c.what)
		}
	}
}

func TestErrorsTravelByKind(t *testing.T) {
	for _, x := range errorKinds() {
		kind, is := x.name, x.err
		if got := kindOf(errors.Join(errors.New("x"), is)); got != kind {
			t.Errorf("the kind of %v is %q, want %q", is, got, kind)
		}
		if err := errorOf("what happened", kind); !errors.Is(err, is) || err.Error() != "what happened" {
			t.Errorf("%q travelled as %v", kind, err)
		}
	}
	if kind := kindOf(errors.New("another")); kind != "" {
		t.Errorf("another error is of kind %q", kind)
	}
	if err := errorOf("another", "unheard of"); err == nil || err.Error() != "another" || errors.Unwrap(err) != nil {
		t.Errorf("an error of an unknown kind is %v", err)
	}
	if err := errorOf("", "auth"); err != nil {
		t.Errorf("no error is %v", err)
	}
}
