package nats

import (
	"errors"
	"strings"
	"testing"

	client "github.com/nats-io/nats.go"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natsconn"
	"github.com/weirmq/weir/drivers/internal/natstest"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/natsd"
)

// TestOtherSubscriptionsMatchNoRunMessage: with wildcards, all tokens but the last may match, but
// never all.
func TestOtherSubscriptionsMatchNoRunMessage(t *testing.T) {
	t.Parallel()
	run := driver.Run{ID: "r-1"}
	for _, form := range []string{formLiteral, formWildcard} {
		i := Interest{Form: form}
		seen := map[string]bool{}
		for n := range 30 {
			s := i.subject(run.ID, n)
			if seen[s] {
				t.Errorf("%s is there twice", s)
			}
			seen[s] = true
			wild, err := natsconn.CheckSubject(s)
			if err != nil || wild != (form == formWildcard) {
				t.Errorf("%s: wildcards %v, %v; want a subject that is %s", s, wild, err, form)
			}
			for _, d := range []string{"d0", "other", "other-1", "*", "a.b"} {
				subject := natsconn.Subject(run, d)
				if natsconn.Matches(s, subject) {
					t.Errorf("%s takes %s", s, subject)
				}
				head, _, _ := strings.Cut(s, ".other~")
				if !natsconn.Matches(head+".*", subject) {
					t.Errorf("%s has not all but the last token of %s", s, subject)
				}
			}
		}
	}
}

// TestOtherSubscriptionsExistDuringRun asks the server, which reports at once that a request has no
// subscriber.
func TestOtherSubscriptionsExistDuringRun(t *testing.T) {
	s := natstest.Start(t, natsd.Options{})
	nc := must.Get(client.Connect(s.Address[0]))(t)
	defer nc.Close()
	reply := nc.NewRespInbox()
	answers := must.Get(nc.SubscribeSync(reply))(t)
	there := func(subject string) bool {
		before, _, err := answers.Pending()
		err = errors.Join(err, nc.PublishRequest(subject, reply, nil), nc.Flush()) // its answer follows that of the request
		after, _, err2 := answers.Pending()
		if err = errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		return after == before
	}
	for form, subject := range map[string]string{formLiteral: "weir.t.other~98", formWildcard: "any.t.other~99"} {
		c := open(t, s, map[string]string{"interest.subscriptions": "100", "interest.form": form})
		if there(subject) {
			t.Errorf("%s: somebody takes %s before the run", form, subject)
		}
		for range 2 { // destinations are declared once or twice
			trial.Declare(t, c, driver.Destination{Name: "d"})
		}
		if !there(subject) {
			t.Errorf("%s: the server knows of no subscription that takes %s", form, subject)
		}
		f, err := c.Facts(t.Context())
		if want := "100 " + form; err != nil || f.Settings["interest"] != want {
			t.Errorf("facts say %q, %v; want %q", f.Settings["interest"], err, want)
		}
		must.Do(t, c.Close(t.Context()))
		if !trial.Eventually(func() bool { return !there(subject) }) {
			t.Errorf("%s: somebody takes %s after the run", form, subject)
		}
	}
}

func TestOtherSubscriptionsConflictWithExistingSubjects(t *testing.T) {
	_, err := trial.Open(t, Definition(), driver.Run{Existing: true}, nil, "address", "127.0.0.1:1", "interest.subscriptions", "5")
	if err == nil || !strings.Contains(err.Error(), "interest.subscriptions") {
		t.Errorf("%v; want the option, which does not go together with existing subjects", err)
	}
}
