package survey

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/fleet/hub"
)

// A Place is where a survey finds agents.
type Place struct {
	Server admission.Address // a NATS server, or a coordinator; zero: none
	// Listen is where a coordinator of this host listens, without a Server. If one does, the survey
	// connects as an agent would. If none does, the survey listens there itself, so that agents waiting for
	// a coordinator connect; it lets none join.
	Listen string
	Keep   *admission.Keep // has certificate and tokens
}

// reach connects to the agents' server. leave disconnects.
func (p *Place) reach(ctx context.Context, log *slog.Logger) (nc *nats.Conn, s *Sight, leave func(), err error) {
	const name = "survey"
	if p.Server.Host != "" {
		if nc, err = dialAs(ctx, p.Server, name, log); err != nil {
			return nil, nil, nil, err
		}
		return nc, &Sight{At: p.Server.String()}, nc.Close, nil
	}
	dir, err := os.MkdirTemp("", "weir-survey-")
	if err != nil {
		return nil, nil, nil, fmt.Errorf("making a folder for the survey: %w", err)
	}
	h, err := hub.Start(ctx, hub.Options{Listen: p.Listen, Keep: p.Keep, Dir: dir, Log: log})
	if err != nil {
		_ = os.RemoveAll(dir)
		if errors.Is(err, hub.ErrPortTaken) {
			return p.enter(ctx, err, log)
		}
		return nil, nil, nil, err
	}
	end := func() {
		h.Close()
		_ = os.RemoveAll(dir)
	}
	if nc, err = h.Dial(ctx, name, log); err != nil {
		end()
		return nil, nil, nil, err
	}
	return nc, &Sight{At: h.JoinURL("", admission.Token{}).String(), StoodIn: true}, func() { nc.Close(); end() }, nil
}

// enter connects to a coordinator that already listens there, as its agents do.
func (p *Place) enter(ctx context.Context, taken error, log *slog.Logger) (*nats.Conn, *Sight, func(), error) {
	host, port, err := net.SplitHostPort(p.Listen)
	if err != nil {
		return nil, nil, nil, taken
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	a := p.Keep.Own(admission.Address{Scheme: admission.SchemeWeir, Host: net.JoinHostPort(host, port)})
	nc, err := dialAs(ctx, a, "survey", log)
	switch {
	case err == nil:
		return nc, &Sight{At: a.String()}, nc.Close, nil
	case errors.Is(err, driver.ErrAuth), errors.Is(err, admission.ErrPin):
		return nil, nil, nil, fmt.Errorf("%w, by a coordinator that has its certificate and tokens in another folder (WEIR_FLEET_DIR; or --nats with the URL by which its agents join)", taken)
	}
	return nil, nil, nil, fmt.Errorf("%w, and not by a coordinator (--listen with another port; --nats to ask at a NATS server)", taken)
}

// dialAs connects a temporary process.
func dialAs(ctx context.Context, a admission.Address, name string, log *slog.Logger) (*nats.Conn, error) {
	self, err := admission.NewSelf()
	if err != nil {
		return nil, err
	}
	return hub.Dial(ctx, a, self, name, log)
}
