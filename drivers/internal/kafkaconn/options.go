// Package kafkaconn implements what drivers for Kafka's protocol share: connecting with the
// franz-go client, mapping its errors to the driver contract, naming topics, and reading facts from
// brokers.
package kafkaconn

import (
	_ "embed" // embeds the recipes
	"errors"
	"regexp"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/endpoint"
)

// recipe describes how to install and start Kafka, and Redpanda.
//
//go:embed recipe.yaml
var recipe string

// Recipe returns the drivers' recipes.
func Recipe() string { return recipe }

// Common holds the options that the drivers share. Their Configs embed it.
type Common struct {
	Options
	Sending
	Receiving
	Server Server `option:"server"`
}

// Defaults returns options for brokers with the vendor's defaults on this host.
func Defaults() Common {
	return Common{
		Options: Options{
			Address: []string{"127.0.0.1:9092"},
			SASL:    "plain",
			// With the client's default of 5 s, a run would stall that long after each leader
			// change; the vendor's client asks after 100 ms.
			MetadataMinAge: 250 * time.Millisecond,
		},
		Sending: Sending{
			Acks:          "all",
			Idempotence:   "auto",
			BatchMaxBytes: 1_000_012, // the client's default, matching the brokers' max.message.bytes
			Compression:   "none",
			Partitioner:   "sticky",
			// Longer than a fault pauses a broker.
			DeliveryTimeout: 30 * time.Second,
		},
		Receiving: Receiving{ // the client's defaults, with one exception
			Balancer:       "cooperative-sticky",
			SessionTimeout: 45 * time.Second,
			// As in the vendor's client: a newly assigned partition is fetched only after the fetch
			// in progress is answered, which takes 5 s with the client's own default.
			FetchMaxWait:  500 * time.Millisecond,
			FetchMinBytes: 1,
			FetchMaxBytes: 50 << 20,
		},
		Server: Server{Heap: "256m"}, // as in the recipe
	}
}

// Validate reports every fault that option bounds do not catch, joined. It reads no files.
func (c *Common) Validate() error {
	return errors.Join(c.Options.validate(), c.Sending.validate(), c.Server.validate())
}

// Options holds the broker addresses and how to connect to them.
type Options struct {
	Address        []string          `option:"address" help:"Brokers to begin with, as host:port or URL (kafka, tls); they name the others."`
	User           string            `option:"user" help:"User name, for SASL."`
	Password       driver.Secret     `option:"password" help:"Password of user."`
	SASL           string            `option:"sasl" allowed:"plain,scram-sha-256,scram-sha-512" help:"How user and password are shown to the broker."`
	TLS            driver.TLSOptions `option:"tls"`
	MetadataMinAge time.Duration     `option:"metadata-min-age" min:"10ms" max:"1m" help:"Least pause between two questions which broker leads a partition; after a leader is gone, the least time until the next one is found."`
}

// brokers describes valid values of the option address.
var brokers = endpoint.Kind{Schemes: []string{"kafka"}, Secure: []string{"tls"}, Port: "9092", Like: "127.0.0.1:9092"}

func (o *Options) validate() error {
	list, err := brokers.All("address", o.Address)
	faults := driver.Faults{err, o.TLS.Validate()}
	if len(o.Address) == 0 {
		faults.Add("address", "is empty (one broker or more)")
	}
	if list.Secure() && slices.ContainsFunc(list, func(e endpoint.Endpoint) bool { return !e.Secure }) {
		faults.Add("address", "mixes addresses with and without TLS (all of scheme tls, or none)")
	}
	switch {
	case o.User == "" && !o.Password.IsZero():
		faults.Add("password", "is given without user")
	case o.User != "" && o.Password.IsZero():
		faults.Add("user", "is given without password")
	}
	return faults.Join()
}

// client returns the client's options and the seed brokers. It reads files.
func (o *Options) client() ([]kgo.Opt, endpoint.List, error) {
	list, err := brokers.All("address", o.Address)
	if err != nil {
		return nil, nil, err
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(list.HostPorts()...),
		kgo.MetadataMinAge(o.MetadataMinAge),
		// Otherwise the client sends metrics to the broker every few seconds.
		kgo.DisableClientMetrics(),
	}
	if list.Secure() || o.TLS != (driver.TLSOptions{}) {
		c, err := o.TLS.Config()
		if err != nil {
			return nil, nil, err
		}
		opts = append(opts, kgo.DialTLSConfig(c))
	}
	if o.User != "" {
		switch user, pass := o.User, o.Password.Reveal(); o.SASL {
		case "scram-sha-256":
			opts = append(opts, kgo.SASL(scram.Auth{User: user, Pass: pass}.AsSha256Mechanism()))
		case "scram-sha-512":
			opts = append(opts, kgo.SASL(scram.Auth{User: user, Pass: pass}.AsSha512Mechanism()))
		default:
			opts = append(opts, kgo.SASL(plain.Auth{User: user, Pass: pass}.AsMechanism()))
		}
	}
	return opts, list, nil
}

// Server holds the recipe's settings for brokers that weir starts.
type Server struct {
	FlushMessages int64  `option:"flush-messages" min:"0" firm:"1" help:"Brokers started by weir: log.flush.interval.messages; 1 syncs before each confirmation, 0 is never."`
	Heap          string `option:"heap" help:"Brokers started by weir: largest heap of each, as the option -Xmx of Java takes it."`
}

var heap = regexp.MustCompile(`^[1-9][0-9]{0,5}[mg]$`)

func (s *Server) validate() error {
	var faults driver.Faults
	if !heap.MatchString(s.Heap) {
		faults.Add("server.heap", "%q is not a size of a heap (such as 256m, 1g)", s.Heap)
	}
	return faults.Join()
}
