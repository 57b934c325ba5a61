package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/view"
)

// doctorCommand is `weir doctor`.
type doctorCommand struct {
	Strict  bool `help:"Exit with 5 when something is bad; without it, always with 0."`
	JSON    bool `name:"json" help:"Print a JSON object on stdout."`
	NoColor bool `help:"No colour."`
}

// Help is shown below the verb's flags' heading.
func (*doctorCommand) Help() string {
	return "Looks for what on this host would spoil a measurement now. It watches the processor for a second, and changes nothing. " +
		"Each check says what it found, whether that is ok, a warning or bad, and what to do about it. " +
		"The exit code is 0 whatever it finds; with --strict it is 5 when something is bad."
}

// run examines the host.
func (c *doctorCommand) run(ctx context.Context, e *env) Code {
	return c.diagnose(ctx, e, host.Examine)
}

func (c *doctorCommand) diagnose(ctx context.Context, e *env, examine func(context.Context, host.CheckTarget) []host.Finding) Code {
	ctx, cancel := e.stoppable(ctx)
	defer cancel()
	work, err := filepath.Abs(e.Dir)
	if err != nil {
		work = "."
	}
	facts := host.Environment(ctx)
	d := view.Diagnose(buildinfo.Version(), facts, examine(ctx, host.CheckTarget{Work: work, Temp: os.TempDir()}))
	if ctx.Err() != nil {
		return e.because(Interrupted, errors.New("interrupted"))
	}
	if code := e.printed("the findings", e.answer(c.JSON, d, c.NoColor, d.Show)); code != OK {
		return code
	}
	if c.Strict && d.Health == host.Bad {
		return Invalid
	}
	return OK
}
