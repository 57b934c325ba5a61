package pulsar

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
)

// TestATopicWaitsForBookies: a newly started broker may not know its bookies yet.
func TestATopicWaitsForBookies(t *testing.T) {
	asked, none := 0, 2
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked <= none {
			http.Error(w, `{"reason":"org.apache.bookkeeper.mledger.ManagedLedgerException: Not enough non-faulty bookies available error code: -6"}`, http.StatusInternalServerError)
		}
	}))
	defer s.Close()
	a, err := newAdmin(&Config{Admin: []string{s.Listener.Addr().String()}, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer a.http.Close()
	topic, err := parseTopic("public/default", "d")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.declare(t.Context(), topic); err != nil || asked != 3 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	none = 1000
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := a.declare(ctx, topic); !errors.Is(err, driver.ErrBlocked) {
		t.Errorf("without any bookie: %v", err)
	}
}
