package hub

import (
	"crypto/subtle"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/weirmq/weir/internal/fleet/join"
)

// Subjects of a fleet.
const (
	// Subjects is the prefix of all that agents publish.
	Subjects = "weir.fleet."
	// Orders is the prefix of what only the coordinator publishes.
	Orders = "weir.order."
	// Reports is the prefix of what agents publish for a stream to take.
	Reports = Subjects + "report."
)

// The accounts, and what passes from one to the other.
const (
	accountFleet = "FLEET"
	accountBooks = "BOOKS"
	accounts     = `accounts {
	` + accountBooks + ` { jetstream: enabled, exports: [ {service: "` + Reports + `>", accounts: [` + accountFleet + `]} ] }
	` + accountFleet + ` { imports: [ {service: {account: ` + accountBooks + `, subject: "` + Reports + `>"}} ] }
}`
)

// A gate lets clients in, and says what they may do. The server calls it on a
// goroutine of each connection.
type gate struct {
	keep               *join.Keep
	now                func() time.Time
	said               *voice
	fleetKey, booksKey string // of the coordinator's own connections
	fleet, books       *server.Account
}

// accounts finds the accounts of a server that was made, and not yet started.
func (g *gate) accounts(s *server.Server) (err error) {
	if g.fleet, err = s.LookupAccount(accountFleet); err == nil {
		g.books, err = s.LookupAccount(accountBooks)
	}
	return err
}

// Check implements server.Authentication.
func (g *gate) Check(c server.ClientAuthentication) bool {
	token := ""
	if o := c.GetOpts(); o != nil {
		token = o.Token
	}
	from := c.RemoteAddress()
	if from == nil {
		return false // it is gone already, and from where is not known any more
	}
	if from.Network() == "pipe" {
		switch {
		case same(token, g.fleetKey):
			c.RegisterUser(&server.User{Username: "coordinator", Account: g.fleet})
		case same(token, g.booksKey):
			c.RegisterUser(&server.User{Username: "coordinator", Account: g.books})
		default:
			g.said.refuse("this process", join.ErrToken)
			return false
		}
		return true
	}
	if c.Kind() != server.CLIENT {
		g.said.refuse(from.String(), join.ErrToken)
		return false
	}
	if g.keep != nil {
		if _, err := g.keep.Check(token, g.now()); err != nil {
			g.said.refuse(from.String(), err)
			return false
		}
	}
	c.RegisterUser(&server.User{Username: "agent", Account: g.fleet, Permissions: leave()})
	return true
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// leave is what an agent may do; the package comment says it in words.
func leave() *server.Permissions {
	all := []string{Subjects + ">", "$SRV.>", "_INBOX.>"}
	return &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: all},
		Subscribe: &server.SubjectPermission{Allow: append([]string{Orders + ">"}, all...), Deny: []string{Reports + ">"}},
	}
}
