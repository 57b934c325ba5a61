package metrics

import (
	"context"
	"net"

	"github.com/weirmq/weir/internal/network"
)

// Outlets show the runs of a process to other programs while they go: by a server that
// Prometheus asks, and by pushing them to OpenTelemetry. Both are in the host's own network,
// whatever network a run has.
type Outlets struct {
	Figures
	server *Server
	push   *Push
}

// Listen serves the figures at an address as Address takes it, and returns where they are.
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

// Push pushes the figures to a collector as Collector takes it. failed is called once, from
// another goroutine, when a push fails first.
func (o *Outlets) Push(ctx context.Context, collector, version string, failed func(error)) error {
	to, err := Collector(collector)
	if err == nil {
		o.push, err = Pushing(ctx, to, version, &o.Figures, onHost(), failed)
	}
	return err
}

// Begin pushes the last of the run before, and begins the next.
func (o *Outlets) Begin(name string, number int, driver string) {
	if o.push != nil {
		o.push.Flush(context.Background())
	}
	o.Figures.Begin(name, number, driver)
}

// Close ends both, and returns how many pushes there were and how many of them failed.
func (o *Outlets) Close(ctx context.Context) (pushes, failures uint64, err error) {
	if o.server != nil {
		err = o.server.Close()
	}
	if o.push != nil {
		pushes, failures = o.push.Close(ctx)
	}
	return pushes, failures, err
}

// onHost dials in the host's own network from a run that has another one; nil elsewhere.
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
