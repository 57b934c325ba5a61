package nats

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natsconn"
)

// Subject patterns of the other subscriptions.
const (
	formLiteral  = "literal"
	formWildcard = "wildcard"
)

// Interest configures subscriptions held by an additional client during a run. The server checks
// each message against them, and none matches.
type Interest struct {
	Subscriptions int    `option:"subscriptions" min:"0" max:"1000000" help:"Subscriptions that an additional client holds during the run. The server searches them for each message, and none matches."`
	Form          string `option:"form" allowed:"literal,wildcard" help:"Subjects of the additional subscriptions: literal ones next to the run's, or ones with wildcards that match all but the last token."`
}

// subject returns the subject of the n-th subscription. A destination's subject consists of weir,
// the run's token and its own, and no token contains a tilde.
func (i *Interest) subject(run string, n int) string {
	run, last := natsconn.Token(run), "other~"+strconv.Itoa(n)
	if i.Form == formWildcard {
		switch n % 3 {
		case 0:
			return "*." + run + "." + last
		case 1:
			return "weir.*." + last
		default:
			return "weir." + run + "." + last + ".>"
		}
	}
	return "weir." + run + "." + last
}

// interestLimit limits how long a server may take to register all subscriptions.
const interestLimit = 30 * time.Second

// hold subscribes, on its own connection. When the server answers a PING after the last
// subscription, it knows them all.
func (i *Interest) hold(ctx context.Context, o *natsconn.Options, run driver.Run) (*natsconn.Link, error) {
	ctx, cancel := context.WithTimeout(ctx, interestLimit)
	defer cancel()
	link, err := natsconn.Connect(ctx, o, run, "interest", natsconn.Events{})
	if err != nil {
		return nil, err
	}
	none := make(chan *nats.Msg, 1) // shared by all, and never receives anything
	for n := range i.Subscriptions {
		if _, err = link.ChanSubscribe(i.subject(run.ID, n), none); err != nil {
			break
		}
	}
	if err == nil {
		err = link.FlushWithContext(ctx)
	}
	if refused := link.LastError(); err == nil && refused != nil {
		err = refused
	}
	if err != nil {
		_ = link.Close(ctx)
		return nil, fmt.Errorf("making %d other subscriptions: %w", i.Subscriptions, natsconn.Cause(err))
	}
	return link, nil
}

// errInterest is returned if subscriptions are not possible.
var errInterest = &driver.OptionError{Name: "interest.subscriptions", Err: errors.New("is for subjects that weir makes (leave out topology.names)")}
