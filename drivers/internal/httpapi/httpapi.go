// Package httpapi queries servers' HTTP interfaces that answer in JSON, such as a management
// plugin, a monitoring address or an admin interface. Requests have a timeout, answers a size
// limit; redirects are not followed.
package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/failure"
)

// mostAnswer limits how much of one answer is read, in bytes.
const mostAnswer = 8 << 20

// A Client sends requests. Its methods may be called concurrently.
type Client struct {
	what           string
	limit          time.Duration
	user, password string
	token          string
	http           http.Client
}

// New returns a client for the interface of a system called what ("nsqd") that waits at most limit
// for an answer. t applies to https addresses; nil: the host's certificate authorities.
func New(what string, t *tls.Config, limit time.Duration) *Client {
	return &Client{what: what, limit: limit, http: http.Client{
		Transport:     &http.Transport{TLSClientConfig: t, MaxIdleConnsPerHost: 1},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// SignIn adds a user and password to all later requests.
func (c *Client) SignIn(user, password string) { c.user, c.password = user, password }

// Bear adds a bearer token to all later requests.
func (c *Client) Bear(token string) { c.token = token }

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// A Refusal is an error answer. Status 401 and 403 are driver.ErrAuth.
type Refusal struct {
	Status   int
	Location string // target of a redirect
	Message  string // the "message" or "reason" of the answer, shortened, or the status text
}

func (e *Refusal) Error() string { return fmt.Sprintf("%s (HTTP %d)", e.Message, e.Status) }

// Unwrap returns driver.ErrAuth if the credentials were refused.
func (e *Refusal) Unwrap() error {
	if e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden {
		return driver.ErrAuth
	}
	return nil
}

// Missing reports whether err is a Refusal with status 404.
func Missing(err error) bool {
	var e *Refusal
	return errors.As(err, &e) && e.Status == http.StatusNotFound
}

// Get decodes the answer to base+path?query into a value. Without an answer within the limit, the
// error is driver.ErrUnreachable; if the answer is not JSON, driver.ErrUnsupported.
func (c *Client) Get(ctx context.Context, base, path string, query url.Values, into any) error {
	b, err := c.send(ctx, http.MethodGet, base, path, query, nil)
	if err != nil {
		return err
	}
	return c.read(b, base, into)
}

// Post sends a POST request and ignores the answer's body. Its errors are Get's.
func (c *Client) Post(ctx context.Context, base, path string, query url.Values) error {
	_, err := c.send(ctx, http.MethodPost, base, path, query, nil)
	return err
}

// Do is Get for any method, with a value sent as JSON (nil: no body). If into is a *string it
// receives the answer's text. An empty answer leaves into unchanged; a nil into accepts any answer.
func (c *Client) Do(ctx context.Context, method, base, path string, query url.Values, body, into any) error {
	var q []byte
	if body != nil {
		var err error
		if q, err = json.Marshal(body); err != nil {
			return fmt.Errorf("writing a question for %s: %w", c.what, err)
		}
	}
	b, err := c.send(ctx, method, base, path, query, q)
	if text, ok := into.(*string); ok && err == nil {
		*text = string(b)
		return nil
	}
	if err != nil || into == nil || len(b) == 0 {
		return err
	}
	return c.read(b, base, into)
}

func (c *Client) read(b []byte, base string, into any) error {
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("asking %s: what answers is not %s: %w: %s", base, c.what, driver.ErrUnsupported, err.Error())
	}
	return nil
}

func (c *Client) send(ctx context.Context, method, base, path string, query url.Values, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	u := base + path
	if len(query) > 0 {
		u += "?" + query.Encode()
	}
	q, err := http.NewRequestWithContext(ctx, method, u, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", base, err)
	}
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	switch {
	case c.user != "":
		q.SetBasicAuth(c.user, c.password)
	case c.token != "":
		q.Header.Set("Authorization", "Bearer "+c.token)
	}
	r, err := c.http.Do(q)
	if err != nil {
		if e := (*url.Error)(nil); errors.As(err, &e) {
			err = e.Err // the rest repeats the address, which makes each error unique
		}
		return nil, fmt.Errorf("asking %s: %w", base, failure.Map{}.Unreachable(err))
	}
	defer func() { _ = r.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(r.Body, mostAnswer))
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", base, failure.Map{}.Unreachable(err))
	}
	if r.StatusCode/100 != 2 {
		e := &Refusal{Status: r.StatusCode, Message: http.StatusText(r.StatusCode), Location: r.Header.Get("Location")}
		var said struct{ Message, Reason string }
		if json.Unmarshal(b, &said) == nil {
			e.Message = cmp.Or(failure.Brief(cmp.Or(said.Message, said.Reason)), e.Message)
		}
		return nil, fmt.Errorf("asking %s: %w", base, e)
	}
	return b, nil
}
