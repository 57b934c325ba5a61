package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/must"
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
	j, f, w, h, o, x := new(Job), new(Final), new(Wish), new(Hosted), new(Trouble), new(Troubled)
	return []form{
		{new(Beacon), SmallSize, nil},
		{new(Challenge), SmallSize, nil},
		{new(Answer), SmallSize, nil},
		{new(About), SmallSize, nil},
		{j, JobSize, j.Check},
		{new(Standing), StandingSize, nil},
		{new(Orders), OrdersSize, nil},
		{f, MaxReport, f.Check},
		{w, JobSize, w.Check},
		{h, SmallSize, h.Check},
		{new(Query), JobSize, nil},
		{o, JobSize, o.Check},
		{x, SmallSize, x.Check},
	}
}

// examples are good messages, in the order of forms.
func examples() []any {
	all := schedule.Part{Count: 1}
	return []any{
		&Beacon{Session: "s1", Version: "v1", Host: "h"}, &Challenge{Agent: "a"}, &Answer{Error: "no", Nonce: "5", Nothing: true, Answered: true, Busy: true},
		&About{Name: "a", Instance: "1", Version: "v1", Labels: map[string]string{"zone": "a"}, Host: "h", Clock: "c", Cores: 4, Allow: []string{"broker"}, MemoryB: 1 << 30},
		&Job{Session: "s1", Run: "r", Number: 5, Scenario: []byte("weir: 1"), Files: Files{"/a": []byte("b")}, Servers: []Server{{Name: "server-1", Node: 1, Address: "h:1", Host: "10.0.0.5", Ports: []uint16{1}}}, Agents: []string{"a"}, Workers: []engine.Worker{{Producers: all, Consumers: all}}},
		&Standing{Run: "r", Come: 2, Facts: &driver.Facts{Name: "x"}, Status: &engine.Status{Subs: []engine.SubscriptionStatus{{Distinct: 5}}}, Exchanges: []offset.Exchange{{T1: 1, T2: 2, T3: 3, T4: 4}}},
		&Orders{Run: "r", Released: 2, Epoch: map[string]int64{"a": 7}, Stop: true, Why: "x", Lines: []Line{{1, 2, 3.5}}},
		&Final{Part: &engine.WorkerResult{From: 1, To: 2, NotSent: []engine.Group{{Phase: measure.Measure, AgeNS: 5, N: 1}}}, Window: measure.Window{Sent: 5}},
		&Wish{Session: "s1", Run: "r", Scenario: []byte("weir: 1"), Files: Files{"/a": []byte("b")}},
		&Hosted{Up: true, Address: []string{"10.0.0.5:4222"}, Options: map[string][]string{"monitor": {"x"}}, Started: &result.Started{By: "process", Agent: "b", Processes: []result.Process{{Name: "server-1", Node: 1, Pids: []int{5}}}}},
		&Query{Needs: []scenario.Need{{Env: "PASSWORD"}, {File: "/a"}}, Faults: []string{"kill"}},
		&Trouble{Session: "s1", Run: "r", EpochNS: 7, Seen: 2, End: true},
		&Troubled{Exchanges: []offset.Exchange{{T1: 1, T2: 2, T3: 3, T4: 4}}, Over: true, Notes: []Note{{AtNS: 5, Text: "kill server-1", N: 1, Fault: result.Fault{Do: "kill", To: "1", Processes: []string{"server-1"}, DueNS: 4, BeganNS: 5}}}},
	}
}

// Whatever comes is a message, or ErrMalformed; and one that is taken says when it is
// written again what it said.
func FuzzMessages(f *testing.F) {
	for i, v := range examples() {
		f.Add(byte(i), Encode(v))
	}
	for _, s := range []string{"", "{}", "null", "[]", "{}{}", `{"x":1}`, `{"name":5}`, strings.Repeat("[", 20_000), `{"session":"` + strings.Repeat("x", 70_000) + `"}`} {
		f.Add(byte(len(s)), []byte(s))
	}
	f.Fuzz(func(t *testing.T, which byte, b []byte) {
		all := forms()
		x := all[int(which)%len(all)]
		if err := Decode(b, x.most, x.value); err != nil {
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
		again := Encode(x.value)
		y := forms()[int(which)%len(all)]
		if err := Decode(again, 16*max(x.most, len(again)), y.value); err != nil {
			t.Errorf("%T as %s: %v", x.value, again, err)
		} else if !bytes.Equal(Encode(y.value), again) {
			t.Errorf("%T: %s came back as %s", x.value, again, Encode(y.value))
		}
	})
}

func TestMessagesAreBounded(t *testing.T) {
	t.Parallel()
	for i, x := range forms() {
		good := Encode(examples()[i])
		if err := Decode(good, len(good)-1, x.value); !errors.Is(err, ErrMalformed) {
			t.Errorf("%T of a byte too much: %v", x.value, err)
		}
		for what, b := range map[string][]byte{
			"two": append(bytes.Clone(good), good...), "half": good[:len(good)/2], "another field": []byte(`{"another":1}`), "nothing": nil, "a list": []byte("[]"),
		} {
			if err := Decode(b, x.most, forms()[i].value); !errors.Is(err, ErrMalformed) {
				t.Errorf("%T, %s: %v", x.value, what, err)
			}
		}
		if err := Decode(good, x.most, x.value); err != nil {
			t.Errorf("%T: %v", x.value, err)
		}
	}
}

func TestInvalidJobsAndFinalReports(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*Job){
		"no session": func(j *Job) { j.Session = "" }, "no run": func(j *Job) { j.Run = "" }, "no scenario": func(j *Job) { j.Scenario = nil },
		"nobody": func(j *Job) { j.Agents = nil }, "another number of shares": func(j *Job) { j.Workers = nil }, "beyond the last": func(j *Job) { j.Index = 1 },
		"before the first": func(j *Job) { j.Index = -1 }, "a share of nothing": func(j *Job) { j.Workers[0].Consumers = schedule.Part{} },
		"a share beyond the last": func(j *Job) { j.Workers[0].Producers.Index = 1 }, "a share before the first": func(j *Job) { j.Workers[0].Producers.Index = -1 },
		"a server at no address": func(j *Job) { j.Servers[0].Host = "h" }, "a server of no node": func(j *Job) { j.Servers[0].Node = 0 },
		"a server with a strange name": func(j *Job) { j.Servers[0].Name = "\x1b[2J" }, "too many ports": func(j *Job) { j.Servers[0].Ports = make([]uint16, 100) },
		"too many servers": func(j *Job) { j.Servers = make([]Server, 1000) },
	} {
		j := examples()[4].(*Job)
		must.Do(t, j.Check())
		change(j)
		if err := j.Check(); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, f := range map[string]*Final{
		"no part": {}, "a phase that there is not": {Part: &engine.WorkerResult{NotSent: []engine.Group{{Phase: measure.NumPhases}}}},
		"a stage that there is not": {Part: &engine.WorkerResult{NotSent: []engine.Group{{Stage: measure.MostStages}}}},
		"a fault of others":         {Part: &engine.WorkerResult{}, Faults: []result.Fault{{Agents: []string{"b"}}}},
		"too many faults":           {Part: &engine.WorkerResult{}, Faults: make([]result.Fault, 1001)},
	} {
		if err := f.Check(); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestFaultReportsAreBounded(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*Troubled){
		"too many":          func(x *Troubled) { x.Notes = make([]Note, 100) },
		"before the first":  func(x *Troubled) { x.Notes[0].N = -1 },
		"beyond the last":   func(x *Troubled) { x.Notes[0].N = 1 << 20 },
		"a control":         func(x *Troubled) { x.Notes[0].Text = "\x1b[2J" },
		"a long text":       func(x *Troubled) { x.Notes[0].Text = strings.Repeat("x", 300) },
		"a strange process": func(x *Troubled) { x.Notes[0].Fault.Processes = []string{"a\nb"} },
		"what followed":     func(x *Troubled) { x.Notes[0].Fault.Effect = &result.FaultEffect{} },
		"another's":         func(x *Troubled) { x.Notes[0].Fault.Agents = []string{"b"} },
		"less than none":    func(x *Troubled) { x.Notes[0].Fault.Connections = -1 },
	} {
		x := examples()[12].(*Troubled)
		must.Do(t, x.Check())
		change(x)
		if err := x.Check(); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, text := range []string{"", "short", strings.Repeat("x", 256), strings.Repeat("é", 200), strings.Repeat("x", 10_000), "a\nb"} {
		f := Brief(result.Fault{Do: "kill", Error: text})
		if err := CheckFault(&f); err != nil || text != "" && !strings.HasPrefix(f.Error, BriefText(text)[:1]) {
			t.Errorf("%.20q became %q: %v", text, f.Error, err)
		}
	}
	for o, good := range map[Trouble]bool{{Session: "s", Run: "r"}: true, {Session: "s"}: false, {Run: "r"}: false, {Session: "s", Run: "r", Seen: -1}: false} {
		if err := o.Check(); (err == nil) != good {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestErrorsTravelByKind(t *testing.T) {
	for _, x := range errorKinds() {
		kind, is := x.name, x.err
		if got := KindOf(errors.Join(errors.New("x"), is)); got != kind {
			t.Errorf("the kind of %v is %q, want %q", is, got, kind)
		}
		if err := ErrorOf("what happened", kind); !errors.Is(err, is) || err.Error() != "what happened" {
			t.Errorf("%q travelled as %v", kind, err)
		}
	}
	for _, x := range errorKinds() {
		for _, y := range []error{engine.ErrNotReady, driver.ErrUnreachable, driver.ErrTimeout, driver.ErrDisconnected} {
			err := fmt.Errorf("%w: %w", y, x.err)
			if driver.IsAnswer(err) && !driver.IsAnswer(ErrorOf(err.Error(), KindOf(err))) {
				t.Errorf("%v is an answer; as %q it is none", err, KindOf(err))
			}
		}
	}
	if kind := KindOf(errors.New("another")); kind != "" {
		t.Errorf("another error is of kind %q", kind)
	}
	if err := ErrorOf("another", "unheard of"); err == nil || err.Error() != "another" || errors.Unwrap(err) != nil {
		t.Errorf("an error of an unknown kind is %v", err)
	}
	if err := ErrorOf("", "auth"); err != nil {
		t.Errorf("no error is %v", err)
	}
}
