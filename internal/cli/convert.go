package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/omb"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/scenario/tree"
	"github.com/weirmq/weir/internal/userfile"
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
		e.complain(err)
		return Usage
	}
	workload, driver, err := c.read(e)
	if err != nil {
		faulty(e, err)
		return Usage
	}
	folder := "."
	if c.Out != nil {
		folder = filepath.Dir(*c.Out)
	}
	made, err := omb.Convert(workload, driver, func(payload string) (string, bool) { return payloadOf(e, workload.At.Source, payload, folder) })
	if err != nil {
		faulty(e, err)
		return Usage
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Made by weir convert from %s.\n", strings.Join(c.Files, " and "))
	for _, n := range made.Notes {
		e.say("%v", n)
		fmt.Fprintf(&b, "# %s\n", strings.Map(visible, n.Error()))
	}
	text, err := omb.YAML(made.Scenario)
	if err == nil {
		b.Write(text)
		err = e.outlet().Deliver(c.Out, b.Bytes())
	}
	if err != nil {
		e.complain(fmt.Errorf("writing the scenario: %w", err))
		return Failed
	}
	return OK
}

// visible keeps a comment on its line.
func visible(r rune) rune {
	if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 {
		return '?'
	}
	return r
}

// read reads the files, and tells by their keys what they are.
func (c *convertCommand) read(e *env) (workload, driver *tree.Node, err error) {
	const allowed = "a workload, a driver file, or one of each"
	for _, name := range c.Files {
		b, err := userfile.Read(e.path(name), scenario.MaxFile)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil, fmt.Errorf("%s: there is no such file (%s)", name, allowed)
		case err != nil:
			return nil, nil, fmt.Errorf("reading %s: %w", name, err)
		}
		n, faults := tree.Parse(name, b)
		if err := faults.Done(); err != nil {
			return nil, nil, err
		}
		switch {
		case n.Field("weir") != nil:
			return nil, nil, fmt.Errorf("%s: is a scenario already (%s)", name, allowed)
		case omb.IsWorkload(n) && workload == nil:
			workload = n
		case omb.IsDriver(n) && driver == nil:
			driver = n
		case omb.IsWorkload(n), omb.IsDriver(n):
			return nil, nil, fmt.Errorf("%s: is a second file of its kind (%s)", name, allowed)
		default:
			return nil, nil, fmt.Errorf("%s: is not a file of the OpenMessaging Benchmark: it has neither topics and messageSize nor driverClass (%s)", name, allowed)
		}
	}
	return workload, driver, nil
}

// payloadOf looks for the payload that a workload names: in the working folder, as the
// benchmark does, beside the workload, and above it. The name that it returns is relative
// to folder.
func payloadOf(e *env, workload, payload, folder string) (string, bool) {
	beside := filepath.Dir(workload)
	for _, dir := range []string{".", beside, filepath.Join(beside, "..")} {
		at := filepath.Join(dir, payload)
		if filepath.IsAbs(payload) {
			at = payload
		}
		at, err := filepath.Abs(e.path(at))
		if err != nil {
			return "", false
		}
		if st, err := os.Stat(at); err != nil || !st.Mode().IsRegular() {
			continue
		}
		if from, err := filepath.Abs(e.path(folder)); err == nil {
			if near, err := filepath.Rel(from, at); err == nil {
				return filepath.ToSlash(near), true
			}
		}
		return at, true
	}
	return "", false
}

// benchmark converts what is a workload of the OpenMessaging Benchmark, by its keys. What
// a scenario has not is told once.
func (c *runCommand) benchmark(e *env, in *scenario.Inputs) error {
	if in.File == "" || len(in.Text) > scenario.MaxFile || !bytes.Contains(in.Text, []byte("topics")) && !bytes.Contains(in.Text, []byte("driverClass")) {
		return nil
	}
	n, faults := tree.Parse(in.File, in.Text)
	switch {
	case n == nil, len(faults) > 0: // told where it is resolved
		return nil
	case omb.IsDriver(n) && !omb.IsWorkload(n):
		return fmt.Errorf("%s: is a driver file of the OpenMessaging Benchmark, which says nothing of the load (weir convert WORKLOAD.yaml %[1]s)", in.File)
	case !omb.IsWorkload(n):
		return nil
	}
	folder := filepath.Dir(in.File)
	made, err := omb.Convert(n, nil, func(payload string) (string, bool) { return payloadOf(e, in.File, payload, folder) })
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
		if told := c.converted || given && fault.Path == "producerRate"; !told {
			e.say("weir: %v", fault)
		}
	}
	c.converted = true
	return nil
}
