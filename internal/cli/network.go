package cli

import (
	"context"
	"errors"

	"github.com/weirmq/weir/internal/network"
	"github.com/weirmq/weir/internal/scenario"
	"github.com/weirmq/weir/internal/series"
	"github.com/weirmq/weir/internal/view/layout"
)

// enter has this process begin again at the clients' end of a network, where a scenario
// wants one and it is not there yet. Servers are installed before, since nothing outside is
// reached from there. stdin is what of it was read; nil: nothing was. by says which agents do the
// runs. It returns OK where the process goes on as it is.
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
		return e.failed(errors.New("network: this program cannot begin again at the other end of one"))
	}
	signalled, stop := e.stoppable(ctx)
	err = series.Install(signalled, e.host(), all, func(line string) { e.say("weir: %s", line) })
	stop()
	if err != nil {
		return e.told(codeOf(err), err)
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

// run lists the profiles with their sources, and says whether this host lends a network.
func (c *networkCommand) run(_ context.Context, e *env) Code {
	p := new(layout.Page)
	network.Show(p)
	return e.printed("the profiles", e.show(p, c.NoColor))
}
