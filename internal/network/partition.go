package network

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Partition is a period in which packets are silently dropped.
type Partition struct {
	Of    string        // "both", "to-system" or "from-system"
	At    time.Duration // since the start of the measured window
	For   time.Duration // 0: until the end of the run
	Every time.Duration // from one start to the next; 0: once
}

// The directions of partitions.
const (
	Both       = "both"
	ToSystem   = "to-system"
	FromSystem = "from-system"
)

// PartitionForm describes the syntax of a partition, for messages.
const PartitionForm = `a partition such as "both at 10s for 5s" or "to-system at 5s for 1s every 10s"; both, to-system, from-system`

// Text formats the partition in that syntax.
func (p Partition) Text() string {
	text := p.Of + " at " + p.At.String()
	if p.For > 0 {
		text += " for " + p.For.String()
	}
	if p.Every > 0 {
		text += " every " + p.Every.String()
	}
	return text
}

// Check returns an error if the partition is invalid.
func (p Partition) Check() error {
	switch {
	case p.Of != Both && p.Of != ToSystem && p.Of != FromSystem:
		return fmt.Errorf("%q is not a direction", p.Of)
	case p.At < 0 || p.For < 0 || p.Every < 0:
		return errors.New("a time is negative")
	case p.Every > 0 && (p.For == 0 || p.For >= p.Every):
		return fmt.Errorf("every %v needs a shorter for", p.Every)
	}
	return nil
}

// A Change is the start or end of a partition, at an instant since the run's epoch.
type Change struct {
	At       time.Duration
	Of       string
	Ends     bool
	To, From bool // whether the direction is cut from then on
	Which    int  // index of the partition, in order of start
}

// Changes returns the changes of partitions in a measured window that starts at from and lasts window;
// 0: its end is not known. No partition starts after the window.
func Changes(all []Partition, from, window time.Duration) []Change {
	var changes []Change
	for _, p := range all {
		for n := range mostPartition + 1 {
			at := p.At + time.Duration(n)*p.Every
			if n > 0 && (p.Every == 0 || window > 0 && at >= window) {
				break
			}
			changes = append(changes, Change{At: from + at, Of: p.Of})
			if p.For > 0 {
				changes = append(changes, Change{At: from + at + p.For, Of: p.Of, Ends: true})
			}
		}
	}
	slices.SortStableFunc(changes, func(a, b Change) int { return cmp.Compare(a.At, b.At) })
	// Partitions do not overlap: one ends before the next begins.
	which := -1
	for i := range changes {
		c := &changes[i]
		if !c.Ends {
			which++
			c.To, c.From = c.Of != FromSystem, c.Of != ToSystem
		}
		c.Which = which
	}
	return changes
}

// CheckPartitions returns an error if partitions overlap or are too many.
func CheckPartitions(all []Partition, window time.Duration) error {
	changes := Changes(all, 0, window)
	if len(changes) > 2*mostPartition {
		return fmt.Errorf("come to more than %d (every: more)", mostPartition)
	}
	on := false
	for _, c := range changes {
		if on != c.Ends {
			return fmt.Errorf("overlap at %v: one begins before the one before it has ended (at: later, for: less)", c.At)
		}
		on = !c.Ends
	}
	return nil
}
