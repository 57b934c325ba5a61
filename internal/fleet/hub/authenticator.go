package hub

import (
	"crypto/subtle"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/weirmq/weir/internal/fleet/admission"
)

// Subjects of a fleet. In them a session is a coordinator's, and an id is an agent's admission.Self.ID;
// agents may use only their own.
const (
	// Subjects is the prefix of all that agents publish: ask.about, ask.coordinator and ask.<id>.*, which
	// anyone may ask; <session>.door.<id>.*, <session>.clock, <session>.leaders.<id> and
	// <session>.standing.<id>.
	Subjects = "weir.fleet."
	// Orders is the prefix of what only the coordinator publishes: beacon, all.<session> and
	// all.<session>.books.<run> to all; agent.<id>.* to one.
	Orders = "weir.order."
	// Reports is the prefix of what agents publish to a stream: <session>.<run>.<id>.
	Reports = Subjects + "report."
)

// The accounts, and what passes between them.
const (
	accountFleet   = "FLEET"
	accountReports = "BOOKS"
	accounts       = `accounts {
	` + accountReports + ` { jetstream: enabled, exports: [ {service: "` + Reports + `>", accounts: [` + accountFleet + `]} ] }
	` + accountFleet + ` { imports: [ {service: {account: ` + accountReports + `, subject: "` + Reports + `>"}} ] }
}`
)

// An authenticator admits clients and sets their permissions. The server calls it on each connection's
// goroutine.
type authenticator struct {
	keep                 *admission.Keep
	now                  func() time.Time
	said                 *logger
	fleetKey, reportsKey string // the coordinator's own connections
	fleet, reports       *server.Account
}

// accounts looks up the accounts of a server before its start.
func (g *authenticator) accounts(s *server.Server) (err error) {
	if g.fleet, err = s.LookupAccount(accountFleet); err == nil {
		g.reports, err = s.LookupAccount(accountReports)
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
		return false // already gone, its address is no longer known
	}
	if from.Network() == "pipe" {
		switch {
		case same(token, g.fleetKey):
			c.RegisterUser(&server.User{Username: "coordinator", Account: g.fleet})
		case same(token, g.reportsKey):
			c.RegisterUser(&server.User{Username: "coordinator", Account: g.reports})
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

// known returns the ID of a connecting process with a valid token that signed this connection.
func (g *authenticator) known(c server.ClientAuthentication, token string) (id string, err error) {
	if _, err := g.keep.Check(token, g.now()); err != nil {
		return "", err
	}
	o := c.GetOpts()
	return o.Nkey, admission.CheckSigned(o.Nkey, o.Sig, c.GetNonce())
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// leave is the permissions of the agent with that ID; the package comment describes them.
func leave(id string) *server.Permissions {
	return &server.Permissions{
		Publish: &server.SubjectPermission{Allow: []string{
			Subjects + "ask.>", Subjects + "*.door." + id + ".*", Subjects + "*.clock", Subjects + "*.leaders." + id, Subjects + "*.standing." + id, Reports + "*.*." + id, "$SRV.>",
		}},
		Subscribe: &server.SubjectPermission{Allow: []string{
			// None may end in *: the server would admit a subscription to > there.
			Orders + "beacon", Orders + "all.>", Orders + "agent." + id + ".>",
			Subjects + "ask.about", Subjects + "ask." + id + ".>", Inbox(id) + ".>", "$SRV.>",
		}},
		Response: &server.ResponsePermission{MaxMsgs: 1, Expires: answerLimit},
	}
}

// Inbox is the prefix of the subjects for answers to a process.
func Inbox(id string) string { return "_INBOX." + id }
