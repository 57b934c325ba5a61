package hub

import (
	"crypto/subtle"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/weirmq/weir/internal/fleet/admission"
)

// Subjects of a fleet. Below them a session is a coordinator's and an id is
// admission.Self.ID of an agent, which may use those of its own id alone.
const (
	// Subjects is the prefix of all that agents publish: ask.about, ask.coordinator and
	// ask.<id>.*, which all may ask; <session>.door.<id>.*, <session>.clock,
	// <session>.leaders.<id> and <session>.standing.<id>.
	Subjects = "weir.fleet."
	// Orders is the prefix of what only the coordinator publishes: beacon, all.<session>
	// and all.<session>.books.<run> to all; agent.<id>.* to one.
	Orders = "weir.order."
	// Reports is the prefix of what agents publish for a stream to take: <session>.<run>.<id>.
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

// An authenticator lets clients in, and says what they may do. The server calls it on a
// goroutine of each connection.
type authenticator struct {
	keep               *admission.Keep
	now                func() time.Time
	said               *logger
	fleetKey, booksKey string // of the coordinator's own connections
	fleet, books       *server.Account
}

// accounts finds the accounts of a server that was made, and not yet started.
func (g *authenticator) accounts(s *server.Server) (err error) {
	if g.fleet, err = s.LookupAccount(accountFleet); err == nil {
		g.books, err = s.LookupAccount(accountBooks)
	}
	return err
}

// Check implements server.Authentication.
func (g *authenticator) Check(c server.ClientAuthentication) bool {
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
			g.said.refuse("this process", admission.ErrToken)
			return false
		}
		return true
	}
	if c.Kind() != server.CLIENT {
		g.said.refuse(from.String(), admission.ErrToken)
		return false
	}
	id, err := g.known(c, token)
	if err != nil {
		g.said.refuse(from.String(), err)
		return false
	}
	c.RegisterUser(&server.User{Username: "agent", Account: g.fleet, Permissions: leave(id)})
	return true
}

// known returns the ID of the process that connects, which has a good token and signed
// this connection.
func (g *authenticator) known(c server.ClientAuthentication, token string) (id string, err error) {
	if _, err := g.keep.Check(token, g.now()); err != nil {
		return "", err
	}
	o := c.GetOpts()
	return o.Nkey, admission.CheckSigned(o.Nkey, o.Sig, c.GetNonce())
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// leave is what the agent of that ID may do; the package comment says it in words.
func leave(id string) *server.Permissions {
	return &server.Permissions{
		Publish: &server.SubjectPermission{Allow: []string{
			Subjects + "ask.>", Subjects + "*.door." + id + ".*", Subjects + "*.clock", Subjects + "*.leaders." + id, Subjects + "*.standing." + id, Reports + "*.*." + id, "$SRV.>",
		}},
		Subscribe: &server.SubjectPermission{Allow: []string{
			// None may end in *: the server lets through who subscribes to > there.
			Orders + "beacon", Orders + "all.>", Orders + "agent." + id + ".>",
			Subjects + "ask.about", Subjects + "ask." + id + ".>", Inbox(id) + ".>", "$SRV.>",
		}},
		Response: &server.ResponsePermission{MaxMsgs: 1, Expires: answerLimit},
	}
}

// Inbox is below which subject the answers to a process come.
func Inbox(id string) string { return "_INBOX." + id }
