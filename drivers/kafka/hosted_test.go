//go:build unix

package kafka

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// hosted returns the driver with a recipe for a broker that, in addition to the recipe's listeners,
// has those of hosted services: TLS with SASL, and TLS with client certificates. Its users are weir
// (SCRAM) and key (PLAIN), with the password secret.
func hosted() driver.Definition {
	def := Definition()
	def.Name = "kafka-hosted"
	recipe, _, _ := strings.Cut(string(def.Recipe), "\n---\n")
	for _, add := range []struct{ after, lines string }{
		{"settings:\n", `  sasl: {default: "9094", help: "Port for TLS with SASL."}
  mtls: {default: "9095", help: "Port for TLS with certificates of clients."}
  pki: {default: "", help: "Folder with ca.pem, and with all.pem: the key and the certificate."}
`},
		{"CONTROLLER://{{.Bind}}:{{.Port.controller}}", `,SASL://{{.Bind}}:{{set "sasl"}},MTLS://{{.Bind}}:{{set "mtls"}}`},
		{`BROKER://{{.At "broker"}}`, `,SASL://{{.Reach}}:{{set "sasl"}},MTLS://{{.Reach}}:{{set "mtls"}}`},
		{"CONTROLLER:PLAINTEXT", `,SASL:SASL_SSL,MTLS:SSL
        sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
        listener.name.sasl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_key="secret";
        listener.name.sasl.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
        listener.name.sasl.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
        ssl.keystore.type=PEM
        ssl.keystore.location={{set "pki"}}/all.pem
        ssl.truststore.type=PEM
        ssl.truststore.location={{set "pki"}}/ca.pem
        listener.name.mtls.ssl.client.auth=required`},
		{"          - d2VpcndlaXJ3ZWlyd2Vpcg\n", `          - --add-scram
          - SCRAM-SHA-256=[name=weir,password=secret]
          - --add-scram
          - SCRAM-SHA-512=[name=weir,password=secret]
`},
	} {
		at := strings.Index(recipe, add.after)
		if at < 0 {
			panic(fmt.Sprintf("the recipe has no %q", add.after))
		}
		at += len(add.after)
		recipe = recipe[:at] + add.lines + recipe[at:]
	}
	def.Recipe = []byte(recipe)
	return def
}

// TestAHostedService uses a broker set up like Confluent Cloud and Amazon MSK.
func TestAHostedService(t *testing.T) {
	cert, key := trial.Certificate(t)
	other, otherKey := trial.Certificate(t)
	pki := t.TempDir()
	certPEM := must.Get(os.ReadFile(cert))(t)
	keyPEM := must.Get(os.ReadFile(key))(t)
	for name, b := range map[string][]byte{"ca.pem": certPEM, "all.pem": bytes.Join([][]byte{keyPEM, certPEM}, nil)} {
		must.Do(t, os.WriteFile(filepath.Join(pki, name), b, 0o600))
	}
	ports := served.FreePorts(t, 2)
	sasl, mtls := "127.0.0.1:"+strconv.Itoa(ports[0]), "127.0.0.1:"+strconv.Itoa(ports[1])
	served.Up(t, hosted(), 1, served.With{Settings: map[string]string{"sasl": strconv.Itoa(ports[0]), "mtls": strconv.Itoa(ports[1]), "pki": pki}})
	for _, c := range []struct{ mechanism, user string }{{"plain", "key"}, {"scram-sha-256", "weir"}, {"scram-sha-512", "weir"}} {
		t.Run(c.mechanism, func(t *testing.T) {
			options := map[string][]string{"address": {"tls://" + sasl}, "tls.ca": {cert}, "sasl": {c.mechanism}, "user": {c.user}, "password": {"secret"}}
			trial.Hosted(t, Definition(), options,
				trial.Mistake{Name: "a wrong password", Set: []string{"password", "wr0ng"}, Is: driver.ErrAuth, Says: "Authentication failed"},
				trial.Mistake{Name: "another authority", Set: []string{"tls.ca", other}, Is: driver.ErrUnreachable, Says: "certificate"},
				trial.Mistake{Name: "no TLS", Set: []string{"address", sasl, "tls.ca", ""}, Is: driver.ErrUnreachable, Says: "speaking to a tls endpoint"},
			)
		})
	}
	t.Run("mtls", func(t *testing.T) {
		options := map[string][]string{"address": {"tls://" + mtls}, "tls.ca": {cert}, "tls.cert": {cert}, "tls.key": {key}}
		trial.Hosted(t, Definition(), options,
			trial.Mistake{Name: "no certificate", Set: []string{"tls.cert", "", "tls.key", ""}, Is: driver.ErrUnreachable, Says: "bad certificate"},
			trial.Mistake{Name: "a certificate of another authority", Set: []string{"tls.cert", other, "tls.key", otherKey}, Is: driver.ErrUnreachable, Says: "certificate"},
			trial.Mistake{Name: "another authority", Set: []string{"tls.ca", other}, Is: driver.ErrUnreachable, Says: "certificate"},
		)
	})
}
