package cli

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/natsd/natsdtest"
)

// gives are the flags that a message says to add.
var gives = regexp.MustCompile(`\((--.*) gives (\w+)\)`)

// What the servers of a recipe cannot guarantee is refused, and accepted with the flags that the error
// suggests.
func TestUnreachableGuaranteeFailsBeforeServersStart(t *testing.T) {
	t.Parallel()
	accepted, refused, helped := 0, 0, 0
	for _, d := range all.Definitions() {
		start := "process"
		if d.Recipe == nil && d.Serve == nil {
			continue
		} else if d.Recipe == nil {
			start = "embedded"
		} else if r, err := broker.RecipeOf(d, ""); err != nil || r.Install == nil {
			continue
		}
		for _, want := range d.Capabilities.Guarantees {
			flags := map[string]string{"--driver": d.Name, "--start": start, "--guarantee": want.String()}
			said := refusal(t, flags)
			if said == "" {
				accepted++
				continue
			}
			refused++
			m := gives.FindStringSubmatch(said)
			if m == nil {
				t.Log(said)
				continue
			}
			for pair := range slices.Chunk(strings.Fields(m[1]), 2) {
				name, value := pair[0], pair[1]
				if option, v, is := strings.Cut(value, "="); is {
					name, value = name+"\t"+option, v
				}
				flags[name] = value
			}
			if said := refusal(t, flags); said != "" {
				t.Errorf("%s: %s helps, but %s", d.Name, m[1], said)
			}
			helped++
		}
	}
	if accepted < 25 || helped < 10 || refused > helped+2 {
		t.Errorf("%d accepted, %d refused, %d with help", accepted, refused, helped)
	}
}

// refusal returns what weir run --explain refuses flags with.
func refusal(t *testing.T, flags map[string]string) string {
	args := []string{"run", "--explain"}
	for _, f := range slices.Sorted(maps.Keys(flags)) {
		if option, is := strings.CutPrefix(f, "--option\t"); is {
			args = append(args, "--option", option+"="+flags[f])
		} else {
			args = append(args, f, flags[f])
		}
	}
	code, _, stderr := do(t, World{Drivers: all.Definitions()}, args...)
	if (code == 0) != (stderr.String() == "") {
		t.Fatalf("exit code %d with %s", code, stderr)
	}
	return strings.TrimSpace(stderr.String())
}

// weir does not try options that a server may be too old for, but names those that work by the driver's
// page, and other servers.
func TestGuaranteeOfOnlySomeServersIsExplained(t *testing.T) {
	t.Parallel()
	said := refusal(t, map[string]string{"--driver": "redis-streams", "--start": "process", "--recipe": "redis-cluster", "--nodes": "9", "--guarantee": "persisted"})
	const want = "(--option wait-replicas=1 --option wait-aof=yes --option server.appendonly=yes gives persisted where the servers have that: weir drivers redis-streams; weir can also start --recipe valkey-cluster)"
	if !strings.HasSuffix(said, want) {
		t.Errorf("%s\nwant at its end %s", said, want)
	}
	with := map[string]string{
		"--driver": "redis-streams", "--start": "process", "--recipe": "valkey-cluster", "--nodes": "9", "--guarantee": "persisted",
		"--option\twait-replicas": "1", "--option\twait-aof": "true", "--option\tserver.appendonly": "yes",
	}
	if said := refusal(t, with); said != "" {
		t.Error(said)
	}
}

// A single server can give more than "replicated" by syncing each write, but it is still one copy.
func TestReplicationRequestExplainsItsOptions(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"jetstream", "kafka"} {
		with := map[string]string{"--driver": name, "--start": "process", "--guarantee": "replicated"}
		if said := refusal(t, with); !strings.HasSuffix(said, "(--nodes 3 --replication 3 gives replicated)") {
			t.Errorf("%s: %s", name, said)
		}
		with["--nodes"], with["--replication"] = "3", "3"
		if said := refusal(t, with); said != "" {
			t.Errorf("%s: %s", name, said)
		}
	}
}

// Only the server knows the guarantee of one that weir did not start. The refusal ends a series, naming the
// remaining runs.
func TestGuaranteeReadFromRunningSystem(t *testing.T) {
	t.Parallel()
	s := natsdtest.Start(t, func(o *server.Options) { o.JetStream, o.StoreDir = true, t.TempDir() })
	args := []string{"run", "--driver", "jetstream", "--address", s.ClientURL(), "--option", "storage=memory", "--guarantee", "persisted", "--rate", "max", "--messages", "10", "--warmup", "0s", "--repeat", "2"}
	code, _, stderr := do(t, World{Drivers: all.Definitions()}, args...)
	if code != int(Usage) {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{
		`guarantee not given: the running system confirms "received"; the scenario demands at least "persisted"`,
		"the system and the driver's options set what it confirms (server.sync-always, server.sync-interval)",
		"weir: not run: 02-",
	} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("%q is not in\n%s", want, stderr)
		}
	}
}

// What the driver's options alone rule out is refused before weir connects, with the options that allow it.
// What depends on the servers is not.
func TestClientOptionsLimitGuaranteeOfRunningServers(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ driver, options, guarantee, want string }{
		{"kafka", "acks=0", "persisted", "driver kafka confirms at most written with these options, whatever the servers are set to (--option acks=all allows persisted)"},
		{"kafka", "acks=0", "received", "(--option acks=all allows persisted)"},
		{"kafka", "acks=0", "written", ""},
		{"kafka", "acks=1", "persisted", ""}, // one replica that syncs each message
		{"kafka", "", "persisted", ""},
		{"kmq", "acks=0", "received", "(--option acks=all allows persisted)"},
		{"jetstream", "", "persisted", ""},
		{"nats", "confirm=none", "received", "at most buffered with these options, whatever the servers are set to (--option confirm=flush allows received)"},
		{"rabbitmq", "confirm=no", "received", "(--option confirm=yes allows persisted)"},
		{"artemis", "datasync=no", "persisted", "(--option datasync=yes allows persisted)"},
		{"artemis", "confirm=no,datasync=no", "persisted", "--option datasync=yes"},
		{"activemq", "", "persisted", "at most received with these options, whatever the servers are set to (--option store=synced allows persisted)"},
		{"amqp1", "store=written", "persisted", "(--option store=synced allows persisted)"},
		{"beanstalkd", "", "persisted", "(--option fsync=0 allows persisted)"},
		{"beanstalkd", "fsync=0", "persisted", ""},
		{"eventstore", "flushes=no", "persisted", "(--option flushes=yes allows persisted)"},
		{"iris", "pattern=publish", "received", "(--option pattern=request allows received)"},
		{"mqtt", "qos=0", "received", "(--option qos=1 allows received)"},
		{"postgres", "synchronous-commit=off", "persisted", "(--option synchronous-commit=on allows persisted)"},
		{"mongodb", "journal=no", "persisted", "(--option journal=yes allows persisted)"},
		{"mongodb", "w=1,journal=no", "replicated", "allows"},
		{"pulsar", "", "persisted", "(--option journal-sync=yes allows persisted)"},
		{"pulsar", "", "replicated", ""},
		{"zeromq", "pattern=pubsub", "written", "driver zeromq confirms at most buffered with these options (--option pattern=pipeline allows written)"},
	} {
		flags := map[string]string{"--driver": x.driver, "--address": "127.0.0.1:1", "--guarantee": x.guarantee}
		if x.driver == "zeromq" {
			delete(flags, "--address")
		}
		for set := range strings.SplitSeq(x.options, ",") {
			if name, v, ok := strings.Cut(set, "="); ok {
				flags["--option\t"+name] = v
			}
		}
		said := refusal(t, flags)
		if (said == "") != (x.want == "") || !strings.Contains(said, x.want) {
			t.Errorf("%s, %s, %s: %q lacks %q", x.driver, x.options, x.guarantee, said, x.want)
		}
	}
}
