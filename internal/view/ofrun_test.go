package view

import (
	"strconv"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/result"
)

func TestAnEarlierRunIsNamed(t *testing.T) {
	t.Parallel()
	for want, of := range map[string]*result.OfRun{
		"received 10 in the whole run; this run did not send them":                                                 nil,
		"in the whole run: messages of an earlier run of weir (run number 7); this run did not send them":          {Number: 7, Received: 10},
		"in the whole run, 4 of them messages of an earlier run of weir (run number 7); this run did not":          {Number: 7, Received: 4},
		"in the whole run: messages of several earlier runs of weir; this run did not send them":                   {Several: true, Received: 10},
		"not known\n            2 of them arrived corrupted\n            --of FOLDER names the run that sent them": {Number: 7, Received: 10, Corrupted: 2},
	} {
		r := result.Result{Run: result.Run{Mode: result.ModeConsume}, MessagesAll: result.Messages{Foreign: 10}, OfRun: of}
		b := rendered(t, Text, entry(&r), Options{})
		if !strings.Contains(unwrapped(b), unwrapped(want)) {
			t.Errorf("it does not say %q:\n%s", want, b)
		}
	}
}

func TestReportAccountsForEarlierRun(t *testing.T) {
	t.Parallel()
	of := &result.OfRun{Booked: true, Number: 7, Received: 8}
	m := result.Messages{Scheduled: 10, Sent: 10, Confirmed: 9, Failed: 1, Delivered: 8, Lost: 1, FailedDelivered: 1}
	r := result.Result{Run: result.Run{Mode: result.ModeConsume}, Messages: m, MessagesAll: m, OfRun: of}
	b := rendered(t, Text, entry(&r), Options{})
	mentions(t, b, "messages    of the earlier run of weir with run number 7, its warm-up included\n")
	mentions(t, unwrapped(b),
		"sent 10, confirmed 9, delivered 8", "failed but delivered 1", "lost 1, duplicated 0", "loss lost 1, failed 1 (1 delivered), of 10 sent",
	)
	if strings.Contains(b, "offered") || strings.Contains(b, "after-drain") {
		t.Errorf("it speaks of sending, or of listening on:\n%s", b)
	}
}

// number reads a number of a page.
func number(t testing.TB, s string) float64 {
	t.Helper()
	v := must.Get(strconv.ParseFloat(s, 64))(t)
	return v
}
