package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/series"
)

// again returns the scenarios of the folder of --append, each repeated as --repeat says. They are the
// stored ones: runs with other settings would not be repeats.
func (c *runCommand) again(e *env) ([]*scenario.Scenario, error) {
	switch {
	case *c.Append == "":
		return nil, errors.New("--append: is empty (the folder of several runs)")
	case c.Out != nil:
		return nil, errors.New("--append: names the folder (leave out --out)")
	}
	in, err := c.inputsOfFolder(e)
	if err != nil {
		return nil, err
	}
	repeat := scenario.Override{Flag: "--repeat", Path: "repeat", Value: "1"}
	for _, o := range c.keys.Overrides() {
		if o.Path != "repeat" {
			return nil, fmt.Errorf("--append: repeats the runs of %s with their own settings (leave out %s; --repeat says how often)", *c.Append, o.Flag)
		}
		repeat.Value = o.Value
		if c.UntilShown != nil {
			return nil, errors.New("--until-shown: adds a run of each until it is shown (leave out --repeat)")
		}
	}
	switch {
	case c.File != "":
		return nil, fmt.Errorf("--append: takes the scenarios of %s (leave out %s)", *c.Append, c.File)
	case len(c.Option)+len(c.Address) > 0:
		return nil, fmt.Errorf("--append: repeats the runs of %s with their own settings (leave out --option and --address)", *c.Append)
	}
	if c.plan, err = series.Append(e.path(*c.Append), filepath.Clean(*c.Append)); err != nil {
		return nil, fmt.Errorf("--append: %w", err)
	}
	err = c.plan.Resolve(in, repeat)
	return c.plan.Scenarios(), err
}

// inputsOfFolder returns the inputs for stored scenarios, which ignore WEIR_OUT.
func (c *runCommand) inputsOfFolder(e *env) (scenario.Inputs, error) {
	if err := c.environment(e); err != nil {
		return scenario.Inputs{}, err
	}
	c.Out = nil
	return c.inputs(e)
}

// isFolder reports whether a user's path names a folder.
func (e *env) isFolder(path string) bool {
	st, err := os.Stat(e.path(path))
	return path != "" && err == nil && st.IsDir()
}

// left returns the scenarios of the incomplete runs in the folder of --resume, from its plan.
func (c *runCommand) left(e *env) ([]*scenario.Scenario, error) {
	if c.File != "" || c.Append != nil || c.UntilShown != nil || c.Out != nil || len(c.keys.Overrides()) > 0 || len(c.Option) > 0 || len(c.Address) > 0 {
		return nil, fmt.Errorf("--resume: does the other runs of %s as they were planned (leave out the scenario and its flags, --out, --append and --until-shown)", *c.Resume)
	}
	in, err := c.inputsOfFolder(e)
	if err != nil {
		return nil, err
	}
	if c.plan, err = series.Resume(e.path(*c.Resume), filepath.Clean(*c.Resume)); err != nil {
		return nil, fmt.Errorf("--resume: %w", err)
	}
	err = c.plan.Resolve(in, scenario.Override{})
	if err == nil && len(c.plan.Scenarios()) == 0 {
		err = fmt.Errorf("--resume: all runs of %s are done (weir run --append %[1]s --repeat N adds runs)", *c.Resume)
	}
	return c.plan.Scenarios(), err
}
