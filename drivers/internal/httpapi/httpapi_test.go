package httpapi_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/httpapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve sends good and bad answers.
func serve(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/stats":
		user, password, _ := r.BasicAuth()
		_, _ = fmt.Fprintf(w, `{"depth": 7, "topic": %q, "user": %q}`, r.URL.Query().Get("topic"), user+"/"+password)
	case "/away":
		http.Redirect(w, r, "/stats", http.StatusFound)
	case "/echo":
		b, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, "%s %s %s %s", r.Method, r.Header.Get("Authorization"), r.Header.Get("Content-Type"), b)
	case "/empty":
		w.WriteHeader(http.StatusNoContent)
	case "/reason":
		w.WriteHeader(http.StatusConflict)
		_, _ = fmt.Fprint(w, `{"reason": "exists"}`)
	case "/stack": // as Pulsar's brokers answer
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = fmt.Fprint(w, `{"reason": "\n --- An unexpected error occurred in the server ---\n\nMessage: a bookie is gone\n\nStacktrace:\n\nx.Gone: y\n\tat x.A.b(A.java:1)\n"}`)
	case "/text":
		_, _ = fmt.Fprint(w, "<html>")
	case "/mine":
		w.WriteHeader(http.StatusForbidden)
	case "/silent":
		<-r.Context().Done()
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprint(w, `{"message": "TOPIC_NOT_FOUND"}`)
	}
}

func TestResponsesAreDecoded(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(serve))
	defer s.Close()
	c := httpapi.New("nsqd", nil, time.Minute)
	defer c.Close()
	c.SignIn("ann", "hunter2")
	var got struct {
		Depth       int
		Topic, User string
	}
	if err := c.Get(t.Context(), s.URL, "/stats", url.Values{"topic": {"a b"}}, &got); err != nil || got.Depth != 7 || got.Topic != "a b" || got.User != "ann/hunter2" {
		t.Errorf("%+v, %v", got, err)
	}
	if err := c.Post(t.Context(), s.URL, "/stats", nil); err != nil {
		t.Error(err)
	}
}

// TestDoAsksWithABody also covers answers that are text, empty, or redirects.
func TestDoAsksWithABody(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(serve))
	defer s.Close()
	c := httpapi.New("pulsar", nil, time.Minute)
	defer c.Close()
	c.Bear("hunter2")
	var text string
	if err := c.Do(t.Context(), http.MethodPut, s.URL, "/echo", nil, 3, &text); err != nil || text != "PUT Bearer hunter2 application/json 3" {
		t.Errorf("%q, %v", text, err)
	}
	got := 7
	if err := c.Do(t.Context(), http.MethodDelete, s.URL, "/empty", nil, nil, &got); err != nil || got != 7 {
		t.Errorf("%d, %v", got, err)
	}
	var r *httpapi.Refusal
	if err := c.Do(t.Context(), http.MethodGet, s.URL, "/away", nil, nil, nil); !errors.As(err, &r) || r.Location != "/stats" {
		t.Errorf("a redirect: %v", err)
	}
	if err := c.Do(t.Context(), http.MethodPut, s.URL, "/reason", nil, nil, nil); !errors.As(err, &r) || r.Status != http.StatusConflict || r.Message != "exists" {
		t.Errorf("a refusal with a reason: %v", err)
	}
}

// TestBadResponseIsExplained covers each kind of invalid answer.
func TestBadResponseIsExplained(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(serve))
	defer s.Close()
	c, hasty := httpapi.New("nsqd", nil, time.Minute), httpapi.New("nsqd", nil, 50*time.Millisecond)
	defer c.Close()
	defer hasty.Close()
	var any map[string]any
	for path, tc := range map[string]struct {
		is      error
		says    string
		missing bool
	}{
		"/away":   {nil, "Found (HTTP 302)", false},
		"/text":   {driver.ErrUnsupported, "what answers is not nsqd", false},
		"/mine":   {driver.ErrAuth, "Forbidden (HTTP 403)", false},
		"/stack":  {nil, "a bookie is gone (HTTP 500)", false},
		"/silent": {driver.ErrUnreachable, "system unreachable", false},
		"/none":   {nil, "TOPIC_NOT_FOUND (HTTP 404)", true},
	} {
		asks := c
		if path == "/silent" { // never answers
			asks = hasty
		}
		err := asks.Get(t.Context(), s.URL, path, nil, &any)
		if err == nil || tc.is != nil && !errors.Is(err, tc.is) || !strings.HasPrefix(err.Error(), "asking "+s.URL+": "+tc.says) || httpapi.Missing(err) != tc.missing {
			t.Errorf("%s: %v; want %s", path, err, tc.says)
		}
	}
	s.Close()
	if err := c.Post(t.Context(), s.URL, "/", nil); !errors.Is(err, driver.ErrUnreachable) || strings.Contains(err.Error(), "->") {
		t.Errorf("with nobody there: %v", err)
	}
}
