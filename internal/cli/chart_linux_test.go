package cli

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/natsd/natsdtest"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/result"
)

// A rendered is what the test reads of a manifest.
type rendered struct {
	Kind string
	Data map[string]string
	Spec struct {
		Replicas int
		Template struct {
			Spec struct{ Containers []container }
		}
	}
}

type container struct {
	Args []string
	Env  []struct {
		Name, Value string
		ValueFrom   struct {
			SecretKeyRef struct{ Name, Key string } `yaml:"secretKeyRef"`
		} `yaml:"valueFrom"`
	}
}

// The pods of the chart as processes: what it renders is what this weir understands.
func TestTheChartsPodsDoARun(t *testing.T) {
	needs.Time(t)
	text := must.Get(os.ReadFile("../../deploy/helm/testdata/kept.yaml"))(t)
	kinds := map[string]rendered{}
	for manifests := yaml.NewDecoder(strings.NewReader(string(text))); ; {
		var m rendered
		if err := manifests.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		kinds[m.Kind] = m
	}
	free := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	at := free.Addr().String()
	free.Close()
	var puts atomic.Int32
	bucket := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		puts.Add(1)
	}))
	defer bucket.Close()
	dir := t.TempDir()
	weir := filepath.Join(withWeir(t), "weir")
	fleet := filepath.Join(dir, "fleet")
	token := launched(t, weir, "token", dir, nil, []string{"WEIR_FLEET_DIR=" + fleet}, "fleet", "token", "--listen", at)
	<-token.ended
	secrets := map[string]string{"weir-fleet/join": token.stdout.String(), "bucket/url": bucket.URL + "/x", "broker/password": "p"}
	results := filepath.Join(dir, "results")
	must.Do(t, os.Mkdir(results, 0o700))
	system := natsdtest.Start(t, func(*server.Options) {}).ClientURL()
	scenario := strings.ReplaceAll(kinds["ConfigMap"].Data["scenario.yaml"], "nats://nats.brokers.svc:4222", system)
	scenario = strings.ReplaceAll(scenario, "measure: 12s", "measure: 2s")
	must.Do(t, os.WriteFile(filepath.Join(dir, "scenario.yaml"), []byte(scenario), 0o600))
	places := strings.NewReplacer("--fleet-wait=5m", "--fleet-wait=30s", "/scenario/", dir+"/", "/results", results, "/fleet", fleet, "=:7622", "="+at)
	start := func(name, kind string, more ...string) *proc {
		c := kinds[kind].Spec.Template.Spec.Containers[0]
		var env, args []string
		for _, v := range c.Env {
			switch from := v.ValueFrom.SecretKeyRef; {
			case from.Name != "":
				env = append(env, v.Name+"="+secrets[from.Name+"/"+from.Key])
			case v.Value != "":
				env = append(env, v.Name+"="+places.Replace(v.Value))
			}
		}
		for _, a := range c.Args {
			if a != "--fifo" { // this host may refuse it
				args = append(args, places.Replace(a))
			}
		}
		return launched(t, weir, name, dir, nil, env, append(args, more...)...)
	}
	for i := range kinds["StatefulSet"].Spec.Replicas {
		name := fmt.Sprintf("w-weir-agent-%d", i) // in a pod it is the host's
		start(name, "StatefulSet", "--name", name)
	}
	job := start("job", "Job")
	<-job.ended
	saved, err := result.Read(filepath.Join(results, "w-1"))
	if err != nil {
		t.Fatalf("%v: %s", err, &job.stderr)
	}
	if n := saved.Result.Messages.Sent; n == 0 || puts.Load() != 1 {
		t.Errorf("%d messages sent, and %d folders", n, puts.Load())
	}
}
