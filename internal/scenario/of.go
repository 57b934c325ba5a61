package scenario

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/scenario/tree"
	"github.com/weirmq/weir/result"
)

// earlier is the result folder of an earlier run.
var earlier = func() kind[Scenario] {
	k := placed(written(ofAllowed), func(s *Scenario) *string { return &s.Consume.Of })
	inner := k.read
	k.read = func(d *decoder, n *tree.Node, path string, s *Scenario) bool {
		ok := inner(d, n, path, s)
		if ok {
			s.Consume.Of = d.in.path(s.Consume.Of, n.At)
		}
		return ok
	}
	return k
}()

const ofAllowed = "the result folder of a run in mode produce"

// combineOf reads the run that sent the messages for mode consume. By default the destinations are
// those of that run, and a subscription begins before its first message.
func (d *decoder) combineOf(s *Scenario) {
	const path = "consume.of"
	if !d.took(path) || s.Mode != engine.Consume || !d.known(s) {
		return
	}
	of, names, err := d.in.earlier(s.Consume.Of, s.System.Definition)
	if err != nil {
		d.fault(d.at(path), path, "%v", err)
		return
	}
	if d.took("topology.names") && !sameNames(s.Topology.Names, names) {
		d.fault(d.later(path, "topology.names"), path, "that run sent to %s, and topology.names is %s (leave topology.names out)",
			strings.Join(names, ", "), strings.Join(s.Topology.Names, ", "))
		return
	}
	can := s.System.Definition.Capabilities
	if slices.Contains(can.Replays, driver.AtEarliest) {
		if d.has("consume.from") && s.Consume.From.At != driver.AtEarliest {
			d.fault(d.later(path, "consume.from"), "consume.from", "is %s, and what lies before it would count as lost (earliest)", s.Consume.From.At)
		}
		s.Consume.From = driver.Position{At: driver.AtEarliest}
	}
	if s.Repeat > 1 {
		d.fault(d.later(path, "repeat"), "repeat", "is %d, and what one run took would be lost to the next (1)", s.Repeat)
	}
	s.of, s.Topology.Names, s.Topology.Producers = of, names, len(of.Streams) // they are numbered like streams
}

// earlier reads the result of a run in dir and the destinations that it sent to, in the order of its
// streams.
func (in Inputs) earlier(dir string, def driver.Definition) (*result.Result, []string, error) {
	refuse := func(format string, args ...any) (*result.Result, []string, error) {
		return nil, nil, fmt.Errorf("%s: %s (%s)", filepath.Base(dir), fmt.Sprintf(format, args...), ofAllowed)
	}
	if !def.Capabilities.Retains {
		return refuse("driver %s keeps no messages for later consumers", def.Name)
	}
	b, err := in.ReadFile(filepath.Join(dir, result.FileResult))
	if errors.Is(err, fs.ErrNotExist) {
		if runs := in.runsIn(dir); len(runs) > 0 {
			return refuse("holds %d runs, so name one of them, such as %s", len(runs), runs[0])
		}
		return refuse("has no %s: it is no result folder, or its run has not ended", result.FileResult)
	}
	if err != nil {
		return nil, nil, unreadable(filepath.Join(dir, result.FileResult), err, ofAllowed)
	}
	r, err := result.Unmarshal(b)
	if err != nil {
		return refuse("%s: %v", result.FileResult, err)
	}
	switch {
	case r.Run.Mode != result.ModeProduce:
		return refuse("its run was in mode %s, and only mode produce leaves messages for a later run", r.Run.Mode)
	case len(r.Agents) > 0:
		return refuse("agents did its run, and a run of agents cannot be booked later")
	case r.System.Driver != def.Name:
		return refuse("its run was by driver %s, and this one is by %s", r.System.Driver, def.Name)
	case len(r.Streams) == 0 || r.Run.Number == 0:
		return refuse("does not say which messages were confirmed: the destinations were the run's own, an earlier weir wrote it, or more than %d spans of messages failed", result.MostStreams)
	}
	names, whole := destinationsOf(r.Streams)
	if all := &r.MessagesAll; !whole || r.Run.Number > math.MaxUint32 || sum(r.Streams) != [3]uint64{all.Sent, all.Failed, all.Unconfirmed} {
		return refuse("%s is damaged: its streams are not what its messages_all counts", result.FileResult)
	}
	return r, names, nil
}

// runsIn returns the folders in dir that are results of runs.
func (in Inputs) runsIn(dir string) (runs []string) {
	entries, _ := in.ReadDir(dir) // a missing folder has none
	for _, e := range entries {
		if _, err := in.Stat(filepath.Join(dir, e.Name(), result.FileResult)); err == nil {
			runs = append(runs, e.Name())
		}
	}
	return runs
}

// destinationsOf returns the destinations of streams in order; whole is false if the streams do not
// cycle through them in turn.
func destinationsOf(streams []result.Stream) (names []string, whole bool) {
	for i := range streams {
		if !slices.Contains(names, streams[i].Destination) {
			names = append(names, streams[i].Destination)
		}
	}
	for i := range streams {
		if streams[i].Destination != names[i%len(names)] {
			return names, false
		}
	}
	return names, true
}

// sum counts messages sent, failed and unconfirmed. It ignores numbers out of order or beyond what was
// sent.
func sum(streams []result.Stream) (n [3]uint64) {
	for i := range streams {
		s := &streams[i]
		n[0] += s.Sent
		for k, all := range [][]result.Seqs{s.Failed, s.Unconfirmed} {
			next := uint64(0)
			for _, x := range all {
				if x.First < next || x.Last < x.First || x.Last >= s.Sent {
					continue
				}
				n[k+1] += x.Last - x.First + 1
				next = x.Last + 1
			}
		}
	}
	return n
}

// sameNames reports whether both hold the same names in any order.
func sameNames(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
