package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weirmq/weir/engine"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/series"
	"github.com/weirmq/weir/result"
)

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
	word := "auto"
	if c.Wire != nil {
		word = *c.Wire
	}
	switch word {
	case "auto":
		c.wire = series.WireAuto
	case "on":
		c.wire = series.WireOn
	case "off":
		c.wire = series.WireOff
	default:
		return fmt.Errorf("--wire: %q is not known (auto, on, off)", word)
	}
	if !demanded {
		return nil
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
