package cli

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/weirmq/weir/internal/omb"
	"github.com/weirmq/weir/internal/scenario"
)

// convertCommand is `weir convert`.
type convertCommand struct {
	Files []string `arg:"" name:"file" help:"A workload of the OpenMessaging Benchmark, one of its driver files, or one of each (YAML)."`
	Out   *string  `short:"o" placeholder:"FILE" help:"Write the scenario to this file, which must not exist, instead of stdout."`
}

// Help is what kong adds to the verb's help.
func (convertCommand) Help() string {
	return "Writes a scenario that does the same as the workload. Lists on stderr, by file and line, each setting that a scenario lacks or expresses differently. " +
		"The same lines stand at the head of the scenario. weir run and weir capacity take a workload itself, too."
}

// run ends at the first signal.
func (c *convertCommand) run(ctx context.Context, e *env) Code {
	return e.interruptible(ctx, func() Code { return c.convert(e) })
}

func (c *convertCommand) convert(e *env) Code {
	if err := e.outlet().Check(c.Out); err != nil {
		return e.refused(err)
	}
	folder := "."
	if c.Out != nil {
		folder = filepath.Dir(*c.Out)
	}
	files := omb.Files{Path: e.path}
	err := files.Read(c.Files)
	var made omb.Converted
	if err == nil {
		made, err = files.Convert(folder)
	}
	if err != nil {
		return e.refused(err)
	}
	for _, n := range made.Notes {
		e.say("%v", n)
	}
	text, err := made.File(c.Files)
	if err == nil {
		err = e.outlet().Deliver(c.Out, text)
	}
	return e.printed("the scenario", err)
}

// benchmark converts a workload of the OpenMessaging Benchmark, recognized by its keys. It reports once
// what a scenario cannot express.
func (c *runCommand) benchmark(e *env, in *scenario.Inputs) error {
	if in.File == "" {
		return nil
	}
	n, err := omb.Recognize(in.File, in.Text)
	if n == nil {
		return err
	}
	files := omb.Files{Path: e.path, Workload: n}
	made, err := files.Convert(filepath.Dir(in.File))
	if err != nil {
		return err
	}
	given := slices.ContainsFunc(slices.Concat(in.Environ, in.Overrides), func(o scenario.Override) bool {
		return o.Path == "load.rate" || o.Path == "load.profile"
	})
	if made.Search != nil && !given {
		return scenario.Faults{{At: made.Search.At, Path: "producerRate", Message: "0 asks for the highest rate that is sustained, which one run does not find (weir capacity " + in.File + " --rate 10000/s --slo OBJECTIVE, or --rate)"}}
	}
	in.Tree = made.Scenario
	for _, fault := range made.Notes {
		if mentioned := c.converted || given && fault.Path == "producerRate"; !mentioned {
			e.say("weir: %v", fault)
		}
	}
	c.converted = true
	return nil
}
