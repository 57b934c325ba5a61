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

// A Kind is a kind of placement.
type Kind uint8

// The kinds of placement.
const (
	// Spread: producers over the agents that Spec.Producers selects,
	// consumers over those that Spec.Consumers selects; the zero value.
	Spread Kind = iota
	// Paired: a message's producer and its consumers are on one agent.
	Paired
	// Split: one agent for producers and one for consumers, on one host.
	Split
)

// A Spec says where producers and consumers run. Its zero value spreads both over all agents.
type Spec struct {
	Kind                 Kind
	Producers, Consumers []Selector // of Spread; nil: all agents
}

// Names reports whether a selector of the placement matches the agent; false without selectors.
func (p Spec) Names(a Agent) bool {
	for _, s := range slices.Concat(p.Producers, p.Consumers) {
		if s.Selects(a) {
			return true
		}
	}
	return false
}

// A Selector matches agents: by name, or by having all of some labels.
type Selector struct {
	Name   string  // "" with labels
	Labels []Label // sorted by key, each key once
}

// A Label is a label of an agent.
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

// CheckName returns an error for an invalid name of an agent.
func CheckName(name string) error {
	if !agentName.MatchString(name) {
		return fmt.Errorf("%q is not a name of an agent (%s)", shortened(name), allowedName)
	}
	return nil
}

// notInNames matches characters of host names that names of agents cannot have.
var notInNames = regexp.MustCompile(`[^a-z0-9-]+`)

// NameOfHost returns the default name of an agent: its host's, adapted to the rules for names.
func NameOfHost() (string, error) {
	name, err := os.Hostname()
	if err != nil {
		return "", err
	}
	name = strings.Trim(notInNames.ReplaceAllString(strings.ToLower(name), "-"), "-")
	name = name[:min(len(name), longestName)]
	return name, CheckName(name)
}

// ParseLabel parses a label as users write it, zone=a.
func ParseLabel(s string) (Label, error) {
	var l Label
	l.Key, l.Value, _ = strings.Cut(s, "=")
	if l.Check() != nil {
		return Label{}, fmt.Errorf("%q is not a label (%s)", shortened(s), allowedLabel)
	}
	return l, nil
}

// ParseLabels parses the labels of one agent, at most most, each key once.
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

// Check returns an error for an invalid label.
func (l Label) Check() error {
	if !labelWord.MatchString(l.Key) || !labelWord.MatchString(l.Value) {
		return fmt.Errorf("%q is not a label (%s)", shortened(l.Key+"="+l.Value), allowedLabel)
	}
	return nil
}

// ParseSelector parses a selector: an agent's name, or labels that an agent must all have, zone=a
// or zone=a,disk=ssd.
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

// Selects reports whether the selector matches the agent.
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

// labelsOf formats an agent's labels as a selector of them all.
func labelsOf(a Agent) string {
	s := Selector{}
	for _, key := range slices.Sorted(maps.Keys(a.Labels)) {
		s.Labels = append(s.Labels, Label{key, a.Labels[key]})
	}
	return s.String()
}

// shortened truncates foreign text for a message.
func shortened(s string) string { return s[:min(len(s), 80)] }
