package cli

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/natsd/natsdtest"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/result"
)

// A task is how a test tries an example of docs/examples: at small scale, and then a look
// at what the task is about. Without them the example needs servers that weir installs,
// and is explained.
type task struct {
	small func(t *testing.T, args []string) []string // puts sizes and addresses in place of the file's
	look  func(t *testing.T, r *result.Result)
}

// TestExamplesCompleteTheirTasks runs each file of the index of docs/examples by the command
// that stands there, at small scale.
func TestExamplesCompleteTheirTasks(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	short := func(_ *testing.T, args []string) []string {
		return append(args, "--warmup", "100ms", "--measure", "500ms")
	}
	objectives := func(n int) func(*testing.T, *result.Result) {
		return func(t *testing.T, r *result.Result) {
			if len(r.Verdict.SLO) != n {
				t.Errorf("it judged %+v; want %d objectives", r.Verdict.SLO, n)
			}
		}
	}
	tasks := map[string]task{
		"equal-durability.yaml": {},
		"versions.yaml":         {},
		"network.yaml":          {}, // TestRunUsesRequestedNetwork has such runs
		"gate.yaml":             {short, objectives(3)},
		"burst.yaml": {
			func(_ *testing.T, args []string) []string {
				return append(args, "--warmup", "100ms", "--load.profile", "[{rate: 100/s, for: 200ms}, {ramp: 100/s..300/s, for: 200ms}, {burst: 50, every: 200ms, for: 400ms}]")
			},
			func(t *testing.T, r *result.Result) {
				if len(r.Stages) != 3 || r.Stages[2].Offered != 100 {
					t.Errorf("stages %+v; want three, the last with two bursts of 50", r.Stages)
				}
			},
		},
		"tls.yaml": {
			func(t *testing.T, args []string) []string {
				broker, ca := secured(t)
				args[slices.Index(args, "--address")+1] = broker
				return short(t, append(args, "--option", "tls.ca="+ca))
			},
			func(t *testing.T, r *result.Result) {
				if r.Messages.Delivered == 0 {
					t.Errorf("messages %+v", r.Messages)
				}
			},
		},
		"three-hosts.yaml": {
			func(t *testing.T, args []string) []string {
				broker := meeting(t)
				where := "nats://" + strings.TrimPrefix(broker, "nats://")
				agents(t, where, map[string]string{"sender": "", "receiver": ""})
				i := slices.Index(args, "--listen")
				return short(t, append(slices.Replace(args, i, i+2, "--nats", where), "--address", broker, "--rate", "500/s"))
			},
			func(t *testing.T, r *result.Result) {
				if len(r.Agents) != 2 || r.Clock == nil || !r.Clock.Crosses {
					t.Errorf("agents %+v, clock %+v; want two, and messages that cross hosts", r.Agents, r.Clock)
				}
			},
		},
		"soak.yaml": {
			func(t *testing.T, args []string) []string {
				args[slices.Index(args, "--metrics")+1] = "127.0.0.1:0"
				return short(t, append(args, "--after-drain", "100ms"))
			},
			objectives(3),
		},
		"fan-out.yaml": {short, func(t *testing.T, r *result.Result) {
			if m := r.Messages; len(r.Subscriptions) != 5 || m.Delivered != 5*m.Confirmed {
				t.Errorf("%d subscriptions, %d confirmed, %d delivered; want five times as many", len(r.Subscriptions), m.Confirmed, m.Delivered)
			}
		}},
		"slow-consumers.yaml": {short, func(t *testing.T, r *result.Result) {
			if d := r.Latency.E2E.Response; d == nil || d.MaxNS == nil || *d.MaxNS < int64(2*time.Millisecond) {
				t.Errorf("e2e %+v; want a message that waited for the work on another", d)
			}
		}},
		"request.yaml": {short, func(t *testing.T, r *result.Result) {
			if r.Run.Mode != "request" || r.Figures["rtt.p50"] <= 0 {
				t.Errorf("mode %s, figures %v", r.Run.Mode, r.Figures)
			}
		}},
	}
	index := must.Get(os.ReadFile("../../docs/examples/README.md"))(t)
	rows := regexp.MustCompile("(?m)^\\| .* \\| \\[(\\S+)\\]\\(\\S+\\) \\| `weir (run docs/examples/(\\S+) .*)` \\|$").FindAllStringSubmatch(string(index), -1)
	if len(rows) != len(tasks) {
		t.Errorf("the index has %d tasks; want %d", len(rows), len(tasks))
	}
	examples := must.Get(filepath.Abs("../../docs/examples"))(t)
	for _, row := range rows {
		file := row[1]
		task, ok := tasks[file]
		if !ok || row[3] != file {
			t.Errorf("%s: no test runs it, or its command is for %s", file, row[3])
			continue
		}
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			args := strings.Fields(strings.Replace(row[2], "docs/examples", examples, 1))
			if task.small == nil {
				args = append(args, "--explain")
			} else {
				args = append(task.small(t, args), "--quiet")
			}
			task.try(t, args)
		})
	}
}

// TestHostedServicesAreExplained: each scenario for a hosted service is on the page, and
// says what weir would do.
func TestHostedServicesAreExplained(t *testing.T) {
	t.Parallel()
	page := must.Get(os.ReadFile("../../docs/hosted.md"))(t)
	files, err := filepath.Glob("../../docs/examples/hosted/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		if name := filepath.Base(file); !strings.Contains(string(page), "(examples/hosted/"+name+")") {
			t.Errorf("%s is not on the page", name)
		}
		file := must.Get(filepath.Abs(file))(t)
		task{}.try(t, []string{"run", file, "--explain"})
	}
}

// try runs the command line, and looks at what it wrote.
func (k task) try(t *testing.T, args []string) {
	t.Helper()
	self := must.Get(os.Executable())(t)
	w := World{Self: self, Args: args, Stdout: &watch{}, Stderr: &watch{}, Dir: t.TempDir(), Drivers: all.Definitions()}
	w.Env = func(name string) (string, bool) {
		value, ok := map[string]string{
			admission.VariableDir: filepath.Join(w.Dir, "fleet"),
			"BROKER_PASSWORD":     "s3cret", "AMAZON_MQ_PASSWORD": "s3cret", "CONFLUENT_SECRET": "s3cret", "MSK_PASSWORD": "s3cret",
			"CLOUDAMQP_URL": "amqps://weir:s3cret@broker.example.com/weir", "REDIS_URL": "rediss://weir:s3cret@redis.example.com:6380",
		}[name]
		return value, ok
	}
	// On a busy host a short run misses objectives, and may be invalid.
	if code := Code(Main(t.Context(), w)); code != OK && code != Invalid && code != Missed {
		t.Fatalf("%v: exit code %d\n%s%s", args, code, w.Stdout, w.Stderr)
	}
	if k.look == nil {
		return
	}
	saved := must.Get(result.Read(filepath.Join(w.Dir, args[slices.Index(args, "--out")+1])))(t)
	k.look(t, saved.Result)
}

// secured starts a NATS server that asks for TLS and a password, and returns its address
// and the file of its authority.
func secured(t *testing.T) (address, ca string) {
	t.Helper()
	lender := httptest.NewUnstartedServer(http.NotFoundHandler()) // of its certificate, which is good for loopback
	lender.StartTLS()
	t.Cleanup(lender.Close)
	ca = filepath.Join(t.TempDir(), "ca.pem")
	must.Do(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: lender.Certificate().Raw}), 0o644))
	s := natsdtest.Start(t, func(o *server.Options) {
		o.TLS, o.TLSConfig = true, lender.TLS
		o.Username, o.Password = "weir", "s3cret"
	})
	return "tls://" + s.Addr().String(), ca
}
