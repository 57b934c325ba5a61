package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

func TestBadSettingsAreRefused(t *testing.T) {
	trial.Refuses(t, Definition(), nil,
		trial.Mistake{Name: "a database in the address", Set: []string{"address", "postgres://127.0.0.1:5432/db"}, Option: "address", Says: "holds more than a host and a port"},
		trial.Mistake{Name: "settings in the address", Set: []string{"address", "127.0.0.1:5432?sslmode=disable"}, Option: "address", Says: "holds more than a host and a port"},
		trial.Mistake{Name: "no database", Set: []string{"database", ""}, Option: "database", Says: "is empty"},
		trial.Mistake{Name: "a byte that no name has", Set: []string{"user", "a\x00b"}, Option: "user", Says: "holds a NUL"},
	)
}

func TestParseAddress(t *testing.T) {
	for in, want := range map[string]string{
		"127.0.0.1:5433": "127.0.0.1:5433", "postgres://db": "db:5432", "postgresql://db:1/": "db:1", "[::1]:5432": "[::1]:5432", "db": "db:5432",
	} {
		l, err := servers([]string{in})
		if got := l.String(); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", in, got, err, want)
		}
	}
}

func TestPGVariablesAreIgnored(t *testing.T) {
	for _, v := range []string{"PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGDATABASE", "PGAPPNAME", "PGOPTIONS"} {
		t.Setenv(v, "1")
	}
	t.Setenv("PGTARGETSESSIONATTRS", "standby")
	c := newConfig()
	at := must.Get(servers([]string{"db:6000"}))(t)
	pc := must.Get(c.client(at, "name"))(t)
	if pc.Host != "db" || pc.Port != 6000 || pc.User != "postgres" || pc.Password != "" || pc.Database != "postgres" || pc.ValidateConnect != nil ||
		pc.RuntimeParams["application_name"] != "name" || pc.RuntimeParams["options"] != "" || len(pc.Fallbacks) > 0 {
		t.Errorf("%s:%d, %s, %s, %v", pc.Host, pc.Port, pc.User, pc.Database, pc.RuntimeParams)
	}
}

func TestErrorsMapToContractErrors(t *testing.T) {
	for code, want := range map[string]error{
		"28P01": driver.ErrAuth, "28000": driver.ErrAuth, "57P03": driver.ErrBlocked, "57P01": driver.ErrDisconnected, "53100": driver.ErrBlocked,
		"53300": driver.ErrOverloaded, "54000": driver.ErrTooLarge, "55P03": driver.ErrTimeout, "25006": driver.ErrUnsupported, "42P01": driver.ErrUnsupported, "3D000": driver.ErrUnsupported,
	} {
		if err := cause(fmt.Errorf("x: %w", &pgconn.PgError{Code: code})); !errors.Is(err, want) {
			t.Errorf("SQLSTATE %s: %v; want %v", code, err, want)
		}
	}
	if err := cause(&pgconn.PgError{Code: "23505"}); driver.IsContract(err) {
		t.Errorf("a violated constraint: %v", err)
	}
	if err := cause(context.DeadlineExceeded); !errors.Is(err, driver.ErrTimeout) {
		t.Error(err)
	}
	err := cause(&net.OpError{Op: "read", Net: "tcp", Source: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 50312}, Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5432}, Err: errors.New("reset\nby peer")})
	if !errors.Is(err, driver.ErrDisconnected) || strings.Contains(err.Error(), "50312") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
	if again := cause(err); again.Error() != err.Error() {
		t.Errorf("said twice: %v", again)
	}
}
