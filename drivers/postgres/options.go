package postgres

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirmq/weir/driver"
)

// Config is the driver's settings.
type Config struct {
	Address           []string      `option:"address" help:"Servers of one system, as host:port or postgres://host:port; of several, the primary is used."`
	Database          string        `option:"database" help:"Name of the database."`
	User              string        `option:"user" help:"User name."`
	Password          driver.Secret `option:"password" help:"Password of user."`
	TLS               TLS           `option:"tls"`
	SynchronousCommit string        `option:"synchronous-commit" allowed:"off,local,remote_write,on,remote_apply" help:"What a commit waits for, on every connection: the server's setting of the same name."`
	Transaction       int           `option:"transaction" help:"Most messages in one transaction: those that wait while the one before is committed go together; 1: each has its own."`
	Fetch             int           `option:"fetch" help:"Most rows that a consumer takes by one statement."`
	VisibilityTimeout time.Duration `option:"visibility-timeout" help:"After how long a row that was taken and not settled may be taken again."`
	PollInterval      time.Duration `option:"poll-interval" help:"How long a consumer that found nothing waits before it looks again."`
	Notify            bool          `option:"notify" help:"Producers NOTIFY in each transaction and consumers LISTEN, which ends their wait."`
	Timeout           time.Duration `option:"timeout" help:"How long the server may be silent while something is asked of it before the connection is given up."`
	ReconnectWait     time.Duration `option:"reconnect-wait" help:"Pause between two attempts to connect again; it goes on for ever."`
	Server            Server        `option:"server"`
}

// Server is the settings of servers that weir starts.
type Server struct {
	Fsync string `option:"fsync" allowed:"on,off" help:"Servers started by weir: sync the log before each confirmation."`
}

// TLS settings; setting any turns TLS on.
type TLS struct {
	On bool `option:"on" help:"Use TLS where no other setting of tls is given."`
	driver.TLSOptions
}

func newConfig() *Config {
	return &Config{
		Address: []string{"127.0.0.1:5432"}, Database: "postgres", User: "postgres",
		SynchronousCommit: "on", // the server's default
		Transaction:       100,
		Fetch:             100,
		VisibilityTimeout: 30 * time.Second,
		PollInterval:      10 * time.Millisecond,
		// Longer than a pause of a server that a fault puts into a run.
		Timeout:       30 * time.Second,
		ReconnectWait: 250 * time.Millisecond,
		Server:        Server{Fsync: "on"},
	}
}

// most bounds transaction and fetch.
const most = 10_000

// Validate reports every fault in the settings, joined.
func (c *Config) Validate() error {
	errs := []error{c.TLS.Validate()}
	bad := func(name, format string, v ...any) {
		errs = append(errs, &driver.OptionError{Name: name, Err: fmt.Errorf(format, v...)})
	}
	if len(c.Address) == 0 {
		bad("address", "is empty (one server or more)")
	}
	for _, a := range c.Address {
		if _, _, err := parseAddress(a); err != nil {
			bad("address", "%w", err)
		}
	}
	for _, t := range []struct{ name, text string }{{"database", c.Database}, {"user", c.User}} {
		if t.text == "" || strings.ContainsRune(t.text, 0) {
			bad(t.name, "is empty or holds a NUL (a name)")
		}
	}
	for _, n := range []struct {
		name string
		n    int
	}{{"transaction", c.Transaction}, {"fetch", c.Fetch}} {
		if n.n < 1 || n.n > most {
			bad(n.name, "%d (1 to %d)", n.n, most)
		}
	}
	for _, d := range []struct {
		name string
		v    time.Duration
	}{
		{"visibility-timeout", c.VisibilityTimeout},
		{"poll-interval", c.PollInterval},
		{"timeout", c.Timeout},
		{"reconnect-wait", c.ReconnectWait},
	} {
		if d.v < time.Microsecond {
			bad(d.name, "%v (1us or more)", d.v)
		}
	}
	return errors.Join(errs...)
}

// parseAddress reads one address. Its errors do not repeat it: somebody may have
// written a password into it.
func parseAddress(a string) (host string, port uint16, err error) {
	if !strings.Contains(a, "://") {
		a = "postgres://" + a
	}
	u, err := url.Parse(a)
	switch {
	case err != nil:
		return "", 0, errors.New("is not an address (such as 127.0.0.1:5432)")
	case u.Scheme != "postgres" && u.Scheme != "postgresql":
		return "", 0, fmt.Errorf("scheme %q (postgres, postgresql)", u.Scheme)
	case u.User != nil:
		return "", 0, errors.New("holds a user (the options user and password)")
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return "", 0, errors.New("holds more than a host and a port (the options database and tls say the rest)")
	case u.Hostname() == "":
		return "", 0, errors.New("has no host (such as 127.0.0.1:5432)")
	}
	if u.Port() == "" {
		return u.Hostname(), 5432, nil
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil || n == 0 {
		return "", 0, errors.New("has no port (1 to 65535)")
	}
	return u.Hostname(), uint16(n), nil
}

// show returns addresses as host:port.
func show(addresses []string) string {
	var shown []string
	for _, a := range addresses {
		if host, port, err := parseAddress(a); err == nil {
			shown = append(shown, net.JoinHostPort(host, strconv.Itoa(int(port))))
		}
	}
	return strings.Join(shown, ", ")
}

// tls returns the settings for TLS with host, nil where none was asked for. It
// reads the files.
func (t TLS) config(host string) (*tls.Config, error) {
	if t == (TLS{}) {
		return nil, nil
	}
	c, err := t.Config()
	if err != nil {
		return nil, err
	}
	c.ServerName = host
	return c, nil
}

// client returns the client's settings for a connection to one of addresses.
// What PGHOST and its kin say does not count.
func (c *Config) client(addresses []string, name string) (*pgconn.Config, error) {
	// The client takes no settings but those it has parsed itself.
	pc, err := pgconn.ParseConfig("host=127.0.0.1 sslmode=disable user=weir password=weir database=weir passfile=/dev/null")
	if err != nil {
		return nil, fmt.Errorf("the client's settings (of the variables PG...): %w", err)
	}
	pc.Database, pc.User, pc.Password = c.Database, c.User, c.Password.Reveal()
	pc.ConnectTimeout, pc.Fallbacks, pc.ValidateConnect = dialLimit, nil, nil
	for i, a := range addresses {
		host, port, err := parseAddress(a)
		if err != nil {
			return nil, &driver.OptionError{Name: "address", Err: err}
		}
		t, err := c.TLS.config(host)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			pc.Host, pc.Port, pc.TLSConfig = host, port, t
			continue
		}
		pc.Fallbacks = append(pc.Fallbacks, &pgconn.FallbackConfig{Host: host, Port: port, TLSConfig: t})
	}
	if len(addresses) > 1 {
		pc.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	pc.RuntimeParams = map[string]string{
		"application_name":   name,
		"synchronous_commit": c.SynchronousCommit,
	}
	return pc, nil
}
