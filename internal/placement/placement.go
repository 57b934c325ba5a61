package placement

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// A Kind is a way of dealing.
type Kind uint8

// The ways of dealing.
const (
	// Spread: producers over the agents that Spec.Producers selects,
	// consumers over those that Spec.Consumers selects; the zero value.
	Spread Kind = iota
	// Paired: a message's producer and its consumers have one agent.
	Paired
	// Split: producers and consumers have an agent each, on one host.
	Split
)

// A Spec is where producers and consumers are. Its zero value deals both
// over all agents.
type Spec struct {
	Kind                 Kind
	Producers, Consumers []Selector // of Spread; nil: all agents
}

// Names reports whether a list of the placement selects the agent; without lists all
// agents are alike, and none is named.
func (p Spec) Names(a Agent) bool {
	for _, s := range slices.Concat(p.Producers, p.Consumers) {
		if s.Selects(a) {
			return true
		}
	}
	return false
}

// A Selector chooses agents: the one of a name, or those that have all of some
// labels.
type Selector struct {
	Name   string  // "" with labels
	Labels []Label // sorted by key, each key once
}

// A Label is one of an agent's.
type Label struct{ Key, Value string }

var (
	agentName = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)
	labelWord = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
)

const (
	longestName  = 64
	allowedName  = "1 to 64 of a-z, 0-9 and -"
	allowedLabel = "KEY=VALUE, each 1 to 64 letters, digits, . _ -"
)

// CheckName returns what is wrong with the name of an agent.
func CheckName(name string) error {
	if !agentName.MatchString(name) {
		return fmt.Errorf("%q is not a name of an agent (%s)", shortened(name), allowedName)
	}
	return nil
}

// notInNames are what host names have and names of agents have not.
var notInNames = regexp.MustCompile(`[^a-z0-9-]+`)

// NameOfHost is the name of an agent that has none of its own: its host's, as far as it can
// be one.
func NameOfHost() (string, error) {
	name, err := os.Hostname()
	if err != nil {
		return "", err
	}
	name = strings.Trim(notInNames.ReplaceAllString(strings.ToLower(name), "-"), "-")
	name = name[:min(len(name), longestName)]
	return name, CheckName(name)
}

// ParseLabel reads a label as users write it, zone=a.
func ParseLabel(s string) (Label, error) {
	var l Label
	l.Key, l.Value, _ = strings.Cut(s, "=")
	if l.Check() != nil {
		return Label{}, fmt.Errorf("%q is not a label (%s)", shortened(s), allowedLabel)
	}
	return l, nil
}

// ParseLabels reads the labels of one agent, at most so many, each key once.
func ParseLabels(texts []string, most int) (map[string]string, error) {
	all := map[string]string{}
	for _, text := range texts {
		l, err := ParseLabel(text)
		if err != nil {
			return nil, err
		}
		if _, twice := all[l.Key]; twice {
			return nil, fmt.Errorf("%s is given twice", l.Key)
		}
		all[l.Key] = l.Value
	}
	if len(all) > most {
		return nil, fmt.Errorf("%d labels (at most %d)", len(all), most)
	}
	return all, nil
}

// Check returns what is wrong with a label.
func (l Label) Check() error {
	if !labelWord.MatchString(l.Key) || !labelWord.MatchString(l.Value) {
		return fmt.Errorf("%q is not a label (%s)", shortened(l.Key+"="+l.Value), allowedLabel)
	}
	return nil
}

// ParseSelector reads a selector: an agent's name, or labels that an agent must
// have all of, zone=a or zone=a,disk=ssd.
func ParseSelector(s string) (Selector, error) {
	if !strings.ContainsAny(s, "=,") {
		if err := CheckName(s); err != nil {
			return Selector{}, fmt.Errorf("%q selects no agent (an agent's name, %s, or labels such as zone=a,disk=ssd)", shortened(s), allowedName)
		}
		return Selector{Name: s}, nil
	}
	var labels []Label
	for part := range strings.SplitSeq(s, ",") {
		l, err := ParseLabel(part)
		if err != nil {
			return Selector{}, fmt.Errorf("%q selects no agent: %w", shortened(s), err)
		}
		labels = append(labels, l)
	}
	slices.SortFunc(labels, func(a, b Label) int { return cmp.Compare(a.Key, b.Key) })
	for i, l := range labels[1:] {
		if l.Key == labels[i].Key {
			return Selector{}, fmt.Errorf("%q selects no agent: an agent has one %s (each key once)", shortened(s), l.Key)
		}
	}
	return Selector{Labels: labels}, nil
}

// String returns the selector as ParseSelector reads it; equal selectors have
// equal texts.
func (s Selector) String() string {
	if s.Name != "" {
		return s.Name
	}
	parts := make([]string, len(s.Labels))
	for i, l := range s.Labels {
		parts[i] = l.Key + "=" + l.Value
	}
	return strings.Join(parts, ",")
}

// Selects reports whether the agent is one of those chosen.
func (s Selector) Selects(a Agent) bool {
	if s.Name != "" {
		return a.Name == s.Name
	}
	for _, l := range s.Labels {
		if v, ok := a.Labels[l.Key]; !ok || v != l.Value {
			return false
		}
	}
	return len(s.Labels) > 0
}

// labelsOf returns an agent's labels as a selector of them all is written.
func labelsOf(a Agent) string {
	s := Selector{}
	for _, key := range slices.Sorted(maps.Keys(a.Labels)) {
		s.Labels = append(s.Labels, Label{key, a.Labels[key]})
	}
	return s.String()
}

// shortened is what a message shows of a text that somebody else wrote.
func shortened(s string) string { return s[:min(len(s), 80)] }
