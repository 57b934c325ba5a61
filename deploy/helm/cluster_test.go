// Package helm tests the chart against a real API server of Kubernetes.
package helm

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

const (
	token   = "admin-of-the-test"
	patient = 2 * time.Minute // on a busy host
)

// A cluster is etcd, an API server, and the controllers. It has no scheduler and no kubelet: pods are created and stay
// pending.
type cluster struct {
	t          *testing.T
	url        string
	client     *http.Client
	kubeconfig string
}

// newCluster starts one. It skips the test where the programs are missing; deploy/helm/apiserver.sh builds them.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	needs.Time(t)
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager"} {
		if _, err := exec.LookPath(name); err != nil {
			needs.Host(t, "apiserver", err)
		}
	}
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	private := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	der := must.Get(x509.MarshalECPrivateKey(private))(t)
	key := file("accounts.key", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})))
	etcd, peer, at, controllers := free(t), free(t), free(t), free(t)
	certs := filepath.Join(dir, "certs")

	start(t, "etcd", "--data-dir="+filepath.Join(dir, "etcd"), "--listen-client-urls=http://"+etcd, "--advertise-client-urls=http://"+etcd,
		"--listen-peer-urls=http://"+peer, "--initial-advertise-peer-urls=http://"+peer, "--initial-cluster=default=http://"+peer)
	_, port, _ := net.SplitHostPort(at)
	start(t, "kube-apiserver", "--etcd-servers=http://"+etcd, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port="+port, "--cert-dir="+certs,
		"--token-auth-file="+file("tokens.csv", token+",admin,admin,system:masters\n"), "--authorization-mode=RBAC",
		"--service-account-issuer=https://weir.test", "--service-account-key-file="+key, "--service-account-signing-key-file="+key,
		"--service-cluster-ip-range=10.96.0.0/16", "--endpoint-reconciler-type=none")
	c := &cluster{t: t, url: "https://" + at}
	c.eventually("the API server is ready", func() string {
		pool := x509.NewCertPool()
		pem, err := os.ReadFile(filepath.Join(certs, "apiserver.crt"))
		if err != nil || !pool.AppendCertsFromPEM(pem) {
			return fmt.Sprint(err)
		}
		c.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
		return c.ask(http.MethodGet, "/readyz", "", "").refusal()
	})
	t.Cleanup(c.client.CloseIdleConnections)
	c.kubeconfig = file("kubeconfig", fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: x
contexts: [{name: x, context: {cluster: x, user: x}}]
clusters: [{name: x, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: x, user: {token: %s}}]
`, c.url, filepath.Join(certs, "apiserver.crt"), token))
	_, port, _ = net.SplitHostPort(controllers)
	start(t, "kube-controller-manager", "--kubeconfig="+c.kubeconfig, "--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port="+port,
		"--cert-dir="+certs, "--service-account-private-key-file="+key, "--authentication-skip-lookup", "--concurrent-gc-syncs=2")
	return c
}

// free returns an address at which nothing listens.
func free(t *testing.T) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return l.Addr().String()
}

// start starts a program, which is killed at the end of the test.
func start(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if lines := strings.Split(said.String(), "\n"); t.Failed() {
			t.Logf("%s:\n%s", name, strings.Join(lines[max(0, len(lines)-20):], "\n"))
		}
	})
}

// eventually waits until a condition holds, for which it returns "".
func (c *cluster) eventually(what string, holds func() string) {
	c.t.Helper()
	for limit := time.Now().Add(patient); ; time.Sleep(100 * time.Millisecond) {
		why := holds()
		if why == "" {
			return
		}
		if time.Now().After(limit) {
			c.t.Fatalf("%s: not within %v: %s", what, patient, why)
		}
	}
}

// An object is what the test reads of one, of a list, and of a refusal.
type object struct {
	Kind     string
	Message  string // of a refusal
	Metadata struct {
		Name, ResourceVersion string
		Labels, Annotations   map[string]string
	}
	Spec, Status json.RawMessage
	Items        []object
	Groups       []struct{ PreferredVersion struct{ GroupVersion string } }
	Resources    []struct {
		Name       string
		Namespaced bool
		Verbs      []string
	}
}

// An answer is what the API server answered.
type answer struct {
	object
	code     int
	warnings []string
	body     string
}

// refusal is why a request was refused, "" if it was not.
func (a answer) refusal() string {
	switch {
	case a.code/100 == 2:
		return ""
	case a.Message != "":
		return fmt.Sprintf("%d %s", a.code, a.Message)
	}
	return fmt.Sprintf("%d %s", a.code, a.body)
}

// ask does a request. Its path may have a query.
func (c *cluster) ask(method, path, kind, body string) answer {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	got, err := c.client.Do(r)
	if err != nil {
		return answer{body: err.Error()}
	}
	defer got.Body.Close()
	b, err := io.ReadAll(got.Body)
	if err != nil {
		return answer{body: err.Error()}
	}
	a := answer{code: got.StatusCode, body: string(b), warnings: got.Header.Values("Warning")}
	_ = json.Unmarshal(b, &a.object) // /readyz answers with a word
	return a
}

// must is ask of what is not refused.
func (c *cluster) must(method, path, kind, body string) answer {
	c.t.Helper()
	a := c.ask(method, path, kind, body)
	if why := a.refusal(); why != "" {
		c.t.Fatalf("%s %s: %s", method, path, why)
	}
	return a
}

// namespace makes one, in which that Pod Security level is enforced, and of whose restricted level the server warns.
func (c *cluster) namespace(name, level string) string {
	c.t.Helper()
	const label = "pod-security.kubernetes.io/"
	c.must(http.MethodPost, "/api/v1/namespaces", "application/json", fmt.Sprintf(
		`{"metadata": {"name": %q, "labels": {%q: %q, %q: "restricted"}}}`, name, label+"enforce", level, label+"warn"))
	c.eventually("the service account of "+name, func() string {
		return c.ask(http.MethodGet, "/api/v1/namespaces/"+name+"/serviceaccounts/default", "", "").refusal()
	})
	return name
}

// resources are the paths of all lists of objects in a namespace.
func (c *cluster) resources(ns string) (paths []string) {
	c.t.Helper()
	versions := []string{"/api/v1"}
	for _, g := range c.must(http.MethodGet, "/apis", "", "").Groups {
		versions = append(versions, "/apis/"+g.PreferredVersion.GroupVersion)
	}
	for _, v := range versions {
		for _, r := range c.must(http.MethodGet, v, "", "").Resources {
			if r.Namespaced && r.Name != "events" && slices.Contains(r.Verbs, "list") {
				paths = append(paths, v+"/namespaces/"+ns+"/"+r.Name)
			}
		}
	}
	return paths
}

// objects are all objects in a namespace, but events.
func (c *cluster) objects(ns string) (all []string) {
	c.t.Helper()
	for _, path := range c.resources(ns) {
		for _, o := range c.must(http.MethodGet, path, "", "").Items {
			all = append(all, filepath.Base(path)+"/"+o.Metadata.Name)
		}
	}
	slices.Sort(all)
	return all
}

// names are those of the objects of one kind, such as pods.
func (c *cluster) names(ns, kind string) (all []string) {
	c.t.Helper()
	for _, name := range c.objects(ns) {
		if rest, ok := strings.CutPrefix(name, kind+"/"); ok {
			all = append(all, rest)
		}
	}
	return all
}

// helm runs helm, and returns what it printed.
func (c *cluster) helm(args ...string) (string, error) {
	c.t.Helper()
	cmd := exec.Command("go", append([]string{"tool", "-modfile=../../tools/helm/go.mod", "helm"}, args...)...)
	home := c.t.TempDir()
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
