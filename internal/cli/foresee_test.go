package cli

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/natsd/natsdtest"
)

// gives are the flags that a message says to add.
var gives = regexp.MustCompile(`\((--.*) gives (\w+)\)`)

// TestGuaranteesAreRefusedBeforeServersStart holds what is refused against the tables of
// guarantees on the drivers' pages, which the drivers' own tests hold against running
// servers: what a row gives is accepted, what it does not give is refused, and with the
// flags that the message says it is accepted.
func TestGuaranteesAreRefusedBeforeServersStart(t *testing.T) {
	t.Parallel()
	alike(t)
	rows, helped := 0, 0
	for _, d := range all.Definitions() {
		start, sizes := "process", []int{1, 3}
		if d.Recipe == nil && d.Serve == nil {
			continue
		} else if d.Recipe == nil {
			start = "embedded"
		} else if r, err := broker.RecipeOf(d, ""); err != nil || r.Install == nil {
			continue
		} else {
			sizes = r.Nodes
		}
		for _, row := range d.Confirmations {
			recipe, sizes := recipeOf(t, d, row.When, sizes)
			flags := flagsOf(row.When, sizes)
			if recipe != "" {
				flags["--recipe"] = recipe
			}
			flags["--driver"], flags["--start"], flags["--guarantee"] = d.Name, start, row.Guarantee.String()
			if said := refusal(t, flags); said != "" {
				t.Errorf("%s, %s: %s", d.Name, row.When, said)
				continue
			}
			rows++
			if row.Guarantee == driver.Persisted {
				continue
			}
			flags["--guarantee"] = (row.Guarantee + 1).String()
			said := refusal(t, flags)
			if said == "" {
				t.Errorf("%s, %s: gives %s", d.Name, row.When, flags["--guarantee"])
				continue
			}
			if m := gives.FindStringSubmatch(said); m != nil {
				for pair := range slices.Chunk(strings.Fields(m[1]), 2) {
					name, value := pair[0], pair[1]
					if option, v, is := strings.Cut(value, "="); is {
						name, value = name+"\t"+option, v
					}
					flags[name] = value
				}
				if said := refusal(t, flags); said != "" {
					t.Errorf("%s, %s: %s helps, but %s", d.Name, row.When, m[1], said)
				}
				helped++
			}
		}
	}
	if rows < 40 || helped < 20 {
		t.Errorf("%d rows, %d with help", rows, helped)
	}
}

// recipeOf returns the recipe of a driver that has all settings of servers of a row and
// enough of them, and how many it starts; "" where the default has them.
func recipeOf(t *testing.T, d driver.Definition, when string, sizes []int) (string, []int) {
	recipes, err := broker.Recipes(d)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range recipes {
		lacks := false
		for s := range strings.SplitSeq(when, ", ") {
			name, value, _ := strings.Cut(s, ": ")
			var replicas int
			if _, err := fmt.Sscan(value, &replicas); name == "replication" && err == nil && len(r.Nodes) > 0 {
				lacks = lacks || replicas > slices.Max(r.Nodes)
			}
			setting, server := strings.CutPrefix(name, driver.ServerPrefix)
			_, has := r.Settings[setting]
			lacks = lacks || server && !has
		}
		switch {
		case lacks:
		case i == 0:
			return "", sizes
		default:
			return r.Name, r.Nodes
		}
	}
	return "", sizes
}

// flagsOf returns the flags of a row of a page, of a range the least, on as few servers as
// will do.
func flagsOf(when string, sizes []int) map[string]string {
	flags, least := map[string]string{}, 1
	for s := range strings.SplitSeq(when, ", ") {
		name, value, ok := strings.Cut(s, ": ")
		value, _, _ = strings.Cut(value, " to ")
		switch {
		case !ok:
		case name == "replication":
			flags["--replication"], least = value, int(value[0]-'0')
		default:
			flags["--option\t"+name] = value
			if name == "wait-replicas" && value != "0" || name == "server.replication" && value == "sync" {
				least = 2
			}
		}
	}
	for _, n := range sizes {
		if n >= least {
			flags["--nodes"] = fmt.Sprint(n)
			break
		}
	}
	return flags
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

// TestAGuaranteeThatOnlySomeServersGiveIsTold: weir does not try options that a server may
// be too old for, but says which do it by the driver's page, and which other servers.
func TestAGuaranteeThatOnlySomeServersGiveIsTold(t *testing.T) {
	t.Parallel()
	said := refusal(t, map[string]string{"--driver": "redis-streams", "--start": "process", "--recipe": "redis-cluster", "--nodes": "9", "--guarantee": "persisted"})
	const want = "(--option wait-replicas=1 --option wait-aof=true --option server.appendonly=yes gives persisted where the servers have that: weir drivers redis-streams; servers of --recipe valkey-cluster can be had, too)"
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

// TestWhoAsksForCopiesIsToldHowToGetThem: a single server can give more than replicated by
// syncing each write, and then there is still one copy.
func TestWhoAsksForCopiesIsToldHowToGetThem(t *testing.T) {
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

// TestAGuaranteeIsReadFromARunningSystem: of a server that weir did not start only the
// server knows. The refusal ends a series, and what was not done is named.
func TestAGuaranteeIsReadFromARunningSystem(t *testing.T) {
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

// TestServersOfOnesOwnGiveNoMoreThanTheClientAllows: what the driver's options alone decide
// is refused before weir connects, with the options that allow it. What the servers decide
// is not.
func TestServersOfOnesOwnGiveNoMoreThanTheClientAllows(t *testing.T) {
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

// TestNoCeilingIsBelowTheTable: on no row of a driver's page does a confirmation mean more
// than the driver's ceiling says.
func TestNoCeilingIsBelowTheTable(t *testing.T) {
	t.Parallel()
	rows := 0
	for _, d := range all.Definitions() {
		if d.New == nil {
			continue
		}
		if _, bounds := d.New().(driver.Ceiling); !bounds {
			continue
		}
		for _, row := range d.Confirmations {
			cfg := d.New()
			for s := range strings.SplitSeq(row.When, ", ") {
				name, value, _ := strings.Cut(s, ": ")
				value, _, _ = strings.Cut(value, " to ")
				if !strings.HasPrefix(name, driver.ServerPrefix) {
					_ = driver.SetOption(cfg, name, value) // what is not an option is of the servers
				}
			}
			if told := map[string][2]string{"beanstalkd": {"fsync", "0"}, "activemq": {"store", "synced"}, "amqp1": {"store", "synced"}, "artemis": {"datasync", "yes"}, "pulsar": {"journal-sync", "yes"}}[d.Name]; told[0] != "" && row.Guarantee == driver.Persisted {
				if err := driver.SetOption(cfg, told[0], told[1]); err != nil { // the recipe says so of its servers
					t.Fatal(err)
				}
			}
			rows++
			if most := cfg.(driver.Ceiling).AtMost(strings.Contains(row.When, "request")); most < row.Guarantee {
				t.Errorf("%s, %s: at most %s, and the page says %s", d.Name, row.When, most, row.Guarantee)
			}
		}
	}
	if rows < 25 {
		t.Errorf("%d rows", rows)
	}
}
