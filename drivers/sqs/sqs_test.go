package sqs

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	client "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// open connects, declares destination d unless the run's exist, and deletes it at the end.
func open(t testing.TB, run driver.Run, system map[string][]string, options ...string) driver.Conn {
	t.Helper()
	c := trial.Opened(t, Definition(), run, system, options...)
	if !run.Existing {
		trial.Declare(t, c, trial.Plain("d"))
	}
	return c
}

func produce(t testing.TB, c driver.Conn, destination string) (driver.BatchProducer, trial.Fates) {
	t.Helper()
	p, f := trial.Producer(t, c, destination)
	return p.(driver.BatchProducer), f
}

// put sends messages as a batch, and returns the first error.
func put(t testing.TB, p driver.BatchProducer, f trial.Fates, ms ...*driver.Message) (first error) {
	t.Helper()
	p.PublishBatch(t.Context(), ms)
	for range ms {
		if err := f.Next(t); first == nil {
			first = err
		}
	}
	return first
}

func message(destination, key, payload string) *driver.Message {
	return &driver.Message{Destination: destination, Key: []byte(key), Payload: []byte(payload)}
}

// has returns the payloads, and the number of redelivered ones.
func has(l *trial.Log) (texts []string, redelivered int) {
	l.Lock()
	defer l.Unlock()
	return slices.Clone(l.Got), len(l.Again)
}

// consume runs a consumer until end is called, or the end of the test.
func consume(t testing.TB, c driver.Conn, destination string, s *trial.Log) (end func() error) {
	t.Helper()
	_, end = trial.Run(t, c, driver.ConsumerSpec{Subscription: "s", Destinations: []string{destination}, Settle: driver.SettleBatch}, s)
	t.Cleanup(func() { _ = end() }) // some tests delete its queue
	return end
}

// TestPayloadsInBodies sends a message for each byte value and the largest one as base64, and reads
// another program's message.
func TestPayloadsInBodies(t *testing.T) {
	s := shared.Up(t, 1)
	c := open(t, driver.Run{ID: "body"}, s.Options, "payload", body)
	p, f := produce(t, c, "d")
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	largest := strings.Repeat("x", sizeMost/4*3)
	must.Do(t, put(t, p, f, message("d", "", string(all)), message("d", "", largest)))
	if err := put(t, p, f, message("d", "", largest+"x")); !errors.Is(err, driver.ErrTooLarge) {
		t.Errorf("a larger one: %v", err)
	}
	k := driver.Inside(c).(*conn)
	q := must.Get(k.queue(t.Context(), "d"))(t)
	must.Get(k.link.SendMessage(t.Context(), &client.SendMessageInput{QueueUrl: q.url, MessageBody: aws.String("plain text")}))(t)
	r := trial.NewLog()
	consume(t, c, "d", r)
	want := map[string]bool{string(all): true, largest: true, "plain text": true}
	trial.Eventually(func() bool { got, _ := has(r); return len(got) >= len(want) })
	got, _ := has(r)
	for _, text := range got {
		if !want[text] {
			t.Errorf("%d bytes came that were not sent", len(text))
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d of %d messages came", len(got), len(want))
	}
}

// FuzzPayload: another program's body is used unchanged, unless it is base64.
func FuzzPayload(f *testing.F) {
	f.Add("aGVsbG8=")
	f.Add("hello")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		want, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			want = []byte(text)
		}
		if got := payload(&types.Message{Body: &text}); !bytes.Equal(got, want) {
			t.Errorf("%q became %q", text, got)
		}
		sent := []byte(text)
		m := &types.Message{Body: aws.String("-"), MessageAttributes: map[string]types.MessageAttributeValue{payloadName: {BinaryValue: sent}}}
		if got := payload(m); !bytes.Equal(got, sent) {
			t.Errorf("the attribute %q became %q", text, got)
		}
	})
}

// TestFIFOQueueBlocksGroup sends to two groups alternately, and blocks one of them.
func TestFIFOQueueBlocksGroup(t *testing.T) {
	s := shared.Up(t, 1)
	c := open(t, driver.Run{ID: "group"}, s.Options, "queue", fifo, "receivers", "1")
	p, f := produce(t, c, "d")
	must.Do(t, put(t, p, f, message("d", "a", "a1")))
	ctx, release := context.WithCancel(t.Context())
	var held atomic.Bool
	first, second := trial.Hearing(func() {
		if held.CompareAndSwap(false, true) {
			<-ctx.Done()
		}
	}), trial.NewLog()
	consume(t, c, "d", first)
	if !trial.Eventually(held.Load) {
		t.Fatal("nothing came")
	}
	must.Do(t, put(t, p, f, message("d", "a", "a2"), message("d", "b", "b1")))
	consume(t, c, "d", second)
	trial.Eventually(func() bool { got, _ := has(second); return len(got) > 0 })
	if got, _ := has(second); len(got) != 1 || got[0] != "b1" {
		t.Errorf("beside a group that is held up came %q", got)
	}
	release()
	trial.Eventually(func() bool {
		a, _ := has(first)
		b, _ := has(second)
		return len(a)+len(b) >= 3
	})
}

// TestVisibilityTimeout processes a message for longer than the timeout.
func TestVisibilityTimeout(t *testing.T) {
	s := shared.Up(t, 1)
	c := open(t, driver.Run{ID: "visible"}, s.Options, "visibility-timeout", "1s")
	ctx, release := context.WithCancel(t.Context())
	var held atomic.Bool
	slow := trial.Hearing(func() {
		if held.CompareAndSwap(false, true) {
			<-ctx.Done()
		}
	})
	consume(t, c, "d", slow)
	p, f := produce(t, c, "d")
	must.Do(t, put(t, p, f, message("d", "", "slow")))
	if !trial.Eventually(held.Load) {
		t.Fatal("nothing came")
	}
	other := trial.NewLog()
	consume(t, c, "d", other)
	trial.Eventually(func() bool { got, _ := has(other); return len(got) > 0 })
	release()
	if got, again := has(other); len(got) != 1 || again != 1 {
		t.Errorf("another consumer got %q, %d of them as delivered before", got, again)
	}
}

// A counter counts requests.
type counter struct {
	client.HTTPClient
	n *atomic.Int64
}

func (c counter) Do(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.HTTPClient.Do(r)
}

// TestEndedLongPollLosesNoMessages ends consumers that wait for messages. Messages sent on an
// aborted call would be invisible to everyone.
func TestEndedLongPollLosesNoMessages(t *testing.T) {
	s := shared.Up(t, 1)
	c := open(t, driver.Run{ID: "poll"}, s.Options)
	p, f := produce(t, c, "d")
	last := trial.NewLog()
	for range 3 {
		first := trial.NewLog()
		end := consume(t, c, "d", first)
		must.Do(t, put(t, p, f, message("d", "", "x")))
		trial.Eventually(func() bool { got, _ := has(first); return len(got) > 0 })
		ended := make(chan error)
		go func() { ended <- end() }()
		must.Do(t, put(t, p, f, message("d", "", "y")))
		if err := <-ended; err != nil {
			t.Error(err)
		}
		got, _ := has(first)
		last.Got = append(last.Got, got...)
	}
	consume(t, c, "d", last)
	// Well within the visibility timeout of 30 s.
	for range 2000 {
		if got, _ := has(last); len(got) >= 6 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if got, _ := has(last); len(got) != 6 {
		t.Errorf("%d of 6 messages came: %q", len(got), got)
	}
}

// TestBatchesOfTen counts the calls for messages published together and individually.
func TestBatchesOfTen(t *testing.T) {
	s := shared.Up(t, 1)
	for name, test := range map[string]struct {
		size, want int
	}{
		"ten": {10, 1}, "eleven": {11, 2}, "two of half the limit": {2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, driver.Run{ID: "batch"}, s.Options, "senders", "1")
			p, f := produce(t, c, "d")
			text := "x"
			if test.size == 2 {
				text = strings.Repeat("x", sizeMost/2)
			}
			var calls atomic.Int64
			counted := p.(*producer)
			counted.link.Client = client.New(counted.link.Options(), func(o *client.Options) {
				o.HTTPClient = counter{o.HTTPClient, &calls}
			})
			ms := make([]*driver.Message, test.size)
			for i := range ms {
				ms[i] = message("d", "", text)
			}
			must.Do(t, put(t, p, f, ms...))
			if n := calls.Load(); n != int64(test.want) {
				t.Errorf("%d calls, want %d", n, test.want)
			}
		})
	}
}

// TestARestartedServerForgets restarts a server used by a producer and a consumer. Its messages and
// queues are lost.
func TestARestartedServerForgets(t *testing.T) {
	s := shared.Up(t, 1)
	c := open(t, driver.Run{ID: "restarted"}, s.Options, "attempts", "1")
	p, f := produce(t, c, "d")
	r := trial.NewLog()
	end := consume(t, c, "d", r)
	must.Do(t, put(t, p, f, message("d", "", "before")))
	trial.Eventually(func() bool { got, _ := has(r); return len(got) > 0 })
	trial.Must(t, s.Restart)
	if err := put(t, p, f, message("d", "", "after")); !errors.Is(err, driver.ErrUnsupported) && !errors.Is(err, driver.ErrDisconnected) {
		t.Errorf("a message to a queue that the server has forgotten: %v", err)
	}
	if err := put(t, p, f, message("d", "", "after")); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("the next: %v", err)
	}
	trial.Eventually(func() bool { r.Lock(); defer r.Unlock(); return len(r.Faults) > 0 })
	if err := end(); err != nil && !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("the consumer ended with %v", err)
	}
}

func TestErrorsBeforeConnecting(t *testing.T) {
	trial.Refuses(t, Definition(), nil,
		trial.Mistake{Name: "half of the credentials", Set: []string{"access-key", "id"}, Option: "access-key"},
		trial.Mistake{Name: "a session of nobody", Set: []string{"session-token", "t"}, Option: "session-token"},
		trial.Mistake{Name: "two kinds of credentials", Set: []string{"access-key", "id", "secret-key", "wr0ng", "credentials", "made-up"}, Option: "credentials"},
	)
}

// static holds options that leave nothing for the AWS client to find.
var static = map[string][]string{"access-key": {"id"}, "secret-key": {"wr0ng"}, "region": {"r"}}

// TestServiceErrors uses answers that ElasticMQ never gives.
func TestServiceErrors(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		answer string
		want   error
	}{
		"credentials": {403, `{"__type":"com.amazon.coral.service#UnrecognizedClientException","message":"The security token is invalid."}`, driver.ErrAuth},
		"rights":      {403, `{"__type":"com.amazonaws.sqs#AccessDeniedException","message":"no"}`, driver.ErrAuth},
		"throttled":   {400, `{"__type":"com.amazonaws.sqs#RequestThrottled","message":"slow down"}`, driver.ErrOverloaded},
		"not SQS":     {200, `<html>`, driver.ErrUnsupported},
		"broken":      {500, ``, driver.ErrUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/x-amz-json-1.0")
				w.WriteHeader(test.status)
				_, _ = w.Write([]byte(test.answer))
			}))
			defer server.Close()
			trial.Refuses(t, Definition(), static, trial.Mistake{Name: name, Set: []string{"address", server.URL}, Is: test.want})
		})
	}
	trial.Refuses(t, Definition(), static, trial.Mistake{Name: "silence", Set: []string{"address", trial.Silent(t), "timeout", "1s"}, Is: driver.ErrUnreachable})
}

// TestWithoutCredentials finds neither a region nor credentials, and sends no request.
func TestWithoutCredentials(t *testing.T) {
	none := t.TempDir() + "/none"
	for name, value := range map[string]string{
		"AWS_CONFIG_FILE": none, "AWS_SHARED_CREDENTIALS_FILE": none, "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_PROFILE": "",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "", "AWS_CONTAINER_CREDENTIALS_FULL_URI": "", "AWS_WEB_IDENTITY_TOKEN_FILE": "",
	} {
		t.Setenv(name, value)
	}
	trial.Refuses(t, Definition(), nil,
		trial.Mistake{Name: "no region", Option: "region"},
		trial.Mistake{Name: "no credentials", Set: []string{"region", "r"}, Is: driver.ErrAuth},
	)
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_REGION", "r")
	s := shared.Up(t, 1)
	trial.Opened(t, Definition(), driver.Run{}, nil, "address", s.Address[0])
}

func TestExistingQueues(t *testing.T) {
	s := shared.Up(t, 1)
	run := driver.Run{ID: "existing", Existing: true}
	c := open(t, run, s.Options)
	k := driver.Inside(c).(*conn)
	for _, name := range []string{"orders", "orders.fifo"} {
		in := &client.CreateQueueInput{QueueName: &name, Attributes: map[string]string{}}
		if strings.HasSuffix(name, suffix) {
			in.Attributes["FifoQueue"] = "true"
		}
		q := must.Get(k.link.CreateQueue(t.Context(), in))(t)
		p, f := produce(t, c, name)
		r := trial.NewLog()
		consume(t, c, name, r)
		if err := put(t, p, f, message(name, "", "mine")); err != nil {
			t.Error(err)
		}
		if !trial.Eventually(func() bool { got, _ := has(r); return len(got) == 1 && got[0] == "mine" }) {
			t.Errorf("%s: nothing came", name)
		}
		_, _ = k.link.DeleteQueue(context.Background(), &client.DeleteQueueInput{QueueUrl: q.QueueUrl})
	}
	for _, bad := range []string{"", "a.b", "with space", strings.Repeat("x", 81), "missing"} {
		trial.NoProducer(t, c, driver.ProducerSpec{Destinations: []string{bad}}, bad, driver.ErrUnsupported, "")
	}
}

func TestPageGuaranteesMatchServers(t *testing.T) { served.Guarantees(t, Definition(), shared, "") }
