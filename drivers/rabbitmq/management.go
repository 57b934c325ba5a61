package rabbitmq

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/weirmq/weir/driver"
)

// management is the HTTP interface of the vendor's plugin.
// (https://www.rabbitmq.com/docs/management#http-api)
type management struct {
	client         *http.Client
	urls           []string
	user, password string
}

// mostAnswer bounds what is read of an answer.
const mostAnswer = 8 << 20

func newManagement(c *Config, t *tls.Config) *management {
	m := &management{user: c.User, password: c.password()}
	m.client = &http.Client{Timeout: connectLimit, Transport: &http.Transport{TLSClientConfig: t, MaxIdleConnsPerHost: 1}}
	for _, a := range c.Management {
		if u, err := parseURL(a); err == nil {
			m.urls = append(m.urls, strings.TrimSuffix(u.String(), "/"))
		}
	}
	return m
}

func (m *management) close() { m.client.CloseIdleConnections() }

// errMissing: there is no such thing.
var errMissing = errors.New("not there")

// get asks the first that answers.
func (m *management) get(ctx context.Context, path string, into any) error {
	var errs []error
	for _, base := range m.urls {
		err := m.from(ctx, base+path, into)
		if !errors.Is(err, driver.ErrUnreachable) {
			return err
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (m *management) from(ctx context.Context, address string, into any) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	q.SetBasicAuth(m.user, m.password)
	a, err := m.client.Do(q)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return unreachable(err)
	}
	defer func() { _ = a.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(a.Body, mostAnswer))
	switch {
	case err != nil:
		return unreachable(err)
	case a.StatusCode == http.StatusUnauthorized, a.StatusCode == http.StatusForbidden:
		return fmt.Errorf("%w: for user %s, who needs the tag monitoring: %s", driver.ErrAuth, m.user, a.Status)
	case a.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%w: %s", errMissing, a.Status)
	case a.StatusCode != http.StatusOK:
		return fmt.Errorf("%w: %s", driver.ErrUnreachable, a.Status)
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("%w: what answers is not a management plugin", driver.ErrUnsupported)
	}
	return nil
}

// nodes returns how many run.
func (m *management) nodes(ctx context.Context) (int, error) {
	var all []struct {
		Running bool
	}
	if err := m.get(ctx, "/api/nodes?columns=running", &all); err != nil {
		return 0, err
	}
	n := 0
	for _, node := range all {
		if node.Running {
			n++
		}
	}
	return n, nil
}

// A queueStatus is what the plugin tells of a queue.
type queueStatus struct {
	Type    string
	Durable bool
	Members []string
	Backing struct {
		Version int
	} `json:"backing_queue_status"`
	Storage int `json:"storage_version"`
}

func (m *management) status(ctx context.Context, vhost, queue string) (queueStatus, error) {
	var s queueStatus
	err := m.get(ctx, "/api/queues/"+url.PathEscape(vhost)+"/"+url.PathEscape(queue), &s)
	return s, err
}

// queue returns what kind a queue has. What it says of a new one comes with some
// delay: it is asked again for a while.
func (m *management) queue(ctx context.Context, vhost, queue string) (queueKind, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	for {
		s, err := m.status(ctx, vhost, queue)
		k := queueKind{kind: s.Type, durable: s.Durable, replicas: max(1, len(s.Members))}
		for _, v := range []int{s.Storage, s.Backing.Version} {
			if v == 1 || v == 2 {
				k.version = fmt.Sprint(v)
			}
		}
		if err != nil && !errors.Is(err, errMissing) {
			return k, err
		}
		if err == nil && (k.kind == quorum && len(s.Members) > 0 || k.kind != quorum && k.kind != "" && (k.kind != classic || k.version != "")) {
			return k, nil
		}
		if !pause(ctx, 100*time.Millisecond) {
			return k, err
		}
	}
}

// members refuses a quorum queue with fewer members than asked for: where there
// are not enough nodes the server makes one of those that there are.
func (m *management) members(ctx context.Context, vhost, queue string, n int) error {
	k, err := m.queue(ctx, vhost, queue)
	if err != nil {
		return fmt.Errorf("option management: %w", err)
	}
	if k.replicas < n {
		return fmt.Errorf("%d replicas: the server made a queue of %d: %w", n, k.replicas, driver.ErrUnsupported)
	}
	return nil
}
