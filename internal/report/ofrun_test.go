package report

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/result"
)

func TestAnEarlierRunIsNamed(t *testing.T) {
	t.Parallel()
	for want, of := range map[string]*result.OfRun{
		"received 10 in the whole run; this run did not send them":                                        nil,
		"in the whole run: messages of an earlier run of weir (run number 7); this run did not send them": {Number: 7, Received: 10},
		"in the whole run, 4 of them messages of an earlier run of weir (run number 7); this run did not": {Number: 7, Received: 4},
		"in the whole run: messages of several earlier runs of weir; this run did not send them":          {Several: true, Received: 10},
		"loss, duplicates and order are not known\n            2 of them arrived corrupted\n":             {Number: 7, Received: 10, Corrupted: 2},
	} {
		r := result.Result{Run: result.Run{Mode: result.ModeConsume}, MessagesAll: result.Messages{Foreign: 10}, OfRun: of}
		var b strings.Builder
		if err := Text(&b, Entry{Result: &r}, Options{}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, b.String())
		}
	}
}
