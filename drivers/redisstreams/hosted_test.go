package redisstreams

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/redistest"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// TestAHostedService uses a server with TLS and a single user, from an access list, without
// administrator rights.
func TestAHostedService(t *testing.T) {
	cert, key := trial.Certificate(t)
	other, _ := trial.Certificate(t)
	users := filepath.Join(t.TempDir(), "users.acl")
	must.Do(t, os.WriteFile(users, []byte("user default off\nuser weir on >secret ~* &* +@all -@admin\n"), 0o600))
	port := redistest.FreePort(t)
	redistest.Start(t, "--tls-port", strconv.Itoa(port), "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert,
		"--tls-auth-clients", "no", "--aclfile", users)
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	trial.Hosted(t, Definition(), map[string][]string{"address": {"rediss://weir:secret@" + at}, "tls.ca": {cert}},
		trial.Mistake{Name: "a wrong password", Set: []string{"address", "rediss://weir:wr0ng@" + at}, Is: driver.ErrAuth, Says: "WRONGPASS"},
		trial.Mistake{Name: "no user", Set: []string{"address", "rediss://" + at}, Is: driver.ErrAuth, Says: "NOAUTH"},
		trial.Mistake{Name: "another authority", Set: []string{"tls.ca", other}, Is: driver.ErrUnreachable, Says: "certificate"},
		trial.Mistake{Name: "no TLS", Set: []string{"address", "redis://weir:secret@" + at, "tls.ca", ""}, Is: driver.ErrUnreachable},
	)
}
