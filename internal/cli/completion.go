package cli

import (
	"context"
	"io"

	"github.com/alecthomas/kong"

	"github.com/weirmq/weir/internal/commandline"
)

// completionCommand is `weir completion`.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish."`
}

// Help says how to install the script in the shell.
func (*completionCommand) Help() string {
	return "Add one of these to your shell's startup file:\n\n" +
		"  ~/.bashrc                   source <(weir completion bash)\n" +
		"  ~/.zshrc                    source <(weir completion zsh)\n" +
		"  ~/.config/fish/config.fish  weir completion fish | source\n\n" +
		"It completes verbs, flags and their values, drivers, a driver's options (--option, of the driver given by --driver, " +
		"the scenario or WEIR_DRIVER) and their values, scenario files and folders."
}

// run prints the script.
func (c *completionCommand) run(_ context.Context, e *env) Code {
	_, err := io.WriteString(e.Stdout, commandline.Script(c.Shell))
	return e.printed("the script", err)
}

// complete answers the shells' scripts; see commandline.Complete.
func (e *env) complete(app *kong.Application, words []string) Code {
	in := commandline.Completing{Drivers: e.registry, Env: e.Env, Path: e.path}
	_, err := io.WriteString(e.Stdout, commandline.Complete(app, in, words))
	return unheard(err)
}
