package pulsar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/endpoint"
	"github.com/weirmq/weir/drivers/internal/httpapi"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// A topic is where a destination's messages are stored.
type topic struct {
	name       string // domain://tenant/namespace/topic
	path       string // in the admin interface: /domain/tenant/namespace/topic
	partitions int    // 0: not partitioned
}

// parseTopic parses a topic name with or without its namespace.
func parseTopic(namespace, name string) (topic, error) {
	full := name
	if !strings.Contains(full, "://") {
		full = "persistent://" + namespace + "/" + name
	}
	domain, rest, _ := strings.Cut(full, "://")
	parts := strings.SplitN(rest, "/", 3)
	if domain != "persistent" || len(parts) != 3 || slices.Contains(parts, "") {
		return topic{}, fmt.Errorf("%q is not a persistent topic: %w", name, driver.ErrUnsupported)
	}
	return topic{name: full, path: "/" + domain + "/" + parts[0] + "/" + parts[1] + "/" + url.PathEscape(parts[2])}, nil
}

// An admin queries the brokers' web services.
type admin struct {
	http *httpapi.Client
	at   endpoint.List
}

func newAdmin(cfg *Config) (*admin, error) {
	a := &admin{}
	var err error
	if a.at, err = admins.All("admin", cfg.Admin); err != nil {
		return nil, err
	}
	t, err := cfg.TLS.Config()
	if err != nil {
		return nil, err
	}
	a.http = httpapi.New("Pulsar", t, cfg.Timeout)
	switch {
	case cfg.User != "":
		a.http.SignIn(cfg.User, cfg.Password.Reveal())
	case !cfg.Token.IsZero():
		a.http.Bear(cfg.Token.Reveal())
	}
	return a, nil
}

// ask queries the web services in turn until one answers.
func (a *admin) ask(ctx context.Context, method, path string, query url.Values, body, into any) error {
	var errs []error
	for _, e := range a.at {
		err := a.follow(ctx, method, e.String(), path, query, body, into)
		if !errors.Is(err, driver.ErrUnreachable) {
			return err
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// mostHops limits redirects. A broker that is not in charge of a topic names the one that is, or
// the leader, which decides that.
const mostHops = 5

// follow queries one web service and follows its redirects, but not from TLS to plain text.
func (a *admin) follow(ctx context.Context, method, base, path string, query url.Values, body, into any) error {
	for hop := 0; ; hop++ {
		err := a.http.Do(ctx, method, base, "/admin/v2"+path, query, body, into)
		var r *httpapi.Refusal
		if !errors.As(err, &r) || r.Location == "" || hop == mostHops {
			return err
		}
		to, bad := url.Parse(r.Location)
		if bad != nil || !strings.HasPrefix(base, to.Scheme+"://") {
			return err
		}
		base, query = to.Scheme+"://"+to.Host, to.Query()
	}
}

// force deletes even with producers or consumers.
var force = url.Values{"force": {"true"}}

// answered reports whether the answer to a request had a status.
func answered(err error, status int) bool {
	var r *httpapi.Refusal
	return errors.As(err, &r) && r.Status == status
}

const (
	storeLimit = 10 * time.Second       // for bookies that are not there yet, or not back yet
	storePause = 250 * time.Millisecond // between two attempts
)

// unstored reports whether the broker knows too few bookies to store a topic. A broker that just
// started, or is busy, may find them a moment later.
func unstored(err error) bool {
	return answered(err, http.StatusInternalServerError) && strings.Contains(err.Error(), "Not enough non-faulty bookies")
}

// declare creates a topic. It is no error if it exists.
func (a *admin) declare(ctx context.Context, t topic) error {
	path, body := t.path, any(nil)
	if t.partitions > 0 {
		path, body = path+"/partitions", t.partitions
	}
	short, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	err := retry.While(short, storePause, unstored, func() error { return a.ask(ctx, http.MethodPut, path, nil, body, nil) })
	switch {
	case answered(err, http.StatusConflict):
		return nil
	case unstored(err):
		return fmt.Errorf("%w: %w", driver.ErrBlocked, err)
	}
	return err
}

// remove deletes a topic, partitioned or not. It is no error if it is missing.
func (a *admin) remove(ctx context.Context, t topic) error {
	t, err := a.partitioned(ctx, t)
	if err == nil && t.partitions > 0 {
		err = a.ask(ctx, http.MethodDelete, t.path+"/partitions", force, nil, nil)
	} else if err == nil {
		err = a.ask(ctx, http.MethodDelete, t.path, force, nil, nil)
	}
	if httpapi.Missing(err) {
		return nil
	}
	return err
}

func (a *admin) partitioned(ctx context.Context, t topic) (topic, error) {
	var said struct{ Partitions int }
	err := a.ask(ctx, http.MethodGet, t.path+"/partitions", nil, nil, &said)
	t.partitions = said.Partitions
	return t, err
}

func (a *admin) find(ctx context.Context, t topic) (topic, error) {
	t, err := a.partitioned(ctx, t)
	if err == nil {
		_, err = a.subscriptions(ctx, t)
	}
	if httpapi.Missing(err) {
		return t, fmt.Errorf("there is no topic %s: %w", t.name, driver.ErrUnsupported)
	}
	return t, err
}

// A subscription's statistics, in entries.
type subscription struct {
	Backlog uint64 `json:"msgBacklog"`
	Expired uint64 `json:"totalMsgExpired"`
}

// subscriptions returns the statistics of a topic's subscriptions.
func (a *admin) subscriptions(ctx context.Context, t topic) (map[string]subscription, error) {
	path, query := t.path+"/stats", url.Values{"getPreciseBacklog": {"true"}}
	if t.partitions > 0 {
		path = t.path + "/partitioned-stats"
		query.Set("perPartition", "false")
	}
	var said struct{ Subscriptions map[string]subscription }
	err := a.ask(ctx, http.MethodGet, path, query, nil, &said)
	return said.Subscriptions, err
}

func (a *admin) unsubscribe(ctx context.Context, t topic, subscription string) error {
	err := a.ask(ctx, http.MethodDelete, t.path+"/subscription/"+url.PathEscape(subscription), force, nil, nil)
	if httpapi.Missing(err) {
		return nil
	}
	return err
}

// quorums describes how a topic is stored.
type quorums struct {
	Ensemble int `json:"bookkeeperEnsemble"`
	Write    int `json:"bookkeeperWriteQuorum"`
	Ack      int `json:"bookkeeperAckQuorum"`
}

// of returns a topic's effective quorums: its own, its namespace's, or the broker's.
func (a *admin) of(ctx context.Context, t topic) (q quorums, err error) {
	err = a.ask(ctx, http.MethodGet, t.path+"/persistence", url.Values{"applied": {"true"}}, nil, &q)
	return q, err
}

// A backlogQuota limits the backlog of a topic's subscriptions; -1: no limit.
type backlogQuota struct {
	Size    int64  `json:"limitSize"` // bytes
	Seconds int64  `json:"limitTime"`
	Policy  string `json:"policy"`
}

// policies returns a topic's effective message TTL in seconds (0: none) and its backlog quotas, by
// kind.
func (a *admin) policies(ctx context.Context, t topic) (ttl int64, quotas map[string]backlogQuota, err error) {
	applied := url.Values{"applied": {"true"}}
	if err := a.ask(ctx, http.MethodGet, t.path+"/messageTTL", applied, nil, &ttl); err != nil {
		return 0, nil, err
	}
	return ttl, quotas, a.ask(ctx, http.MethodGet, t.path+"/backlogQuotaMap", applied, nil, &quotas)
}

// preset returns the quorums of a topic newly created in a namespace.
func (a *admin) preset(ctx context.Context, namespace string) (q quorums, err error) {
	var said json.RawMessage // empty if the namespace has no policy
	err = a.ask(ctx, http.MethodGet, "/namespaces/"+namespace+"/persistence", nil, nil, &said)
	switch {
	case httpapi.Missing(err):
		return q, fmt.Errorf("namespace %s: %w: %w", namespace, driver.ErrUnsupported, err)
	case err != nil:
		return q, err
	case len(said) > 0:
		return q, json.Unmarshal(said, &q)
	}
	var settings map[string]string
	if err := a.ask(ctx, http.MethodGet, "/brokers/configuration/runtime", nil, nil, &settings); err != nil {
		return q, err
	}
	q.Ensemble, _ = strconv.Atoi(settings["managedLedgerDefaultEnsembleSize"])
	q.Write, _ = strconv.Atoi(settings["managedLedgerDefaultWriteQuorum"])
	q.Ack, _ = strconv.Atoi(settings["managedLedgerDefaultAckQuorum"])
	return q, nil
}
