package sqs

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/trial"
)

// TestAHostedService puts TLS with its own certificate authority in front of the server, and finds
// the credentials in environment variables. The server does not check them, unlike the service.
func TestAHostedService(t *testing.T) {
	s := shared.Up(t, 1)
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	cert, key := trial.Certificate(t)
	other, _ := trial.Certificate(t)
	at := trial.Encrypted(t, strings.TrimPrefix(s.Address[0], "http://"), cert, key)
	trial.Hosted(t, Definition(), map[string][]string{"address": {"https://" + at}, "tls.ca": {cert}, "region": {"eu-central-1"}, "wait": {"0s"}},
		trial.Mistake{Name: "another authority", Set: []string{"tls.ca", other}, Is: driver.ErrUnreachable, Says: "certificate"},
		trial.Mistake{Name: "no TLS", Set: []string{"address", "http://" + at, "tls.ca", ""}, Is: driver.ErrUnreachable},
	)
}
