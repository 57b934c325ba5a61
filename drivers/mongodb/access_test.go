package mongodb

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
)

// TestPasswordsAndTLS uses a server that requires a user and a password, with and without TLS.
func TestPasswordsAndTLS(t *testing.T) {
	cert, key := trial.Certificate(t)
	other, _ := trial.Certificate(t)
	ports := served.FreePorts(t, 2)
	at := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", ports[i]) }
	data := t.TempDir()
	login := []string{"user", "me", "password", "right"}
	plain := []string{"address", "mongodb://" + at(0), "atomic", "no"}
	secure := []string{"address", at(1), "atomic", "no", "tls.ca", cert}
	try := func(options ...string) (driver.Conn, error) {
		return trial.Open(t, Definition(), driver.Run{}, nil, options...)
	}
	served.Start(t, Definition(), served.Spec{
		Program: "ferretdb",
		Args: []string{
			"--handler=sqlite", "--sqlite-url=file:" + data + "/", "--debug-addr=-", "--telemetry=disable", "--state-dir=" + data,
			"--listen-addr=" + at(0), "--listen-tls=" + at(1), "--listen-tls-cert-file=" + cert, "--listen-tls-key-file=" + key,
			"--test-enable-new-auth", "--setup-database=admin", "--setup-username=me", "--setup-password=right",
		},
		Ready: func() error {
			c, err := try(append(plain, login...)...)
			if err == nil {
				err = c.Close(t.Context())
			}
			return err
		},
	})
	for _, way := range [][]string{plain, secure} {
		c := trial.Declared(t, Definition(), nil, append(way, login...)...)
		p, f := trial.Producer(t, c, "d")
		if n := f.Confirmed(t, p, 3); n != 3 {
			t.Errorf("%v: %d of 3 confirmed", way, n)
		}
		for name, wrong := range map[string][]string{
			"a wrong password": {"user", "me", "password", "canary"},
			"an unknown user":  {"user", "you", "password", "canary"},
			"another database": {"user", "me", "password", "right", "auth-database", "other"},
		} {
			_, err := try(append(way, wrong...)...)
			if !errors.Is(err, driver.ErrAuth) || strings.Contains(err.Error(), "canary") {
				t.Errorf("%v, %s: %v", way, name, err)
			}
		}
		// FerretDB answers hello without a login, and refuses later what needs one.
		c, err := try(way...)
		if err == nil {
			err = errors.Join(c.Declare(t.Context(), trial.Plain("e")), c.Close(t.Context()))
		}
		if !errors.Is(err, driver.ErrAuth) {
			t.Errorf("%v, without a login: %v", way, err)
		}
	}
	if _, err := try(append([]string{"address", at(1), "tls.ca", other}, login...)...); !errors.Is(err, driver.ErrUnreachable) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an authority that is not trusted: %v", err)
	}
	if c, err := try(append([]string{"address", at(1), "tls.insecure", "yes"}, login...)...); err != nil {
		t.Errorf("a server that is not verified: %v", err)
	} else {
		_ = c.Close(t.Context())
	}
	if _, err := try(append([]string{"address", at(1), "tls.on", "yes"}, login...)...); !errors.Is(err, driver.ErrUnreachable) {
		t.Errorf("the host's authorities: %v", err)
	}
}
