package driver

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Confirmations is a driver's table of guarantees, weakest first. The driver's page shows it;
// before a run weir uses it to reject guarantees that no server will give (GuaranteePredictor), and
// Facts looks up in it what the running system gives. So a driver states once what a setting is
// worth.
type Confirmations []Confirmation

// A Confirmation is a row of the table: what a confirmation means if all its conditions hold.
type Confirmation struct {
	When   Conditions
	Source string // https address of the vendor's statement
	Confirms
}

// Conditions must all hold.
type Conditions []Condition

// A Condition is a required value of one setting. It is written as "name: value", alternatives as
// "name: always or everysec". Besides a literal value, which may be yes or no, it may be
//
//	2 to 5       a number in that range
//	2 or more    at least that number
//	majority     "2 of 3": more than half of several nodes, or all of them
//	all          "3 of 3": each of several nodes
//	before 3.13  an earlier version
type Condition struct {
	Name   string   // an option of the driver, replication, or another that Known has
	Values []string // as written; one must match
}

// Known holds what is known of the settings that a table of guarantees names, keyed by those names.
// A number of nodes out of several is written as by Of.
type Known map[string]string

// Of formats that n of the nodes that hold a copy must have it before a message is confirmed.
func Of(n, nodes int) string { return fmt.Sprintf("%d of %d", n, nodes) }

// KnownOf returns the values of options of cfg.
func KnownOf(cfg Config, options ...string) Known {
	k := Known{}
	for _, o := range Options(cfg) {
		if slices.Contains(options, o.Name) {
			k[o.Name] = o.Default
		}
	}
	return k
}

// Of returns what a confirmation means on a running system: the strongest row whose conditions are
// all known to hold, or else the weakest row.
func (cs Confirmations) Of(k Known) Confirms {
	for _, c := range slices.Backward(cs) {
		if held, _ := c.When.hold(k); held {
			return c.Confirms
		}
	}
	return cs[0].Confirms
}

// AtMost returns the strongest meaning that a confirmation may have: the strongest row without a
// condition known not to hold, or else the weakest row.
func (cs Confirmations) AtMost(k Known) Confirms {
	for _, c := range slices.Backward(cs) {
		if _, may := c.When.hold(k); may {
			return c.Confirms
		}
	}
	return cs[0].Confirms
}

// hold reports whether all conditions hold, and whether they may hold.
func (cs Conditions) hold(k Known) (held, may bool) {
	held = true
	for _, c := range cs {
		value, known := k[c.Name]
		if known && !c.Holds(value) {
			return false, false
		}
		held = held && known
	}
	return held, true
}

// Holds reports whether a value meets the condition.
func (c Condition) Holds(value string) bool {
	return slices.ContainsFunc(c.Values, func(want string) bool { return meets(value, want) })
}

// Examples returns values that make the condition hold; for a number of several nodes those of the
// smallest systems.
func (c Condition) Examples() (values []string) {
	for _, v := range c.Values {
		switch m := number.FindStringSubmatch(v); {
		case m != nil:
			values = append(values, m[1])
		case v == "majority", v == "all":
			values = append(values, v, "1", "2", "3") // a value of the option itself, or a number
		default:
			values = append(values, v)
		}
	}
	return values
}

var (
	number = regexp.MustCompile(`^(\d+)(?: (to (\d+)|or more))?$`)
	outOf  = regexp.MustCompile(`^(\d+) of (\d+)$`)
)

// meets reports whether a value satisfies what is wanted.
func meets(value, want string) bool {
	if value == want || value == "true" && want == "yes" || value == "false" && want == "no" {
		return true
	}
	if before, ok := strings.CutPrefix(want, "before "); ok {
		return earlier(value, before)
	}
	if m := outOf.FindStringSubmatch(value); m != nil {
		n, _ := strconv.Atoi(m[1])
		nodes, _ := strconv.Atoi(m[2])
		return nodes > 1 && (want == "all" && n == nodes || want == "majority" && 2*n > nodes && n <= nodes)
	}
	m := number.FindStringSubmatch(want)
	n, err := strconv.Atoi(value)
	if m == nil || err != nil {
		return false
	}
	least, _ := strconv.Atoi(m[1])
	most := least
	if m[3] != "" {
		most, _ = strconv.Atoi(m[3])
	}
	return n >= least && (n <= most || m[2] == "or more")
}

// earlier reports whether a version, such as 3.10.8, precedes another, part by part. A part that is
// not a number does not.
func earlier(version, other string) bool {
	have := strings.Split(version, ".")
	for i, part := range strings.Split(other, ".") {
		if i >= len(have) {
			return true
		}
		a, err := strconv.Atoi(have[i])
		b, _ := strconv.Atoi(part)
		if err != nil || a != b {
			return err == nil && a < b
		}
	}
	return false
}

// String formats the conditions as a page does.
func (cs Conditions) String() string {
	var all []string
	for _, c := range cs {
		all = append(all, c.Name+": "+strings.Join(c.Values, " or "))
	}
	return strings.Join(all, ", ")
}

// parseConditions is the inverse of String.
func parseConditions(text string) (cs Conditions, err error) {
	if text == "" {
		return nil, nil
	}
	for one := range strings.SplitSeq(text, ", ") {
		name, values, ok := strings.Cut(one, ": ")
		if !ok || name == "" || values == "" {
			return nil, fmt.Errorf("%q is not a condition", one)
		}
		c := Condition{Name: name}
		for v := range strings.SplitSeq(strings.ReplaceAll(values, " or more", "\x00"), " or ") {
			c.Values = append(c.Values, strings.ReplaceAll(v, "\x00", " or more"))
		}
		cs = append(cs, c)
	}
	return cs, nil
}

var guaranteeItem = regexp.MustCompile(`^\*\*(\w+)\*\*(?:, copies (\w+))?(?:, stable (\w+))?(?:: (.+))?$`)

// confirmation parses an item of Guarantees.
func confirmation(item string) (c Confirmation, err error) {
	item, source, sourced := strings.Cut(item, " [source](")
	if sourced && !strings.HasSuffix(source, ")") {
		return c, fmt.Errorf("does not end with its source")
	}
	c.Source = strings.TrimSuffix(source, ")")
	m := guaranteeItem.FindStringSubmatch(item)
	if m == nil {
		return c, fmt.Errorf("is not a guarantee")
	}
	if c.Guarantee, err = ParseGuarantee(m[1]); err != nil {
		return c, err
	}
	of := func(table []string, word string) int {
		i := max(0, slices.Index(table, word))
		if word != "" && table[i] != word {
			err = fmt.Errorf("unknown word %q (%s)", word, strings.Join(table, ", "))
		}
		return i
	}
	c.Copies, c.Stable = Copies(of(copies, m[2])), Stable(of(stables, m[3]))
	if err == nil {
		c.When, err = parseConditions(m[4])
	}
	return c, err
}
