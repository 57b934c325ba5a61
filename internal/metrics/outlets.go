package metrics

import (
	"context"
	"net"

	"github.com/weirmq/weir/internal/network"
)

// Outlets publish the runs of a process to other programs: with a server for Prometheus, and by pushing to
// OpenTelemetry. Both use the host's own network, whatever network a run has.
type Outlets struct {
	Figures
	server *Server
	push   *Push
}

// Listen serves the figures at an address as parsed by Address, and returns their URL.
func (o *Outlets) Listen(ctx context.Context, address string) (url string, err error) {
	at, err := Address(address)
	if err == nil {
		err = network.OnHost(func() (err error) {
			o.server, err = Listen(ctx, at, &o.Figures)
			return err
		})
	}
	if err != nil {
		return "", err
	}
	return o.server.URL(), nil
}

// Push pushes the figures to a collector as parsed by Collector. failed is called once, from another
// goroutine, at the first failed push.
func (o *Outlets) Push(ctx context.Context, collector, version string, failed func(error)) error {
	to, err := Collector(collector)
	if err == nil {
		o.push, err = Pushing(ctx, to, version, &o.Figures, onHost(), failed)
	}
	return err
}

// Begin pushes the final figures of the previous run, and begins the next.
func (o *Outlets) Begin(name string, number int, driver string, plan Plan) {
	if o.push != nil {
		o.push.Flush(context.Background())
	}
	o.Figures.Begin(name, number, driver, plan)
}

// Close ends both, and returns the number of pushes and of failed ones.
func (o *Outlets) Close(ctx context.Context) (pushes, failures uint64, err error) {
	if o.server != nil {
		err = o.server.Close()
	}
	if o.push != nil {
		pushes, failures = o.push.Close(ctx)
	}
	return pushes, failures, err
}

// onHost returns a dialer for the host's own network if the run has another one; else nil.
func onHost() Dial {
	if !network.Inside() {
		return nil
	}
	return func(ctx context.Context, kind, address string) (conn net.Conn, err error) {
		err = network.OnHost(func() (err error) {
			conn, err = new(net.Dialer).DialContext(ctx, kind, address)
			return err
		})
		return conn, err
	}
}
