package natsstreaming

import (
	"errors"
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natstest"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/natsd"
)

const secret = "wr0ng" // trial.Refuses looks for it

func TestFaultsInSettings(t *testing.T) {
	trial.Refuses(t, Definition(), nil,
		trial.Mistake{Name: "a cluster", Set: []string{"cluster-id", "a b"}, Option: "cluster-id", Says: `"a b" is not a name of a cluster`},
		trial.Mistake{Name: "no cluster", Set: []string{"cluster-id", ""}, Option: "cluster-id"},
		trial.Mistake{Name: "a prefix", Set: []string{"discover-prefix", "a..b"}, Option: "discover-prefix"},
		trial.Mistake{Name: "a monitor of another scheme", Set: []string{"monitor", "ftp://127.0.0.1:8222"}, Option: "monitor", Says: `scheme "ftp" (http, https)`},
		trial.Mistake{Name: "a monitor without a host", Set: []string{"monitor", ":8222"}, Option: "monitor", Says: "is not an address such as"},
		trial.Mistake{Name: "a password without a user", Set: []string{"password", "wr0ng"}, Says: "is given without user"},
	)
}

func TestOpenErrorsAreExplained(t *testing.T) {
	cert, key := trial.Certificate(t)
	plain := start(t)
	other := start(t, "-cid", "other")
	guarded := start(t, "--user", "ann", "--pass", secret)
	token := start(t, "--auth", secret)
	encrypted := start(t, "--tls=true", "--tlscert", cert, "--tlskey", key, "-tls_client_cacert", cert)
	core := natstest.Start(t, natsd.Options{})
	for _, tc := range []struct {
		name    string
		options map[string][]string
		is      error
		want    string
	}{
		{"nobody there", map[string][]string{"address": {"127.0.0.1:1"}}, driver.ErrUnreachable, "nats://127.0.0.1:1"},
		{"a monitoring address", map[string][]string{"address": {strings.TrimPrefix(plain.monitor, "http://")}}, driver.ErrUnreachable, ""},
		{"a wrong name of the cluster", plain.options("cluster-id", "weir-1"), driver.ErrUnreachable, `of cluster-id "weir-1" answers at nats://` + plain.address},
		{"a wrong prefix", plain.options("discover-prefix", "_OTHER"), driver.ErrUnreachable, `of cluster-id "test-cluster"`},
		{"NATS without streaming", map[string][]string{"address": core.Address}, driver.ErrUnreachable, "NATS without streaming"},
		{"no credentials", guarded.options(), driver.ErrAuth, ""},
		{"a wrong password", guarded.options("user", "ann", "password", "wrong-"+secret), driver.ErrAuth, ""},
		{"a wrong token", token.options("token", "wrong-"+secret), driver.ErrAuth, ""},
		{"a certificate of nobody known", encrypted.options("address", "tls://"+encrypted.address), driver.ErrUnreachable, "certificate"},
		{"authorities in a file that is not there", encrypted.options("tls.ca", cert+".nosuch"), nil, "nosuch"},
		{"TLS where there is none", plain.options("address", "tls://"+plain.address), driver.ErrUnreachable, "secure connection not available"},
		{"a monitoring address of nobody", plain.options("monitor", "http://127.0.0.1:1"), driver.ErrUnreachable, "option monitor: asking http://127.0.0.1:1"},
		{"a monitoring address of another cluster", plain.options("monitor", other.monitor), driver.ErrUnsupported, `it is of the cluster-id "other", not "test-cluster"`},
		{"a monitoring address that is none", plain.options("monitor", "http://"+plain.address), driver.ErrUnreachable, "option monitor"},
	} {
		trial.Refuses(t, Definition(), tc.options, trial.Mistake{Name: tc.name, Is: tc.is, Says: tc.want})
	}
}

// TestMessagesPass covers each way to authenticate.
func TestMessagesPass(t *testing.T) {
	cert, key := trial.Certificate(t)
	guarded := start(t, "--user", "ann", "--pass", secret)
	token := start(t, "--auth", secret)
	encrypted := start(t, "--tls=true", "--tlscert", cert, "--tlskey", key, "-tls_client_cacert", cert)
	for name, options := range map[string]map[string][]string{
		"password":   guarded.options("user", "ann", "password", secret),
		"token":      token.options("token", secret),
		"TLS":        encrypted.options("tls.ca", cert),
		"TLS, loose": encrypted.options("tls.insecure", "true"),
	} {
		t.Run(name, func(t *testing.T) {
			c, b := open(t, driver.Run{ID: "pass"}, options, "d"), trial.NewLog()
			stop := consume(t, c, driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}}, b)
			b.Send(t, produce(t, c, b, "d"), "d", "hello")
			b.Until(t, "the message", func() bool { return has(b, "hello") })
			if err := stop(); err != nil || len(b.Faults) > 0 {
				t.Errorf("Run: %v, faults: %v", err, b.Faults)
			}
		})
	}
}

func TestTooLargeMessageIsRejected(t *testing.T) {
	vendor := start(t) // accepts 1 MiB
	c, b := open(t, driver.Run{ID: "large"}, vendor.options(), "d"), trial.NewLog()
	spec := driver.ProducerSpec{Destinations: []string{"d"}, InFlight: 10, Largest: 1 << 20}
	trial.NoProducer(t, c, spec, "a producer of messages of 1 MiB, to which the protocol adds", driver.ErrTooLarge, "")
	spec.Largest = MaxPayload + 1
	trial.NoProducer(t, c, spec, "a producer of messages over MaxPayload", driver.ErrTooLarge, "")
	spec.Largest = 1<<20 - 200
	if p, err := c.Producer(t.Context(), spec, b); err != nil {
		t.Errorf("a producer of what fits: %v", err)
	} else if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	p := produce(t, c, b, "d")
	big := strings.Repeat("x", 1<<20)
	p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: []byte(big)})
	if err := b.Done[big]; !errors.Is(err, driver.ErrTooLarge) {
		t.Errorf("a message of 1 MiB: %v", err)
	}
	b.Send(t, p, "d", "small")
}

// TestTheLargestPasses sends the maximum stated on the page.
func TestTheLargestPasses(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		s := served.Up(t, Definition(), nodes)
		c, b := open(t, driver.Run{ID: "large"}, s.Options, "d"), trial.NewLog()
		stop := consume(t, c, driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}}, b)
		p := must.Get(c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"d"}, InFlight: 2, Largest: MaxPayload}, b))(t)
		big := strings.Repeat("x", MaxPayload)
		b.Send(t, p, "d", big)
		b.Until(t, "the message", func() bool { return has(b, big) })
		if err := errors.Join(p.Close(t.Context()), stop()); err != nil || len(b.Faults) > 0 {
			t.Errorf("%d nodes: %v, faults %v", nodes, err, b.Faults)
		}
	}
}

func TestClientIDConflictIsReported(t *testing.T) {
	s := start(t)
	c := open(t, driver.Run{ID: "taken"}, s.options(), "d")
	b := trial.NewLog()
	p := produce(t, c, b, "d")
	in := inside(c)
	_, err := in.cfg.newSession(in.link, p.id, 1, nil)
	if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "another connection has the client ID "+p.id) {
		t.Errorf("a session of a client ID that is taken: %v", err)
	}
	b.Send(t, p, "d", "the first still sends")
}

// TestImpossibleReplicasAreRejected requests unavailable replicas.
func TestImpossibleReplicasAreRejected(t *testing.T) {
	one, three := served.Up(t, Definition(), 1), served.Up(t, Definition(), 3)
	blind := map[string][]string{"address": three.Address, "cluster-id": {"weir"}}
	for _, tc := range []struct {
		name     string
		options  map[string][]string
		replicas int
		want     string
	}{
		{"two on one node", one.Options, 2, "the server is not clustered"},
		{"two on three nodes", three.Options, 2, "on each of its 3 nodes (replication 1 or 3)"},
		{"four on three nodes", three.Options, 4, "on each of its 3 nodes (replication 1 or 3)"},
		{"three, nothing known", blind, 3, "option monitor"},
		{"three on three nodes", three.Options, 3, ""},
		{"one on three nodes", three.Options, 1, ""},
	} {
		c := open(t, driver.Run{ID: "replicas"}, tc.options)
		err := c.Declare(t.Context(), driver.Destination{Name: "d", Partitions: 1, Replicas: tc.replicas})
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v", tc.name, err)
		case tc.want != "" && (!errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: %v; want %q", tc.name, err, tc.want)
		}
	}
}
