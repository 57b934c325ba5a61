package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/tcpreset"
	"github.com/weirmq/weir/measure"
	"github.com/weirmq/weir/result"
)

func TestFaultTextRoundTrip(t *testing.T) {
	for text, want := range map[string]string{
		"kill leader at 10s for 5s":                         "kill leader at 10s for 5s",
		"stop 2  at 5s every 20s for 1s":                    "stop 2 at 5s for 1s every 20s",
		"restart all at 1m":                                 "restart all at 1m",
		"kill server-2 at 0s":                               "kill server-2 at 0s",
		"kill":                                              `"kill" is not a fault`,
		"kill leader":                                       `"kill leader" does not say when`,
		"kill leader at soon":                               `at: "soon" is not a duration`,
		"kill leader at 5s at 6s":                           `"at" is given twice`,
		"kill leader at 5s for":                             `"for" has no value`,
		"kill node 1":                                       `"node" is not a target, did you mean "kill 1"?`,
		"kill leader 3s":                                    `"3s" does not say what it is, did you mean "at 3s"?`,
		"kill leader, at 3s":                                "kill leader at 3s",
		"kill 1 at 2s, for 1s":                              "kill 1 at 2s for 1s",
		"cut 1 from 3, at 5s,for 2s":                        `at: "5s,for" is not a duration`,
		"kill leader at 3s,":                                `at: "3s," is not a duration`,
		"kill leader at 3s, stop 2 at 4s":                   `"stop 2 at 4s" begins another fault: give it a flag or a line of its own`,
		"kill leader at 3s, pause 2 at 4s":                  `"pause 2 at 4s" begins another fault: give it a flag or a line of its own`,
		"kill leader 3s for 1s":                             `"3s" is not known, did you mean "at 3s"?`,
		"pause leader at 3s":                                `"pause" is not known, did you mean "stop"?`,
		"crash":                                             `"crash" is not known, did you mean "kill"?`,
		"kill leader at 5s until 6s":                        `"until" is not known`,
		"burn leader at 5s":                                 `"burn" is not something to do (kill, stop, restart, disconnect, cut, fill, slow, clock)`,
		"restart 1 at 5s for 2s":                            "a restart has no length (leave out for)",
		"stop 1 at 5s every 10s":                            "every 10s needs a shorter for, so that each is undone before the next",
		"stop 1 at 5s for 10s every 10s":                    "every 10s needs a shorter for, so that each is undone before the next",
		"kill follower at 1s for 2s every 10s":              "kill follower at 1s for 2s every 10s",
		"disconnect consumers at 1s every 2s":               "disconnect consumers at 1s every 2s",
		"disconnect clients at 1s from leader":              "disconnect clients from leader at 1s",
		"disconnect producers from 2 at 1s for 5s every 2s": "every 2s needs a shorter for, so that each is undone before the next",
		"disconnect leader at 5s":                           `"leader" is not a group of connections (clients, producers, consumers; from says to which servers)`,
		"cut 2 at 5s for 2s":                                "cut 2 at 5s for 2s",
		"cut leader at 5s from nodes for 2s":                "cut leader from nodes at 5s for 2s",
		"cut 1 from 3 at 5s":                                "cut 1 from 3 at 5s",
		"cut 1 from leader at 5s":                           "from leader is not known (all, clients, nodes or the number of a node)",
		"cut 1 from 1 at 5s":                                "a node cannot be cut from itself (from another one)",
		"kill 1 from 2 at 5s":                               "kill has no from (leave it out)",
		"slow leader at 5s by 20ms for 2s every 4s":         "slow leader by 20ms at 5s for 2s every 4s",
		"slow 1 at 5s":                                      "slow needs how much longer a flush or a read takes (by 20ms, and up to 10s)",
		"slow 1 by 11s at 5s":                               "slow needs how much longer a flush or a read takes (by 20ms, and up to 10s)",
		"slow 1 by much at 5s":                              `by: "much" is not a duration`,
		"kill 1 by 20ms at 5s":                              "kill has no by (leave it out)",
		"clock leader by -5s at 5s for 2s":                  "clock leader by -5s at 5s for 2s",
		"clock 1 by 7d at 5s":                               "clock 1 by 168h at 5s",
		"clock 1 at 5s":                                     "clock needs how far the clock steps (by -5s is back, and up to 8784h)",
		"clock agents by -1h at 5s for 1s":                  "clock agents by -1h at 5s for 1s",
		"clock agents by 5s on b-2 at 5s":                   "clock agents on b-2 by 5s at 5s",
		"clock 1 on b by 5s at 5s":                          "on names an agent, beside clock agents (leave it out)",
		"kill agents on b at 5s":                            "on names an agent, beside clock agents (leave it out)",
		"clock agents at 5s":                                "clock needs how far the clock steps (by -5s is back, and up to 8784h)",
		"clock 1 by -400d at 5s":                            "clock needs how far the clock steps (by -5s is back, and up to 8784h)",
	} {
		f, err := Parse(text)
		if err == nil {
			err = f.Check()
		}
		got := f.Text()
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %s; want %s", text, got, want)
		}
	}
}

// three returns the servers of a cluster in which each node has a helper process next to its server.
func three() []Server {
	var all []Server
	for n := 1; n <= 3; n++ {
		all = append(all, Server{fmt.Sprintf("helper-%d", n), n, []string{fmt.Sprintf("h:9%d", n)}}, Server{fmt.Sprintf("server-%d", n), n, []string{fmt.Sprintf("h:8%d", n), fmt.Sprintf("h:%d", n)}})
	}
	return all
}

func TestATargetIsAProcess(t *testing.T) {
	for _, x := range []struct {
		to      string
		leaders []string
		want    string
	}{
		{"2", nil, "server-2"},
		{"helper-3", nil, "helper-3"},
		{"all", nil, "helper-1 server-1 helper-2 server-2 helper-3 server-3"},
		{"4", nil, "there is no node 4"},
		{"server-9", nil, `no process is named "server-9"`},
		{"leader", []string{"h:2", "h:3", "h:3"}, "server-3"},
		{"follower", []string{"h:1", "h:3"}, "server-2"},
		{"follower", []string{"h:1", "h:2", "h:3"}, "each node leads a part of the destinations"},
		{"leader", nil, "no node leads at this time"},
	} {
		find := func() ([]string, error) { return fixed(x.to, three()) }
		if seeks(x.to) {
			find = func() ([]string, error) { return led(x.to, three(), x.leaders) }
		}
		names, err := find()
		got := strings.Join(names, " ")
		if err != nil {
			got, _, _ = strings.Cut(err.Error(), " (")
		}
		if got != x.want {
			t.Errorf("%s with leaders %q: %s; want %s", x.to, x.leaders, got, x.want)
		}
	}
}

// conducted applies faults to three servers in virtual time, and returns the orders, with the second
// of each, and the reported steps.
func conducted(t *testing.T, length time.Duration, order func(do string) error, texts ...string) (ordered []string, done []result.Fault) {
	t.Helper()
	var faults []Fault
	for _, text := range texts {
		f := must.Get(Parse(text))(t)
		faults = append(faults, f)
	}
	synctest.Test(t, func(t *testing.T) {
		epoch := time.Now()
		now := func() int64 { return int64(time.Since(epoch)) }
		leads := 1
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second+length)
		defer cancel()
		done = Conduct(ctx, System{
			Servers: three(), Now: now, Tell: func(int64, string) {},
			Leaders: func(context.Context) ([]string, error) { return []string{fmt.Sprintf("h:%d", leads)}, nil },
			Sever: func(group tcpreset.Group, names ...string) (int, error) {
				ordered = append(ordered, fmt.Sprintf("%v disconnect %s %s", time.Since(epoch), group, strings.Join(names, " ")))
				return severed, order("disconnect")
			},
			Part: func(pairs [][2]int) error {
				ordered = append(ordered, fmt.Sprintf("%v part %v", time.Since(epoch), pairs))
				return order("cut")
			},
			Order: func(_ context.Context, do string, by time.Duration, names ...string) (result.Span, error) {
				from := now()
				text := fmt.Sprintf("%v %s %s", time.Since(epoch), do, strings.Join(names, " "))
				if by != 0 {
					text += " by " + by.String()
				}
				ordered = append(ordered, text)
				if do == "kill" {
					leads = 2
				}
				err := order(do)
				return result.Span{FromNS: from, ToNS: now()}, err
			},
		}, faults, 2*time.Second, length)
	})
	return ordered, done
}

func fine(string) error { return nil }

func TestCutSelectsNodePairs(t *testing.T) {
	for name, x := range map[string]struct {
		processes []string
		from      string
		want      [][2]int
	}{
		"a node from the clients":       {[]string{"server-2"}, "clients", [][2]int{{0, 2}}},
		"a node from the others":        {[]string{"server-2"}, "nodes", [][2]int{{2, 1}, {2, 3}}},
		"a node from one other":         {[]string{"server-2"}, "3", [][2]int{{2, 3}}},
		"a node from all":               {[]string{"server-1"}, "all", [][2]int{{0, 1}, {1, 2}, {1, 3}}},
		"all nodes from each other":     {[]string{"server-1", "server-2", "server-3"}, "nodes", [][2]int{{1, 2}, {1, 3}, {2, 3}}},
		"by a helper of the node":       {[]string{"helper-3"}, "clients", [][2]int{{0, 3}}},
		"a node with helpers, but once": {[]string{"helper-3", "server-3"}, "clients", [][2]int{{0, 3}}},
	} {
		golden.Equal(t, x.want, pairs(three(), x.processes, x.from), "%s", name)
	}
}

func TestOverlappingCutsHealIndividually(t *testing.T) {
	ordered, done := conducted(t, 10*time.Second, fine, "cut 1 from clients at 1s for 4s", "cut leader from 2 at 2s for 1s", "cut 3 from 2 at 9s")
	want := []string{"3s part [[0 1]]", "4s part [[0 1] [1 2]]", "5s part [[0 1]]", "7s part []", "11s part [[3 2]]"}
	golden.Equal(t, want, ordered, "ordered")
	if len(done) != 3 || done[0].UndoneNS == nil || *done[0].UndoneNS != 7e9 || done[1].To != "leader" || done[1].From != "2" || done[2].UndoneNS != nil {
		t.Errorf("%+v", done)
	}
}

// severed is how many connections each disconnect breaks.
const severed = 3

func TestDisconnectBreaksReconnectedClients(t *testing.T) {
	ordered, done := conducted(t, 10*time.Second, fine, "disconnect consumers from leader at 1s for 90ms", "disconnect clients at 5s", "disconnect producers at 9990ms for 1s")
	want := []string{
		"3s disconnect consumers server-1", "3.02s disconnect consumers server-1", "3.04s disconnect consumers server-1",
		"3.06s disconnect consumers server-1", "3.08s disconnect consumers server-1",
		"7s disconnect clients helper-1 server-1 helper-2 server-2 helper-3 server-3",
		"11.99s disconnect producers helper-1 server-1 helper-2 server-2 helper-3 server-3",
	}
	golden.Equal(t, want, ordered, "ordered")
	for i, n := range []int{5 * severed, severed, severed} {
		if f := done[i]; f.Error != "" || f.Connections != n || f.Means != tcpreset.Means {
			t.Errorf("%+v; want %d connections", f, n)
		}
	}
	if done[0].UndoneNS == nil || *done[0].UndoneNS != 3.09e9 || done[1].UndoneNS != nil || done[2].UndoneNS != nil {
		t.Errorf("undone: %+v", done)
	}
}

func TestFailedDisconnectIsReported(t *testing.T) {
	ordered, done := conducted(t, 10*time.Second, func(string) error { return errors.New("not allowed") }, "disconnect clients at 1s for 1s")
	if len(ordered) != 1 || len(done) != 1 || done[0].Error != "not allowed" || done[0].UndoneNS != nil {
		t.Errorf("%q\n%+v", ordered, done)
	}
}

func TestFaultsBeginOnTimeAndAreUndone(t *testing.T) {
	for name, x := range map[string]struct {
		faults []string
		want   []string
	}{
		"once, after the warm-up":      {[]string{"kill 1 at 3s"}, []string{"5s kill server-1"}},
		"undone":                       {[]string{"stop 1 at 3s for 4s"}, []string{"5s stop server-1", "9s continue server-1"}},
		"the leader of the time":       {[]string{"kill leader at 1s for 2s every 4s"}, []string{"3s kill server-1", "5s start server-1", "7s kill server-2", "9s start server-2", "11s kill server-2"}},
		"one while another continues":  {[]string{"stop 3 at 1s for 6s", "kill 2 at 2s for 1s"}, []string{"3s stop server-3", "4s kill server-2", "5s start server-2", "9s continue server-3"}},
		"all that run":                 {[]string{"kill 1 at 1s", "kill all at 3s for 1s"}, []string{"3s kill server-1", "5s kill helper-1 helper-2 server-2 helper-3 server-3", "6s start helper-1 helper-2 server-2 helper-3 server-3"}},
		"a follower that runs":         {[]string{"stop 2 at 1s for 5s", "kill follower at 3s"}, []string{"3s stop server-2", "5s kill server-3", "8s continue server-2"}},
		"a restart ends by itself":     {[]string{"restart 2 at 1s every 5s"}, []string{"3s restart server-2", "8s restart server-2"}},
		"not after the window's end":   {[]string{"restart 2 at 1s every 9s"}, []string{"3s restart server-2"}},
		"a disk is filled and emptied": {[]string{"fill 1 at 1s for 2s every 5s"}, []string{"3s fill server-1", "5s empty server-1", "8s fill server-1", "10s empty server-1"}},
		"a disk is slow for a time":    {[]string{"slow leader by 20ms at 1s for 2s"}, []string{"3s slow server-1 by 20ms", "5s quicken server-1"}},
		"a clock steps for a time":     {[]string{"clock 1 by -5s at 1s for 2s"}, []string{"3s clock server-1 by -5s", "5s correct server-1"}},
		"what outlasts the run is not": {[]string{"stop 1 at 3s for 40s"}, []string{"5s stop server-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			ordered, done := conducted(t, 10*time.Second, fine, x.faults...)
			golden.Equal(t, x.want, ordered, "ordered")
			for _, f := range done {
				if f.Error != "" || f.BeganNS != f.DueNS || f.UndoneNS != nil && *f.UndoneNS < f.BeganNS {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

func TestSlowDiskReportsDelayAndMechanism(t *testing.T) {
	_, done := conducted(t, 10*time.Second, fine, "slow 1 by 20ms at 1s for 2s")
	if len(done) != 1 || done[0].ByNS != 20e6 || done[0].Means != "FUSE" {
		t.Errorf("%+v", done)
	}
}

// TestAnAgentStepsItsOwnClock: the fault names the agent; a process that is not an agent cannot do it.
func TestAnAgentStepsItsOwnClock(t *testing.T) {
	for agent, want := range map[string]string{"b": "3s clock b by -1h0m0s, 5s correct b", "": ""} {
		synctest.Test(t, func(t *testing.T) {
			f := must.Get(Parse("clock agents by -1h at 1s for 2s"))(t)
			epoch := time.Now()
			var ordered []string
			now := func() int64 { return int64(time.Since(epoch)) }
			done := Conduct(t.Context(), System{
				Agent: agent, Now: now, Tell: func(int64, string) {}, Servers: three(),
				Order: func(_ context.Context, do string, by time.Duration, processes ...string) (result.Span, error) {
					text := fmt.Sprintf("%v %s %s", time.Duration(now()), do, strings.Join(processes, " "))
					if by != 0 {
						text += " by " + by.String()
					}
					ordered = append(ordered, text)
					return result.Span{FromNS: now(), ToNS: now()}, nil
				},
			}, []Fault{f}, 2*time.Second, 10*time.Second)
			if got := strings.Join(ordered, ", "); got != want {
				t.Errorf("agent %q ordered %q; want %q", agent, got, want)
			}
			if len(done) != 1 || (done[0].Error == "") != (agent != "") || agent != "" && (done[0].Processes[0] != agent || done[0].UndoneNS == nil || done[0].ByNS != int64(-time.Hour)) {
				t.Errorf("%+v", done)
			}
		})
	}
}

func TestScalingKeepsFaultIntensity(t *testing.T) {
	f := must.Get(Parse("slow 1 by 20ms at 10s for 5s every 20s"))(t)
	if got, want := f.Scaled(0.1).Text(), "slow 1 by 20ms at 1s for 500ms every 2s"; got != want {
		t.Errorf("scaled: %q; want %q", got, want)
	}
}

// TestAFaultBeginsWithItsFirstSignal: a fault starts before all failures it causes, however long it
// takes and whether or not it succeeds. It is undone only after it is done.
func TestAFaultBeginsWithItsFirstSignal(t *testing.T) {
	const takes = 700 * time.Millisecond
	for text, undone := range map[string]int64{
		"restart 1 at 1s":                  3.7e9,
		"kill 1 at 1s for 2s":              5.7e9,
		"stop 1 at 1s for 2s":              5.7e9,
		"fill 1 at 1s for 2s":              5.7e9,
		"slow 1 by 20ms at 1s for 2s":      5.7e9,
		"clock 1 by -5s at 1s for 2s":      5.7e9,
		"cut 1 from clients at 1s for 2s":  5.7e9,
		"disconnect clients at 1s for 10s": 0,
	} {
		for _, fails := range []error{nil, errors.New("the process did not end")} {
			_, done := conducted(t, 10*time.Second, func(string) error { time.Sleep(takes); return fails }, text)
			if len(done) != 1 || done[0].BeganNS != 3e9 || (done[0].Error != "") != (fails != nil) {
				t.Fatalf("%s: %+v", text, done)
			}
			if u := done[0].UndoneNS; fails == nil && undone > 0 && (u == nil || *u != undone) {
				t.Errorf("%s: undone at %d; want %d", text, u, undone)
			}
		}
	}
}

func TestFailedFaultIsReportedNotUndone(t *testing.T) {
	ordered, done := conducted(t, 10*time.Second, func(string) error { return errors.New("no such luck") }, "kill 1 at 3s for 1s", "stop 2 at 5s")
	if len(ordered) != 2 || len(done) != 2 || done[0].Error != "no such luck" || done[0].UndoneNS != nil {
		t.Errorf("%q\n%+v", ordered, done)
	}
}

// tenths fills a course with tenths of a second, one per letter: "." is normal, "x" acks and delivers
// nothing, "f" fails everything, "s" is slow.
func tenths(c *Course, text string) {
	for i, x := range text {
		iv := &measure.Interval{From: int64(i) * 1e8, To: int64(i+1) * 1e8}
		n := &iv.Counters[measure.Measure]
		n.Sent = 100
		switch x {
		case 'x':
		case 'f':
			n.Failed = 100
		default:
			n.Confirmed, n.Received = 100, 100
			ns := int64(1e6)
			if x == 's' {
				ns = 1e9
			}
			iv.Kinds[measure.E2EResponse][measure.Measure].Add(ns, 100)
		}
		c.Add(iv, false)
	}
}

func TestEffectOfFault(t *testing.T) {
	const calm = ".................... " // 2 s
	for name, x := range map[string]struct {
		after  string
		faults []int64 // instants, in tenths of a second after the first
		want   []string
	}{
		"nothing":                     {"..........", []int64{0}, []string{"back after 0.0"}},
		"a break, then as before":     {"xxxxx.....", []int64{0}, []string{"quiet 0.0 to 0.5, back after 0.5"}},
		"a break, then slow":          {".xxxsss...", []int64{0}, []string{"quiet 0.1 to 0.4, back after 0.7"}},
		"failures":                    {"..ff.f....", []int64{0}, []string{"quiet 0.2 to 0.4, failed 300 from 0.2 to 0.6, back after 0.6"}},
		"never as before":             {"xxxxx....s", []int64{0}, []string{"quiet 0.0 to 0.5"}},
		"two, each until the next":    {"xx...sss..", []int64{0, 5}, []string{"quiet 0.0 to 0.2, back after 0.2", "back after 0.3"}},
		"the whole rest of the run":   {"xxxxxxxxxx", []int64{0}, []string{"quiet 0.0 to 1.0"}},
		"what comes after the window": {"..........s", []int64{0}, []string{"back after 0.0"}},
	} {
		t.Run(name, func(t *testing.T) {
			var c Course
			tenths(&c, strings.TrimSpace(calm)+x.after)
			first := int64(20 * 1e8)
			var faults []result.Fault
			for _, at := range x.faults {
				faults = append(faults, result.Fault{Processes: []string{"p"}, BeganNS: first + at*1e8})
			}
			c.Effects(faults, 0, first+10*1e8, first+11*1e8, End{})
			tenth := func(ns int64) string { return fmt.Sprintf("%.1f", float64(ns-first)/1e9) }
			for i, f := range faults {
				var got []string
				e := f.Effect
				if e.Unconfirmed != nil {
					got = append(got, "quiet "+tenth(e.Unconfirmed.FromNS)+" to "+tenth(e.Unconfirmed.ToNS))
				}
				if e.Failed > 0 {
					got = append(got, fmt.Sprintf("failed %d from %s to %s", e.Failed, tenth(e.Failing.FromNS), tenth(e.Failing.ToNS)))
				}
				if e.BackNS != nil {
					got = append(got, fmt.Sprintf("back after %.1f", float64(*e.BackNS)/1e9))
				}
				if text := strings.Join(got, ", "); text != x.want[i] {
					t.Errorf("fault %d: %s; want %s", i, text, x.want[i])
				}
			}
		})
	}
}

// TestFailureCountsForOneFault: two faults start within one step of the course, in which 100 messages
// fail.
func TestFailureCountsForOneFault(t *testing.T) {
	const calm, first = "....................", int64(20 * 1e8)
	for name, x := range map[string]struct {
		after  string
		faults []int64 // ns after the first step
		want   []uint64
	}{
		"in one step":         {"f.........", []int64{1e7, 5e7}, []uint64{100, 0}},
		"and in later ones":   {"ff........", []int64{1e7, 5e7}, []uint64{100, 100}},
		"at one instant":      {"f.........", []int64{1e7, 1e7}, []uint64{100, 0}},
		"the second's step":   {".f........", []int64{1e7, 15e7}, []uint64{0, 100}},
		"each its own":        {"f.f.......", []int64{1e7, 25e7}, []uint64{100, 100}},
		"three in one step":   {"f..f......", []int64{1e7, 2e7, 3e7}, []uint64{100, 0, 100}},
		"after the window":    {"..........f", []int64{1e7}, []uint64{100}},
		"at the step's begin": {"ff........", []int64{0, 1e8}, []uint64{100, 100}},
	} {
		t.Run(name, func(t *testing.T) {
			var c Course
			tenths(&c, calm+x.after)
			var faults []result.Fault
			for _, at := range x.faults {
				faults = append(faults, result.Fault{Processes: []string{"p"}, BeganNS: first + at})
			}
			c.Effects(faults, 0, first+10*1e8, first+11*1e8, End{})
			for i, f := range faults {
				if f.Effect.Failed != x.want[i] {
					t.Errorf("fault %d: %d failed; want %d", i, f.Effect.Failed, x.want[i])
				}
			}
		})
	}
}

// TestFailuresOfOverlappingStepsCount: the agents of a fleet do not read at the same instant, so that a step
// begins before the one before it ends.
func TestFailuresOfOverlappingStepsCount(t *testing.T) {
	var c Course
	for i := range int64(20) {
		iv := &measure.Interval{From: i*1e8 - 1e6, To: (i + 1) * 1e8}
		iv.Counters[measure.Measure] = measure.Counters{Sent: 100, Failed: 100}
		c.Add(iv, false)
	}
	faults := []result.Fault{{Processes: []string{"p"}, BeganNS: 5e8 + 5e7}, {Processes: []string{"p"}, BeganNS: 12e8 + 5e7}}
	c.Effects(faults, 0, 20e8, 20e8, End{})
	if one, two := faults[0].Effect.Failed, faults[1].Effect.Failed; one != 700 || two != 800 {
		t.Errorf("%d and %d failed; want 700 and 800", one, two)
	}
}

// TestFaultStartIncludesClockError: the agent's clock may be off by the fault's stated error.
func TestFaultStartIncludesClockError(t *testing.T) {
	for bound, want := range map[int64]uint64{0: 0, 2e6: 100} {
		var c Course
		tenths(&c, "...................f..........")
		faults := []result.Fault{{Processes: []string{"p"}, BeganNS: 20*1e8 + 1e6, BoundNS: &bound}}
		c.Effects(faults, 0, 30*1e8, 30*1e8, End{})
		if got := faults[0].Effect.Failed; got != want {
			t.Errorf("off by %d ns: %d failed; want %d", bound, got, want)
		}
	}
}

func TestACourseIsBounded(t *testing.T) {
	var c Course
	for i := range int64(5 * mostParts) {
		iv := &measure.Interval{From: i * 1e8, To: (i + 1) * 1e8}
		iv.Counters[measure.Measure].Confirmed = 1
		c.Add(iv, false)
	}
	sum, at := uint64(0), int64(0)
	for _, p := range c.parts {
		if p.from != at {
			t.Fatalf("a part begins at %d; want %d", p.from, at)
		}
		sum, at = sum+p.confirmed, p.to
	}
	if len(c.parts) > mostParts || sum != 5*mostParts {
		t.Errorf("%d parts with %d confirmations", len(c.parts), sum)
	}
}

// TestMissingLeaderErrorComesFromSystem: the system first answers that it has no leader, and then not
// at all. The error must be its answer, not the timeout.
func TestMissingLeaderErrorComesFromSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		none, asked := errors.New("the stream has no leader"), 0
		_, err := choose(t.Context(), System{Servers: three(), Leaders: func(ctx context.Context) ([]string, error) {
			if asked++; asked == 1 {
				return nil, none
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}}, "leader", nil)
		if !errors.Is(err, none) || asked != 2 {
			t.Errorf("asked %d times: %v; want %v", asked, err, none)
		}
	})
}
