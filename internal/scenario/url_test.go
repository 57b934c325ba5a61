package scenario

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/internal/must"
)

func drivers(t *testing.T) *driver.Registry {
	t.Helper()
	return must.Get(driver.NewRegistry(all.Definitions()...))(t)
}

// TestConnectionURLIsParsed: the parts of a hosting service's URL become options of the driver, and
// neither the rendered scenario nor the settings of a result contain any of them.
func TestConnectionURLIsParsed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		driver, url string
		also        []Override
		want        map[string]string // options with their values
		secrets     []string
	}{
		"with a virtual host":          {driver: "rabbitmq", url: "amqps://canary:canary@h:5671/canary", want: map[string]string{"address": "amqps://h:5671", "user": "canary", "vhost": "canary"}, secrets: []string{"password"}},
		"with an escaped virtual host": {driver: "rabbitmq", url: "amqp://canary:can%2Fary@h/%2f", want: map[string]string{"address": "amqp://h", "vhost": "/"}, secrets: []string{"password"}},
		"with a database":              {driver: "postgres", url: "postgres://canary:canary@h/shop?sslmode=require", want: map[string]string{"address": "postgres://h", "user": "canary", "database": "shop", "tls.insecure": "true"}, secrets: []string{"password"}},
		"without a user":               {driver: "redis-streams", url: "rediss://:canary@h:6380/0", want: map[string]string{"address": "rediss://h:6380/0", "user": ""}, secrets: []string{"password"}},
		"of a token":                   {driver: "nats", url: "nats://canary@h", want: map[string]string{"address": "nats://h", "user": ""}, secrets: []string{"token"}},
		"of several servers":           {driver: "nats", url: "nats://canary:canary@a:1,canary:canary@b:2", want: map[string]string{"address": "nats://a:1,nats://b:2", "user": "canary"}, secrets: []string{"password"}},
		"with nothing besides":         {driver: "kafka", url: "a:9092,b:9092", want: map[string]string{"address": "a:9092,b:9092"}},
		"and a user given by itself":   {driver: "nats", url: "nats://canary:canary@h", also: flags("system.options.user=ann"), want: map[string]string{"user": "ann"}, secrets: []string{"password"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := inputs(t, "", append(flags("system.driver="+tt.driver, "system.options.address=${env:URL}"), tt.also...)...)
			in.Drivers = drivers(t)
			in.Env = func(name string) (string, bool) { return tt.url, name == "URL" }
			runs := must.Get(Resolve(in))(t)
			run := runs[0]
			sys := run.System
			got := map[string]string{}
			for _, o := range driver.Options(sys.Config) {
				if _, asked := tt.want[o.Name]; asked {
					got[o.Name] = o.Default
				}
				if o.Type == "secret" && (o.Default != "") != strings.Contains(strings.Join(tt.secrets, " "), o.Name) {
					t.Errorf("secret %s: %q", o.Name, o.Default)
				}
			}
			golden.Equal(t, tt.want, got, "options")
			for _, shown := range []string{string(run.YAML()), string(run.Explain()), sys.Settings()["address"]} {
				if strings.Contains(shown, "canary") || !strings.Contains(shown, "${env:URL}") {
					t.Errorf("shows a secret, or not where it is from:\n%s", shown)
				}
			}
		})
	}
}

func TestMismatchedConnectionURLIsRejected(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ driver, url, says string }{
		"two users":                       {"nats", "nats://canary:a@a,nats://b:canary@b", "differ in more than host and port"},
		"a user where there is none":      {"nsq", "tcp://canary:canary@h:1", "holds a user, and the driver takes none"},
		"a query":                         {"rabbitmq", "amqp://canary:canary@h?heartbeat=canary", "has a query"},
		"a mode of TLS that is not known": {"postgres", "postgres://canary@h/x?sslmode=canary", "has an sslmode that weir does not take"},
		"no URL":                          {"nats", "nats://canary:%zz@h", "is not a connection URL"},
		"no host":                         {"nats", "nats://canary:canary@", "is not a connection URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := inputs(t, "", flags("system.driver="+tt.driver, "system.options.address=${env:URL}")...)
			in.Drivers = drivers(t)
			in.Env = func(name string) (string, bool) { return tt.url, name == "URL" }
			if _, err := Resolve(in); err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "canary") {
				t.Errorf("%v; want it to say %q and no secret", err, tt.says)
			}
		})
	}
}
