package postgres

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/endpoint"
)

// Config holds the driver's settings.
type Config struct {
	Address           []string      `option:"address" help:"Servers of one system, as host:port or postgres://host:port; of several, the primary is used."`
	Database          string        `option:"database" help:"Name of the database."`
	User              string        `option:"user" help:"User name."`
	Password          driver.Secret `option:"password" help:"Password of user."`
	TLS               TLS           `option:"tls"`
	SynchronousCommit string        `option:"synchronous-commit" allowed:"off,local,remote_write,on,remote_apply" firm:"on" help:"What a commit waits for, on every connection: the server's setting of the same name."`
	Transaction       int           `option:"transaction" min:"1" max:"10000" help:"Most messages in one transaction: those that wait while the one before is committed go together; 1: each has its own."`
	Fetch             int           `option:"fetch" min:"1" max:"10000" help:"Most rows that a consumer takes by one statement."`
	VisibilityTimeout time.Duration `option:"visibility-timeout" min:"1us" help:"After how long a row that was taken and not settled may be taken again."`
	PollInterval      time.Duration `option:"poll-interval" min:"1us" help:"How long a consumer that found nothing waits before it looks again."`
	Notify            bool          `option:"notify" help:"Producers NOTIFY in each transaction and consumers LISTEN, which ends their wait."`
	Timeout           time.Duration `option:"timeout" min:"1us" help:"How long the server may be silent while something is asked of it before the connection is given up."`
	ReconnectWait     time.Duration `option:"reconnect-wait" min:"1us" help:"Pause before each attempt to reconnect. The attempts never end."`
	Server            Server        `option:"server"`
}

// Server holds the settings of servers that weir starts.
type Server struct {
	Fsync string `option:"fsync" allowed:"on,off" firm:"on" help:"Servers started by weir: sync the log before each confirmation."`
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
		// Longer than a fault pauses a server.
		Timeout:       30 * time.Second,
		ReconnectWait: 250 * time.Millisecond,
		Server:        Server{Fsync: "on"},
	}
}

// addresses describes valid addresses, with the vendor's port.
var addresses = endpoint.Kind{Schemes: []string{"postgres", "postgresql"}, Port: "5432", Like: "127.0.0.1:5432"}

// servers parses addresses. The error joins all faults.
func servers(texts []string) (endpoint.List, error) {
	l, err := addresses.All("address", texts)
	for _, e := range l {
		if port(e) == 0 {
			err = errors.Join(err, &driver.OptionError{Name: "address", Err: errors.New("has no port (1 to 65535)")})
		}
	}
	return l, err
}

func port(e endpoint.Endpoint) uint16 {
	n, err := strconv.ParseUint(e.Port, 10, 16)
	if err != nil {
		return 0
	}
	return uint16(n)
}

// Validate reports every fault that option bounds do not catch, joined.
func (c *Config) Validate() error {
	_, err := servers(c.Address)
	faults := driver.Faults{c.TLS.Validate(), err}
	if len(c.Address) == 0 {
		faults.Add("address", "is empty (one server or more)")
	}
	for _, t := range []struct{ name, text string }{{"database", c.Database}, {"user", c.User}} {
		if t.text == "" || strings.ContainsRune(t.text, 0) {
			faults.Add(t.name, "is empty or holds a NUL (a name)")
		}
	}
	return faults.Join()
}

// client returns the client's settings for a connection to one of the servers. It reads the TLS
// files. Environment variables such as PGHOST are ignored.
func (c *Config) client(at endpoint.List, name string) (*pgconn.Config, error) {
	// The client accepts only settings that it has parsed itself.
	pc, err := pgconn.ParseConfig("host=127.0.0.1 sslmode=disable user=weir password=weir database=weir passfile=/dev/null")
	if err != nil {
		return nil, fmt.Errorf("the client's settings (of the variables PG...): %w", err)
	}
	pc.Database, pc.User, pc.Password = c.Database, c.User, c.Password.Reveal()
	pc.ConnectTimeout, pc.Fallbacks, pc.ValidateConnect = dialLimit, nil, nil
	for i, e := range at {
		e.Secure = c.TLS.On
		t, err := e.TLS(c.TLS.TLSOptions)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			pc.Host, pc.Port, pc.TLSConfig = e.Host, port(e), t
			continue
		}
		pc.Fallbacks = append(pc.Fallbacks, &pgconn.FallbackConfig{Host: e.Host, Port: port(e), TLSConfig: t})
	}
	if len(at) > 1 {
		pc.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	pc.RuntimeParams = map[string]string{
		"application_name":   name,
		"synchronous_commit": c.SynchronousCommit,
	}
	return pc, nil
}
