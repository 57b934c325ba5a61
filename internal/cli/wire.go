package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/judge"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/series"
	"github.com/weirmq/weir/result"
)

// wireFlag is of the verbs that run scenarios of the user's.
type wireFlag struct {
	Wire *string `placeholder:"auto|on|off" help:"Show how much of the latency was spent on this host, and how much in the network and the system. eBPF programs record when a sample of messages left this host and when the answers came in. auto: record if this host allows it. on: the same, and warn if it does not. off: do not record. Costs up to 2 % of weir's processor time; needs Linux 5.8, and root or CAP_BPF and CAP_NET_ADMIN. Example: sudo weir run --wire on (default: auto)."`
}

// asked reads --wire.
func (f *wireFlag) asked() (series.Wire, error) {
	word := "auto"
	if f.Wire != nil {
		word = *f.Wire
	}
	switch word {
	case "auto":
		return series.WireAuto, nil
	case "on":
		return series.WireOn, nil
	case "off":
		return series.WireOff, nil
	}
	return 0, fmt.Errorf("--wire: %q is not known (auto, on, off)", word)
}

// requireWire is the word of --require that demands kernel instants.
const requireWire = "wire"

// wiring reads --wire and --require.
func (c *runCommand) wiring(e *env) error {
	words, flag := "", c.Require != nil
	if flag {
		words = *c.Require
	} else if v, ok := e.Env("WEIR_REQUIRE"); ok {
		words = v
	}
	var rest []string
	for word := range strings.SplitSeq(words, ",") {
		if !strings.EqualFold(word, requireWire) {
			rest = append(rest, word)
		}
	}
	demanded := len(rest) < strings.Count(words, ",")+1
	verdict := c.Require
	switch {
	case demanded && len(rest) == 0:
		verdict = new(string(result.Suspect))
	case demanded:
		verdict = new(strings.Join(rest, ","))
	}
	var err error
	if c.require, err = e.requirement(verdict); err != nil {
		return err
	}
	if c.wire, err = c.asked(); err != nil || !demanded {
		return err
	}
	if c.wire == series.WireOff {
		return errors.New("--require wire: --wire off excludes it")
	}
	if err := series.CheckWire(); err != nil {
		return fmt.Errorf("--require wire: %w", err)
	}
	c.wire, c.wired = series.WireOn, true
	return nil
}

// wirable returns an error if --require wire demands what kernel instants cannot say of a scenario.
func (c *runCommand) wirable(scenarios []*scenario.Scenario) error {
	if !c.wired {
		return nil
	}
	for _, s := range scenarios {
		if why := engine.Unwired(s.Mode, s.System.Definition.Name, s.System.Config); why != "" {
			return fmt.Errorf("--require wire: %s", why)
		}
	}
	return nil
}

// splits returns an error if objectives are about what kernel instants show, and none are recorded: no probe of a
// search could keep them.
func (c *runCommand) splits(scenarios []*scenario.Scenario) error {
	for _, s := range scenarios {
		i := slices.IndexFunc(s.Objectives, judge.Objective.OfSystem)
		if i < 0 {
			continue
		}
		if c.wire == series.WireOff {
			return fmt.Errorf("--slo: %q is known by kernel instants alone (--wire auto)", s.Objectives[i])
		}
		if c.Fleet != nil { // its agents' hosts decide
			return nil
		}
		if err := series.CheckWire(); err != nil {
			return fmt.Errorf("--slo: %q: %w", s.Objectives[i], err)
		}
	}
	return nil
}
