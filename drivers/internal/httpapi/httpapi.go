// Package httpapi asks the HTTP interfaces of servers, with answers in JSON. Use it
// for a management plugin, a monitoring address, an admin interface. Each question and
// each answer is bounded; redirects are not followed.
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

// mostAnswer bounds what is read of one answer, in bytes.
const mostAnswer = 8 << 20

// A Client asks. Its methods may be called concurrently.
type Client struct {
	what           string
	limit          time.Duration
	user, password string
	token          string
	http           http.Client
}

// New returns a client for the interface of a system called what ("nsqd"), which waits
// for an answer for limit. t is for addresses of https, nil: the host's authorities.
func New(what string, t *tls.Config, limit time.Duration) *Client {
	return &Client{what: what, limit: limit, http: http.Client{
		Transport:     &http.Transport{TLSClientConfig: t, MaxIdleConnsPerHost: 1},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// SignIn has all later questions name a user.
func (c *Client) SignIn(user, password string) { c.user, c.password = user, password }

// Bear has all later questions carry a bearer token.
func (c *Client) Bear(token string) { c.token = token }

// Close ends the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// A Refusal is an answer that is an error. A Status of 401 and 403 is driver.ErrAuth.
type Refusal struct {
	Status   int
	Location string // where a redirect leads
	Message  string // of the answer {"message": ...} or {"reason": ...}, in brief, or the status as a text
}

func (e *Refusal) Error() string { return fmt.Sprintf("%s (HTTP %d)", e.Message, e.Status) }

// Unwrap returns driver.ErrAuth for refused credentials.
func (e *Refusal) Unwrap() error {
	if e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden {
		return driver.ErrAuth
	}
	return nil
}

// Missing reports whether err is a Refusal because there is no such thing (404).
func Missing(err error) bool {
	var e *Refusal
	return errors.As(err, &e) && e.Status == http.StatusNotFound
}

// Get reads the answer to base+path?query into a value. No answer within the limit is
// driver.ErrUnreachable, one that is not JSON driver.ErrUnsupported.
func (c *Client) Get(ctx context.Context, base, path string, query url.Values, into any) error {
	b, err := c.send(ctx, http.MethodGet, base, path, query, nil)
	if err != nil {
		return err
	}
	return c.read(b, base, into)
}

// Post has something done. Its errors are Get's; the answer is not read.
func (c *Client) Post(ctx context.Context, base, path string, query url.Values) error {
	_, err := c.send(ctx, http.MethodPost, base, path, query, nil)
	return err
}

// Do is Get for any method, with a value as the question's body in JSON (nil: none), and
// with a text as the answer where into is a *string. An empty answer leaves into as it is;
// a nil into takes any answer.
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
			err = e.Err // the rest repeats the address, and tells one question from another
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
