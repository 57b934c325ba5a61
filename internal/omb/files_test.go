package omb

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/must"
)

const (
	workloadText = "name: w\ntopics: 1\npartitionsPerTopic: 1\nmessageSize: 100\npayloadFile: payload.data\nsubscriptionsPerTopic: 1\nconsumerPerSubscription: 1\nproducersPerTopic: 1\nproducerRate: 100\ntestDurationMinutes: 1\n"
	driverText   = "name: d\ndriverClass: io.openmessaging.benchmark.driver.kafka.KafkaBenchmarkDriver\ncommonConfig: |\n  bootstrap.servers=h:1\n"
)

// files returns the benchmark's files in a folder: a workload, a driver, and a payload above the
// workload.
func files(t *testing.T) *Files {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, os.Mkdir(filepath.Join(dir, "workloads"), 0o755))
	for name, text := range map[string]string{"workloads/w.yaml": workloadText, "d.yaml": driverText, "s.yaml": "weir: 1\n", "x.yaml": "x: 1\n", "payload.data": "x"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return &Files{Path: func(name string) string { return filepath.Join(dir, name) }}
}

func TestFilesAreDistinguishedByKeys(t *testing.T) {
	f := files(t)
	if err := f.Read([]string{"d.yaml", "workloads/w.yaml"}); err != nil || f.Workload == nil || f.Driver == nil {
		t.Fatalf("%v, %+v", err, f)
	}
	made := must.Get(f.Convert("out"))(t)
	text, err := made.File([]string{"d.yaml", "workloads/w.yaml"})
	if err != nil || !strings.HasPrefix(string(text), "# Made by weir convert from d.yaml and workloads/w.yaml.\n") || !strings.Contains(string(text), "../payload.data") {
		t.Errorf("%v\n%s", err, text)
	}
	for _, c := range []struct{ names, says string }{
		{"none.yaml", "none.yaml: there is no such file ("},
		{"s.yaml", "s.yaml: is a scenario already ("},
		{"d.yaml d.yaml", "d.yaml: is a second file of its kind ("},
		{"x.yaml", "x.yaml: is not a file of the OpenMessaging Benchmark: it has neither topics and messageSize nor driverClass ("},
	} {
		f := files(t)
		if err := f.Read(strings.Fields(c.names)); err == nil || !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%s: %v; want %q", c.names, err, c.says)
		}
	}
}

func TestAWorkloadIsRecognizedAmongScenarios(t *testing.T) {
	for text, want := range map[string]bool{workloadText: true, "weir: 1\nname: topics\n": false, "topics: [": false, "": false} {
		if n, err := Recognize("f", []byte(text)); err != nil || (n != nil) != want {
			t.Errorf("%q: %v, %v; want one: %v", text, n, err, want)
		}
	}
	if n, err := Recognize("f", []byte(driverText)); n != nil || err == nil || !strings.Contains(err.Error(), "which says nothing of the load (weir convert WORKLOAD.yaml f)") {
		t.Errorf("a driver: %v, %v", n, err)
	}
}
