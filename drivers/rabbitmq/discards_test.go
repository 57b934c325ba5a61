package rabbitmq

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/internal/must"
)

func TestQueueRetentionIsReported(t *testing.T) {
	t.Parallel()
	const cap7 = "a queue drops the oldest beyond 7 messages (policy p: max-length 7)"
	for name, tt := range map[string]struct {
		kind              string
		arguments, policy map[string]any
		want              []string
	}{
		"nothing":               {},
		"a policy with a limit": {policy: map[string]any{"message-ttl": 3e6, "queue-mode": "lazy"}, want: []string{"messages expire after 3000000 ms (policy p: message-ttl 3000000)"}},
		"arguments":             {arguments: map[string]any{"x-max-length": int64(7), "x-queue-type": "classic"}, want: []string{"a queue drops the oldest beyond 7 messages (argument x-max-length 7)"}},
		"a full queue refuses":  {arguments: map[string]any{"x-max-length": 7, "x-overflow": "reject-publish"}},
		"a policy refuses":      {policy: map[string]any{"max-length-bytes": 7, "overflow": "reject-publish-dlx"}},
		"it drops and is deleted": {
			policy: map[string]any{"max-length": 7, "overflow": "drop-head", "expires": 9},
			want:   []string{cap7, "a queue that nobody uses is deleted after 9 ms (policy p: expires 9)"},
		},
		"an argument outweighs a policy":    {kind: classic, arguments: map[string]any{"x-overflow": "reject-publish"}, policy: map[string]any{"max-length": 7, "overflow": "drop-head"}},
		"a quorum queue's policy outweighs": {kind: quorum, arguments: map[string]any{"x-overflow": "reject-publish"}, policy: map[string]any{"max-length": 7, "overflow": "drop-head"}, want: []string{cap7}},
		"deliveries are limited":            {kind: quorum, policy: map[string]any{"delivery-limit": 3}, want: []string{"messages that return more than 3 times are dropped (policy p: delivery-limit 3)"}},
		"a classic queue limits none":       {kind: classic, policy: map[string]any{"delivery-limit": 3}},
		"dead letters are not dropped":      {kind: quorum, arguments: map[string]any{"x-delivery-limit": 3, "x-dead-letter-exchange": ""}},
	} {
		q := limited{Type: tt.kind, Policy: "p", Arguments: tt.arguments}
		if diff := cmp.Diff(tt.want, q.discards("policy p", tt.policy)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The answers of RabbitMQ 4.0 for a queue that is newer than its statistics.
func TestPolicyOfNewQueueIsRead(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/api/policies///ttl":
			io.WriteString(w, `{"vhost":"/","name":"ttl","pattern":".*","apply-to":"queues","definition":{"message-ttl":300},"priority":0}`)
		case r.URL.Path == "/api/operator-policies//":
			io.WriteString(w, `[{"vhost":"/","name":"cap","pattern":"^a","apply-to":"queues","definition":{"max-length":9},"priority":1},
				{"vhost":"/","name":"lower","pattern":".*","apply-to":"queues","definition":{"max-length":2},"priority":0},
				{"vhost":"/","name":"streams","pattern":".*","apply-to":"streams","definition":{"max-length-bytes":2},"priority":7}]`)
		case r.URL.Path != "/api/queues//":
			w.WriteHeader(http.StatusUnauthorized)
		case r.FormValue("disable_stats") == "true":
			io.WriteString(w, `{"items":[{"arguments":{"x-queue-type":"classic"},"name":"a","policy":"ttl","type":"classic"},{"arguments":[],"name":"b","policy":"secret","type":"classic"}]}`)
		default:
			io.WriteString(w, `{"items":[{"arguments":{"x-queue-type":"classic"},"name":"a"}]}`)
		}
	}))
	defer s.Close()
	urls := must.Get(plugins.All("management", []string{s.URL}))(t)
	m := newManagement(&Config{}, urls, nil)
	defer m.Close()
	got, err := m.discards(t.Context(), "/", "^a$")
	want := []string{
		"a queue drops the oldest beyond 2 messages (operator policy lower: max-length 2)",
		"a queue drops the oldest beyond 9 messages (operator policy cap: max-length 9)",
		"messages expire after 300 ms (policy ttl: message-ttl 300)",
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
