package activemq

import (
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/trial"
)

// TestAHostedService puts TLS with its own certificate authority in front of the server, as Amazon
// MQ does.
func TestAHostedService(t *testing.T) {
	s := shared.Up(t, 1)
	cert, key := trial.Certificate(t)
	other, _ := trial.Certificate(t)
	at := trial.Encrypted(t, s.Address[0], cert, key)
	trial.Hosted(t, Definition(), map[string][]string{"address": {"amqps://" + at}, "tls.ca": {cert}, "user": {"weir"}, "password": {"weir"}},
		trial.Mistake{Name: "a wrong password", Set: []string{"password", "wr0ng"}, Is: driver.ErrAuth},
		trial.Mistake{Name: "another authority", Set: []string{"tls.ca", other}, Is: driver.ErrUnreachable, Says: "certificate"},
		trial.Mistake{Name: "no TLS", Set: []string{"address", "amqp://" + at, "tls.ca", ""}, Is: driver.ErrUnreachable},
	)
}
