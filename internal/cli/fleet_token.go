package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/view/layout"
)

// fleetToken is `weir fleet token`.
type fleetToken struct {
	TTL    time.Duration `name:"ttl" default:"24h" placeholder:"DURATION" help:"How long agents may join with it (24h)."`
	Listen string        `placeholder:"HOST:PORT" help:"Where weir run --listen will be on this host, as the agents reach it (the address that this host sends from, port 7622)."`
	Revoke string        `placeholder:"ID" help:"Revoke the token of this id, and make none."`
	List   bool          `help:"List the tokens that were made, without their secrets, and make none."`
	JSON   bool          `name:"json" help:"Print a JSON object on stdout. Where a token is made it holds the URL, which is a secret."`
}

// Help is shown below the verb's flags' heading.
func (*fleetToken) Help() string {
	return fleetHelp + " The URL on stdout is a secret: with it any process may join until the token expires. It names the certificate by its fingerprint, so that agents need nothing else."
}

// run creates, lists or revokes tokens.
func (c *fleetToken) run(_ context.Context, e *env) Code {
	if c.List && c.Revoke != "" {
		return usage(e, errors.New("--list and --revoke exclude each other (use one of them)"))
	}
	dir, err := admission.Dir(e.Env)
	if err != nil {
		return usage(e, err)
	}
	listen, reach := "", ""
	if !c.List && c.Revoke == "" {
		if c.TTL < admission.MinLife || c.TTL > admission.MaxLife {
			return usage(e, fmt.Errorf("--ttl: %v is out of range (1s to %dh)", c.TTL, int(admission.MaxLife.Hours())))
		}
		if listen, reach, err = admission.Reachable(c.Listen); err != nil {
			return usage(e, fmt.Errorf("--listen: %w", err))
		}
	}
	now := time.Now()
	keep, err := admission.Open(dir, now)
	if err != nil {
		return e.failed(err)
	}
	out := admission.Tokens{Schema: "weir.fleet-token/v1", Weir: buildinfo.Version(), Folder: dir, Pin: keep.Pin().String(), Tokens: []admission.Issued{}}
	made := admission.Token{}
	id := c.Revoke
	switch {
	case c.List:
	case c.Revoke != "":
		if err := keep.Revoke(c.Revoke); errors.Is(err, admission.ErrToken) {
			return usage(e, fmt.Errorf("--revoke: %w (weir fleet token --list has them)", err))
		} else if err != nil {
			return e.failed(err)
		}
	default:
		if made, err = keep.New(c.TTL, now); err != nil {
			return e.failed(err)
		}
		id = made.ID()
		a := admission.Address{Scheme: admission.SchemeWeir, Host: reach, Pin: keep.Pin(), Token: made}
		out.Listen, out.Join = listen, a.Reveal()
	}
	all, err := keep.List()
	if err != nil {
		return e.failed(err)
	}
	for _, t := range all {
		if c.List || t.ID == id {
			out.Tokens = append(out.Tokens, t)
		}
	}
	if code := c.write(e, out, now); code != OK {
		return code
	}
	switch {
	case c.List:
	case c.Revoke != "":
		e.say("token %s is revoked: no agent can join with it any more; agents that joined stay", c.Revoke)
	case admission.OnLoopback(listen):
		e.say("only this host reaches %s: agents of this user join with weir://%[1]s and need no token; others join with the line above, which is a secret", listen)
	default:
		e.say("on each host: weir agent --join URL (the URL is the line above, and a secret)")
		e.say("on this one:  weir run --fleet N --listen %s FILE", listen)
		e.say("the token expires on %s; weir fleet token --revoke %s revokes it before", made.Ends().Local().Format("2 January 2006 at 15:04:05 MST"), id)
	}
	return OK
}

// write prints the tokens on stdout.
func (c *fleetToken) write(e *env, out admission.Tokens, now time.Time) Code {
	if c.List && !c.JSON && len(out.Tokens) == 0 {
		e.say("no token was made in %s", out.Folder)
		return OK
	}
	return e.printed("the tokens", e.answer(c.JSON, out, true, func(p *layout.Page) {
		switch {
		case c.List:
			out.Show(p, now)
		case out.Join != "":
			p.Verbatim(out.Join)
		}
	}))
}
