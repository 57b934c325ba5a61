package fault

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weirmq/weir/result"
)

// Apart splits a run's faults: those of servers, done by the process that started them, and those of
// connections and agents' clocks, which each process with clients applies to its own.
func Apart(faults []Fault) (servers, clients []Fault) {
	for _, f := range faults {
		if f.Do == Disconnect || f.OfAgents() {
			clients = append(clients, f)
		} else {
			servers = append(servers, f)
		}
	}
	return servers, clients
}

// Share returns the faults of connections and agents' clocks that the named agent carries out.
func Share(clients []Fault, agent string) (own []Fault) {
	for _, f := range clients {
		if f.On == "" || f.On == agent {
			own = append(own, f)
		}
	}
	return own
}

// Named returns the distinct verbs of faults, in order.
func Named(faults []Fault) (verbs []string) {
	for _, f := range faults {
		if !slices.Contains(verbs, string(f.Do)) {
			verbs = append(verbs, string(f.Do))
		}
	}
	return verbs
}

// Merge combines what several processes did for the same faults, each on its own connections or clock:
// a fault starts with the first of them, is undone with the last, and broke the total of their
// connections. A Disconnect without any connection is an error.
func Merge(shares ...[]result.Fault) (all []result.Fault) {
	for _, share := range shares {
		joined := map[int]bool{} // merged with one of this share
		for _, f := range share {
			i := 0
			for i < len(all) && (joined[i] || !alike(&all[i], &f)) {
				i++
			}
			if joined[i] = true; i == len(all) {
				all = append(all, f)
			} else {
				merge(&all[i], &f)
			}
		}
	}
	for i := range all {
		if f := &all[i]; f.Error == "" && Verb(f.Do) == Disconnect && f.Connections == 0 {
			f.Error = noConnection(f.To)
		}
	}
	slices.SortStableFunc(all, func(a, b result.Fault) int { return cmp.Compare(a.BeganNS, b.BeganNS) })
	return all
}

// alike reports whether two belong to the same fault.
func alike(a, b *result.Fault) bool {
	return a.Do == b.Do && a.To == b.To && a.From == b.From && a.ByNS == b.ByNS && a.DueNS == b.DueNS
}

// merge adds another process's share to a fault.
func merge(f, o *result.Fault) {
	f.Connections += o.Connections
	f.BeganNS = min(f.BeganNS, o.BeganNS)
	switch {
	case f.UndoneNS == nil || o.UndoneNS == nil:
		f.UndoneNS = nil
	case *o.UndoneNS > *f.UndoneNS:
		f.UndoneNS = o.UndoneNS
	}
	for _, p := range o.Processes {
		if !slices.Contains(f.Processes, p) {
			f.Processes = append(f.Processes, p)
		}
	}
	f.Agents = append(f.Agents, o.Agents...)
	f.Error = strings.Join(slices.DeleteFunc([]string{f.Error, o.Error}, func(e string) bool { return e == "" }), "; ")
	f.Means = cmp.Or(f.Means, o.Means)
	switch {
	case f.BoundNS == nil || o.BoundNS == nil:
		f.BoundNS = nil
	case *o.BoundNS > *f.BoundNS:
		f.BoundNS = o.BoundNS
	}
}
