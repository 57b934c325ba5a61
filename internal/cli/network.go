package cli

import (
	"context"
	"errors"

	"github.com/weirmq/weir/internal/network"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/series"
	"github.com/weirmq/weir/internal/view/layout"
)

// enter re-executes this process at the clients' end of a network, if a scenario needs one and the process
// is not there yet. It installs servers first, since nothing outside is reachable from there. stdin is the
// standard input already read; nil: none. by says which agents execute the runs. It returns OK if the
// process continues as it is.
func (e *env) enter(ctx context.Context, all []*scenario.Scenario, stdin []byte, by gathering) Code {
	wanted, err := series.CheckNetwork(all, by.Fleet != nil)
	if err == nil {
		err = series.CheckFaults(ctx, e.Self, all, by.executors())
	}
	if err != nil {
		return e.refused(err)
	}
	if !wanted || network.Inside() {
		return OK
	}
	if e.Enter == nil {
		return e.failed(errors.New("network: this program cannot re-exec inside the namespace"))
	}
	signalled, stop := e.stoppable(ctx)
	err = series.Install(signalled, e.host(), all, func(line string) { e.say("weir: %s", line) })
	stop()
	if err != nil {
		return e.because(codeOf(err), err)
	}
	if err := e.Enter(stdin); err != nil {
		e.complain(err)
	}
	return Failed
}

// networkCommand is `weir network`.
type networkCommand struct {
	NoColor bool `help:"No colour."`
}

// run lists the profiles with their sources, and whether this host supports a network.
func (c *networkCommand) run(_ context.Context, e *env) Code {
	p := new(layout.Page)
	network.Show(p)
	return e.printed("the profiles", e.show(p, c.NoColor))
}
