package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/fleet/hub"
	"github.com/weirmq/weir/internal/fleet/join"
)

// visitorLife is how long the token is good by which a survey enters a coordinator
// that runs; it is taken back when the survey is done.
const visitorLife = 2 * time.Minute

// A Place is where a survey finds agents.
type Place struct {
	Server join.Address // a NATS server, or a coordinator's; its zero value: none
	// Without a Server it is where a coordinator of this host listens. Where one does,
	// the survey enters as an agent would. Where none does, the survey listens there
	// itself, so that agents that wait for a coordinator come in; it lets none join.
	Listen string
	Keep   *join.Keep // of certificate and tokens; nil: as hub.Options.Keep
	// Other is asked for a keep where Keep is nil and whoever listens asks for TLS;
	// nil: there is none.
	Other func() (*join.Keep, error)
}

// reach connects to where the agents are. leave undoes it.
func (p *Place) reach(ctx context.Context, log *slog.Logger) (nc *nats.Conn, s *Sight, leave func(), err error) {
	const name = "survey"
	if p.Server.Host != "" {
		if nc, err = hub.Dial(ctx, p.Server, name, log); err != nil {
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
	return nc, &Sight{At: h.JoinURL("", join.Token{}).String(), StoodIn: true}, func() { nc.Close(); end() }, nil
}

// enter goes in where a coordinator listens already, as its agents do.
func (p *Place) enter(ctx context.Context, taken error, log *slog.Logger) (*nats.Conn, *Sight, func(), error) {
	host, port, err := net.SplitHostPort(p.Listen)
	if err != nil {
		return nil, nil, nil, taken
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	where := net.JoinHostPort(host, port)
	open := func() (*nats.Conn, string, error) {
		a := join.Address{Scheme: join.SchemeNATS, Host: where}
		nc, err := hub.Dial(ctx, a, "survey", log)
		return nc, a.String(), err
	}
	if p.Keep == nil {
		nc, at, err := open()
		if err == nil {
			return nc, &Sight{At: at}, nc.Close, nil
		}
	}
	keep := p.Keep
	if keep == nil && p.Other != nil {
		if keep, err = p.Other(); err != nil {
			return nil, nil, nil, fmt.Errorf("%w, and whoever listens there wants TLS: %w", taken, err)
		}
	}
	if keep != nil {
		nc, at, leave, err := p.guest(ctx, keep, where, log)
		if err == nil {
			return nc, &Sight{At: at}, leave, nil
		}
		if errors.Is(err, driver.ErrAuth) || errors.Is(err, join.ErrPin) {
			return nil, nil, nil, fmt.Errorf("%w, by a coordinator that has its certificate and tokens in another folder (WEIR_FLEET_DIR; or --nats with the URL by which its agents join)", taken)
		}
		if nc, at, err := open(); p.Keep != nil && err == nil { // it has no keep, and this has
			return nc, &Sight{At: at}, nc.Close, nil
		}
	}
	return nil, nil, nil, fmt.Errorf("%w, by no coordinator (--listen with another port; --nats to ask at a NATS server)", taken)
}

// guest goes in by a token that is good for this.
func (p *Place) guest(ctx context.Context, keep *join.Keep, where string, log *slog.Logger) (*nats.Conn, string, func(), error) {
	token, err := keep.New(visitorLife, time.Now())
	if err != nil {
		return nil, "", nil, err
	}
	forget := func() {
		if err := keep.Forget(token.ID()); err != nil {
			log.Warn("the survey's token is left behind", "id", token.ID(), "why", err)
		}
	}
	a := join.Address{Scheme: join.SchemeWeir, Host: where, Pin: keep.Pin(), Token: token}
	nc, err := hub.Dial(ctx, a, "survey", log)
	if err != nil {
		forget()
		return nil, "", nil, err
	}
	return nc, a.String(), func() { nc.Close(); forget() }, nil
}
