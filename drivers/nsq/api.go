package nsq

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/weirmq/weir/driver"
)

// mostAnswer bounds what is read of one answer.
const mostAnswer = 8 << 20

// An api asks the HTTP interfaces of nsqd and nsqlookupd.
// (https://nsq.io/components/nsqd.html)
type api struct{ http.Client }

func newAPI(t *tls.Config) *api {
	return &api{http.Client{
		Transport: &http.Transport{TLSClientConfig: t, MaxIdleConnsPerHost: 1},
		// An answer that leads elsewhere is none of nsqd's.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// An answerError is an answer that is an error.
type answerError struct {
	status  int
	message string // "TOPIC_NOT_FOUND"
}

// Error returns the message.
func (e *answerError) Error() string { return fmt.Sprintf("%s (HTTP %d)", e.message, e.status) }

// isMissing reports whether err says that there is no such topic or channel.
func isMissing(err error) bool {
	var e *answerError
	return errors.As(err, &e) && e.status == http.StatusNotFound && (e.message == "TOPIC_NOT_FOUND" || e.message == "CHANNEL_NOT_FOUND")
}

// get asks, and reads the answer (JSON) into a value.
func (a *api) get(ctx context.Context, base, path string, query url.Values, into any) error {
	b, err := a.do(ctx, http.MethodGet, base, path, query)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("%w: what answers at %s is not NSQ: %s", driver.ErrUnreachable, base, err.Error())
	}
	return nil
}

// post has something done.
func (a *api) post(ctx context.Context, base, path string, query url.Values) error {
	_, err := a.do(ctx, http.MethodPost, base, path, query)
	return err
}

func (a *api) do(ctx context.Context, method, base, path string, query url.Values) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	u := base + path
	if len(query) > 0 {
		u += "?" + query.Encode()
	}
	q, err := http.NewRequestWithContext(ctx, method, u, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", base, err)
	}
	r, err := a.Do(q)
	if err != nil {
		if e := (*url.Error)(nil); errors.As(err, &e) {
			err = e.Err // the rest repeats the address, and tells one topic from another
		}
		return nil, fmt.Errorf("asking %s: %w", base, unreachable(err))
	}
	defer func() { _ = r.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(r.Body, mostAnswer))
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", base, unreachable(err))
	}
	if r.StatusCode != http.StatusOK {
		e := &answerError{status: r.StatusCode, message: r.Status}
		var said struct{ Message string }
		if json.Unmarshal(b, &said) == nil && said.Message != "" {
			e.message = said.Message
		}
		return nil, fmt.Errorf("asking %s: %w", base, e)
	}
	return b, nil
}
