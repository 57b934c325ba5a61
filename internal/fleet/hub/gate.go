package hub

import (
	"crypto/subtle"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/weirmq/weir/internal/fleet/join"
)

// What agents may use.
const (
	// Subjects is the prefix of the fleet's own subjects.
	Subjects = "weir.fleet."
	// Bucket is the bucket whose keys agents may write.
	Bucket = "weir-fleet"
)

// A gate lets clients in, and says what they may do. The server calls it on a
// goroutine of each connection.
type gate struct {
	keep *join.Keep
	key  string
	now  func() time.Time
	said *voice
}

// Check implements server.Authentication.
func (g *gate) Check(c server.ClientAuthentication) bool {
	from := "in process"
	inside := true
	if a := c.RemoteAddress(); a != nil && a.Network() != "pipe" {
		from, inside = a.String(), false
	}
	token := ""
	if o := c.GetOpts(); o != nil {
		token = o.Token
	}
	if inside {
		if subtle.ConstantTimeCompare([]byte(token), []byte(g.key)) != 1 {
			g.said.refuse(from, join.ErrToken)
			return false
		}
		c.RegisterUser(&server.User{Username: "coordinator"})
		return true
	}
	if c.Kind() != server.CLIENT {
		g.said.refuse(from, join.ErrToken)
		return false
	}
	if g.keep != nil {
		if _, err := g.keep.Check(token, g.now()); err != nil {
			g.said.refuse(from, err)
			return false
		}
	}
	c.RegisterUser(&server.User{Username: "agent", Permissions: leave()})
	return true
}

// leave is what an agent may do; the package comment says it in words.
func leave() *server.Permissions {
	return &server.Permissions{
		Publish: &server.SubjectPermission{Allow: []string{
			Subjects + ">", "$SRV.>", "_INBOX.>",
			"$JS.API.INFO", "$JS.API.STREAM.INFO.*", "$JS.API.STREAM.MSG.GET.*", "$JS.API.DIRECT.GET.>",
			"$KV." + Bucket + ".>",
		}},
		Subscribe: &server.SubjectPermission{Allow: []string{Subjects + ">", "$SRV.>", "_INBOX.>"}},
	}
}

// ReplyTo reports whether an answer may go to the subject that a request of an agent
// named for it. The coordinator may publish anywhere, and must not be led to do it.
func ReplyTo(subject string) bool { return strings.HasPrefix(subject, "_INBOX.") }
