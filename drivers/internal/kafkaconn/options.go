// Package kafkaconn is what drivers of Kafka's protocol share: where and how to
// connect by the franz-go client, how its errors read in the contract's words, how
// names are made, and what brokers tell of themselves.
package kafkaconn

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/weirmq/weir/driver"
)

// Options say where the brokers are and how to connect to them. They are options
// of the same names of every driver that embeds them.
type Options struct {
	Address        []string          `option:"address" help:"Brokers to begin with, as host:port or URL (kafka, tls); they name the others."`
	User           string            `option:"user" help:"User name, for SASL."`
	Password       driver.Secret     `option:"password" help:"Password of user."`
	SASL           string            `option:"sasl" allowed:"plain,scram-sha-256,scram-sha-512" help:"How user and password are shown to the broker."`
	TLS            driver.TLSOptions `option:"tls"`
	MetadataMinAge time.Duration     `option:"metadata-min-age" help:"Least pause between two questions which broker leads a partition; after a leader is gone, the least time until the next one is found."`
}

const defaultPort = "9092"

// Defaults returns the options of a broker of the vendor's defaults on this host.
func Defaults() Options {
	return Options{
		Address: []string{"127.0.0.1:" + defaultPort},
		SASL:    "plain",
		// The client's own default, 5 s, is how long a run would stand still after
		// each change of a leader; the vendor's client asks after 100 ms.
		MetadataMinAge: 250 * time.Millisecond,
	}
}

// Validate reports every fault, joined. It reads no files.
func (o *Options) Validate() error {
	var errs []error
	bad := func(name, format string, v ...any) {
		errs = append(errs, &driver.OptionError{Name: name, Err: fmt.Errorf(format, v...)})
	}
	if len(o.Address) == 0 {
		bad("address", "is empty (one broker or more)")
	}
	schemes := map[bool]bool{}
	for _, a := range o.Address {
		_, secure, err := parse(a)
		if err != nil {
			bad("address", "%w", err)
			continue
		}
		schemes[secure] = true
	}
	if len(schemes) > 1 {
		bad("address", "mixes addresses with and without TLS (all of scheme tls, or none)")
	}
	if o.User == "" && !o.Password.IsZero() {
		bad("password", "is given without user")
	}
	if o.User != "" && o.Password.IsZero() {
		bad("user", "is given without password")
	}
	if err := o.TLS.Validate(); err != nil {
		errs = append(errs, err)
	}
	if o.MetadataMinAge < 10*time.Millisecond || o.MetadataMinAge > time.Minute {
		bad("metadata-min-age", "%v (10ms to 1m)", o.MetadataMinAge)
	}
	return errors.Join(errs...)
}

// parse reads one address. Its errors do not repeat it: it may hold a password.
func parse(a string) (hostport string, secure bool, err error) {
	if !strings.Contains(a, "://") {
		a = "kafka://" + a
	}
	u, err := url.Parse(a)
	if err != nil {
		return "", false, errors.New("is not an address (such as 127.0.0.1:9092)")
	}
	if u.Scheme != "kafka" && u.Scheme != "tls" {
		return "", false, fmt.Errorf("scheme %q (kafka, tls)", u.Scheme)
	}
	if u.Hostname() == "" {
		return "", false, errors.New("has no host (such as 127.0.0.1:9092)")
	}
	if u.User != nil {
		return "", false, errors.New("holds a user (the options user and password are for that)")
	}
	port := u.Port()
	if port == "" {
		port = defaultPort
	}
	return net.JoinHostPort(u.Hostname(), port), u.Scheme == "tls", nil
}

// Show returns the addresses without what stands before an @.
func (o *Options) Show() string {
	var shown []string
	for _, a := range o.Address {
		if hostport, _, err := parse(a); err == nil {
			shown = append(shown, hostport)
		}
	}
	return strings.Join(shown, ", ")
}

// client returns the client's options. It reads the files.
func (o *Options) client() ([]kgo.Opt, error) {
	var seeds []string
	secure := o.TLS != (driver.TLSOptions{})
	for _, a := range o.Address {
		hostport, tls, err := parse(a)
		if err != nil {
			return nil, &driver.OptionError{Name: "address", Err: err}
		}
		seeds, secure = append(seeds, hostport), secure || tls
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(seeds...),
		kgo.MetadataMinAge(o.MetadataMinAge),
		// What the client would tell the broker of itself every few seconds.
		kgo.DisableClientMetrics(),
	}
	if secure {
		c, err := o.tls()
		if err != nil {
			return nil, err
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
	return opts, nil
}

// tls returns the settings for TLS. It reads the files.
func (o *Options) tls() (*tls.Config, error) {
	return o.TLS.Config()
}
