package helm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/must"
)

// A manifest is one of a rendered chart.
type manifest struct{ kind, name, text string }

// rendered returns the manifests of testdata/NAME.yaml.
func rendered(t *testing.T, name string) (all []manifest) {
	t.Helper()
	text := must.Get(os.ReadFile("testdata/" + name + ".yaml"))(t)
	for _, doc := range strings.Split("\n"+string(text), "\n---\n") {
		m := manifest{text: doc}
		for line := range strings.Lines(doc) {
			if rest, ok := strings.CutPrefix(line, "kind: "); ok {
				m.kind = strings.TrimSpace(rest)
			}
			if rest, ok := strings.CutPrefix(line, "  name: "); ok && m.name == "" {
				m.name = strings.TrimSpace(rest)
			}
		}
		if m.kind != "" {
			all = append(all, m)
		}
	}
	if len(all) < 3 {
		t.Fatalf("%s has %d manifests", name, len(all))
	}
	return all
}

// path is that of the object in a namespace.
func (m manifest) path(ns string) string {
	group, ok := map[string]string{
		"Service": "/api/v1", "ConfigMap": "/api/v1", "PersistentVolumeClaim": "/api/v1",
		"StatefulSet": "/apis/apps/v1", "Job": "/apis/batch/v1", "PodDisruptionBudget": "/apis/policy/v1",
	}[m.kind]
	if !ok {
		panic("the chart has a new kind: " + m.kind)
	}
	return group + "/namespaces/" + ns + "/" + strings.ToLower(m.kind) + "s/" + m.name
}

// apply is kubectl apply --server-side --validate=strict.
func (c *cluster) apply(ns string, m manifest, more string) answer {
	c.t.Helper()
	return c.ask(http.MethodPatch, m.path(ns)+"?fieldManager=test&fieldValidation=Strict"+more, "application/apply-patch+yaml", m.text)
}

func TestARealAPIServerTakesTheChart(t *testing.T) {
	c := newCluster(t)
	files, err := filepath.Glob("testdata/*.values.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	c.applied(files)
	c.podSecurity()
	c.changed()
	c.releases()
	c.disruption()
}

// applied applies each rendering dry, really, and again, which changes nothing.
func (c *cluster) applied(files []string) {
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".values.yaml")
		ns := c.namespace("apply-"+name, "restricted")
		for _, m := range rendered(c.t, name) {
			for _, more := range []string{"&dryRun=All", ""} {
				a := c.apply(ns, m, more)
				c.t.Logf("%s: %s %s%s: %d %s%s", name, m.kind, m.name, more, a.code, strings.Join(a.warnings, "; "), a.refusal())
				if a.code != http.StatusCreated {
					c.t.Errorf("%s: %s %s: %s", name, m.kind, m.name, a.refusal())
				}
				// Only agents with rights are more than restricted.
				if warned, want := len(a.warnings) > 0, name == "kept" && m.kind == "StatefulSet"; warned != want {
					c.t.Errorf("%s: %s %s: warned: %v; want %v: %s", name, m.kind, m.name, warned, want, a.warnings)
				}
			}
			before := c.must(http.MethodGet, m.path(ns), "", "")
			a := c.apply(ns, m, "")
			if after := c.must(http.MethodGet, m.path(ns), "", ""); a.code != http.StatusOK || !slices.Equal(owned(before), owned(after)) {
				c.t.Errorf("%s: %s %s, applied again: %s, and it changed: %s\n%s", name, m.kind, m.name, a.refusal(), before.body, after.body)
			}
		}
	}
}

// owned are generation and specification of an object: its status is the controllers'.
func owned(a answer) []string {
	var o struct{ Metadata struct{ Generation int } }
	_ = json.Unmarshal([]byte(a.body), &o)
	return []string{fmt.Sprint(o.Metadata.Generation), string(a.Spec)}
}

// podSecurity creates the pods of the templates, dry: which level takes them.
func (c *cluster) podSecurity() {
	t := c.t
	source := c.namespace("templates", "privileged")
	for _, level := range []string{"restricted", "baseline", "privileged"} {
		ns := c.namespace(level, level)
		for _, name := range []string{"default", "agents", "resume", "kept"} {
			for _, m := range rendered(t, name) {
				if m.kind != "StatefulSet" && m.kind != "Job" {
					continue
				}
				a := c.apply(source, m, "&dryRun=All")
				var spec struct {
					Template struct{ Metadata, Spec json.RawMessage }
				}
				if err := json.Unmarshal(a.Spec, &spec); err != nil {
					t.Fatalf("%s: %v", a.refusal(), err)
				}
				var pod struct {
					Metadata map[string]any  `json:"metadata"`
					Spec     json.RawMessage `json:"spec"`
				}
				must.Do(t, json.Unmarshal(spec.Template.Metadata, &pod.Metadata))
				pod.Metadata["name"], pod.Spec = "p", spec.Template.Spec
				b := must.Get(json.Marshal(pod))(t)
				why := c.ask(http.MethodPost, "/api/v1/namespaces/"+ns+"/pods?dryRun=All&fieldValidation=Strict", "application/json", string(b)).refusal()
				t.Logf("%s takes the pod of %s's %s: %s", level, name, m.kind, why)
				refused := name == "kept" && m.kind == "StatefulSet" && level != "privileged"
				if (why != "") != refused || refused && !strings.Contains(why, "SYS_NICE") {
					t.Errorf("%s, the pod of %s's %s: %q; want refused: %v", level, name, m.kind, why, refused)
				}
			}
		}
	}
}

// changed applies plain manifests whose values have changed: which fields cannot.
func (c *cluster) changed() {
	t := c.t
	ns := c.namespace("changed", "privileged")
	all := rendered(t, "kept")
	for _, m := range all {
		if why := c.apply(ns, m, "").refusal(); why != "" {
			t.Fatalf("%s: %s", m.kind, why)
		}
	}
	for _, x := range []struct {
		kind, old, new string
		refused        string // "": it is changed
	}{
		{"StatefulSet", "replicas: 4", "replicas: 5", ""},
		{"StatefulSet", "weirmq/weir:", "weirmq/another:", ""},
		{"StatefulSet", "podManagementPolicy: Parallel", "podManagementPolicy: OrderedReady", "Forbidden: updates to statefulset spec for fields other than"},
		{"Service", "port: 7622", "port: 7623", ""},
		{"Job", "weirmq/weir:", "weirmq/another:", "field is immutable"},
		{"ConfigMap", "400/s", "500/s", "field is immutable"},
		{"PersistentVolumeClaim", "storage: 5Gi", "storage: 6Gi", "Forbidden: spec is immutable after creation"},
		{"PersistentVolumeClaim", `storageClassName: "fast"`, `storageClassName: "slow"`, "Forbidden: spec is immutable after creation"},
	} {
		for _, m := range all {
			if m.kind != x.kind {
				continue
			}
			text := strings.ReplaceAll(m.text, x.old, x.new)
			if text == m.text {
				t.Fatalf("%s has no %q", x.kind, x.old)
			}
			why := c.apply(ns, manifest{m.kind, m.name, text}, "").refusal()
			t.Logf("%s, %s: %.200s", x.kind, x.new, why)
			if (why != "") != (x.refused != "") || !strings.Contains(why, x.refused) {
				t.Errorf("%s, %s: %q; want %q", x.kind, x.new, why, x.refused)
			}
		}
	}
	// What to do: delete what is of one run, and apply again.
	for _, m := range all {
		if m.kind == "Job" || m.kind == "ConfigMap" {
			c.must(http.MethodDelete, m.path(ns)+"?propagationPolicy=Background", "", "")
		}
	}
	for _, m := range all {
		c.eventually("applying "+m.kind+" again", func() string {
			return c.apply(ns, manifest{m.kind, m.name, strings.ReplaceAll(m.text, "400/s", "500/s")}, "&force=true").refusal()
		})
	}
}

// releases installs, upgrades and uninstalls with helm.
func (c *cluster) releases() {
	t := c.t
	const ns = "release"
	c.namespace(ns, "privileged")
	helm := func(args ...string) {
		t.Helper()
		if out, err := c.helm(append(args, "--namespace", ns)...); err != nil {
			t.Fatalf("helm %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	var before []string
	c.eventually("the namespace's own objects", func() string {
		if before = c.objects(ns); !slices.Contains(before, "configmaps/kube-root-ca.crt") {
			return fmt.Sprint(before)
		}
		return ""
	})
	pods := func(want ...string) {
		t.Helper()
		c.eventually("pods "+strings.Join(want, ", "), func() string {
			got := c.names(ns, "pods")
			for i, name := range got { // without what the Job's controller adds
				if job, _, ok := strings.Cut(name, "-run-"); ok {
					got[i] = job + "-run-" + strings.Split(name, "-")[3]
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				return fmt.Sprint(got)
			}
			return ""
		})
	}
	helm("install", "w", "weir", "--values", "testdata/default.values.yaml")
	pods("w-weir-agent-0", "w-weir-agent-1", "w-weir-run-1")
	helm("upgrade", "w", "weir", "--values", "testdata/kept.values.yaml", "--set", "fleet.port=7700,image.tag=other,agents.cpu=3")
	pods("w-weir-agent-0", "w-weir-agent-1", "w-weir-agent-2", "w-weir-agent-3", "w-weir-run-2")
	// Without that flag the Job and the ConfigMap of the upgrade that failed stay for good.
	if out, err := c.helm("upgrade", "--cleanup-on-fail", "w", "weir", "--namespace", ns, "--values", "testdata/kept.values.yaml", "--set", "results.storageClass=slow"); err == nil || !strings.Contains(out, "spec is immutable after creation") {
		t.Errorf("another storage class: %v: %s", err, out)
	}
	helm("upgrade", "w", "weir", "--values", "testdata/agents.values.yaml")
	pods("w-weir-agent-0", "w-weir-agent-1", "w-weir-agent-2")
	helm("uninstall", "w")
	gone := func(kept ...string) {
		t.Helper()
		c.eventually("nothing is left", func() string {
			left := slices.DeleteFunc(c.objects(ns), func(name string) bool { return slices.Contains(before, name) })
			if !slices.Equal(left, kept) {
				return strings.Join(left, ", ")
			}
			return ""
		})
	}
	const claim = "persistentvolumeclaims/w-weir-results"
	gone(claim)
	// A release of the same name takes the kept volume up.
	helm("install", "w", "weir", "--values", "testdata/kept.values.yaml")
	helm("uninstall", "w")
	gone(claim)
	c.must(http.MethodDelete, "/api/v1/namespaces/"+ns+"/"+claim, "", "")
	gone()
}

// disruption evicts agents. What a kubelet would report is written by the test.
func (c *cluster) disruption() {
	t := c.t
	ns := c.namespace("disruption", "restricted")
	for _, m := range rendered(t, "default") {
		if why := c.apply(ns, m, "").refusal(); why != "" {
			t.Fatal(why)
		}
	}
	pod := "/api/v1/namespaces/" + ns + "/pods/w-weir-agent-0"
	ready := func(state string) {
		t.Helper()
		c.eventually("the pod's status", func() string {
			return c.ask(http.MethodPatch, pod+"/status", "application/merge-patch+json",
				fmt.Sprintf(`{"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": %q}]}}`, state)).refusal()
		})
	}
	evict := func() answer {
		return c.ask(http.MethodPost, pod+"/eviction", "application/json", `{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "w-weir-agent-0"}}`)
	}
	ready("True")
	c.eventually("the budget knows its pods", func() string {
		got := c.must(http.MethodGet, "/apis/policy/v1/namespaces/"+ns+"/poddisruptionbudgets/w-weir-agent", "", "")
		var s struct{ ExpectedPods, CurrentHealthy int }
		if err := json.Unmarshal(got.Status, &s); err != nil || s.ExpectedPods != 2 || s.CurrentHealthy != 1 {
			return string(got.Status)
		}
		return ""
	})
	if a := evict(); a.code != http.StatusTooManyRequests {
		t.Errorf("an agent that runs is evicted: %d %s", a.code, a.body)
	}
	ready("False")
	if a := evict(); a.refusal() != "" {
		t.Errorf("an agent that is not ready is not evicted: %s", a.refusal())
	}
}
