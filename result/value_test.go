package result_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/weirmq/weir/result"
)

func TestASpreadOfBoundsIsMarked(t *testing.T) {
	t.Parallel()
	is, least := result.Exactly, result.AtLeast
	for name, c := range map[string]struct {
		of                      []result.Value
		median, lowest, highest string
	}{
		"values alone":                {[]result.Value{is(3), is(1), is(2)}, "2", "1", "3"},
		"an even number":              {[]result.Value{is(4), is(1)}, "2.5", "1", "4"},
		"a bound above the median":    {[]result.Value{is(1), is(2), least(9)}, "2", "1", ">= 9"},
		"a bound below the median":    {[]result.Value{least(1), is(2), is(9)}, ">= 2", ">= 1", ">= 9"},
		"a bound at the lowest":       {[]result.Value{least(1), is(1), is(9)}, ">= 1", "1", ">= 9"},
		"a bound is the upper of two": {[]result.Value{is(1), least(2)}, ">= 1.5", "1", ">= 2"},
		"a bound is the lower of two": {[]result.Value{least(1), is(2)}, ">= 1.5", ">= 1", ">= 2"},
		"one bound":                   {[]result.Value{least(7)}, ">= 7", ">= 7", ">= 7"},
		"bounds on both middles":      {[]result.Value{least(5), least(5)}, ">= 5", ">= 5", ">= 5"},
		"one of two equal is known":   {[]result.Value{is(5), least(5)}, ">= 5", "5", ">= 5"},
		"nothing is nothing exactly":  {nil, "0", "0", "0"},
	} {
		median, lowest, highest := result.Spread(c.of)
		for what, x := range map[string][2]string{
			"median": {text(median), c.median}, "lowest": {text(lowest), c.lowest}, "highest": {text(highest), c.highest},
		} {
			if x[0] != x[1] {
				t.Errorf("%s: %s %s; want %s", name, what, x[0], x[1])
			}
		}
	}
}

func text(v result.Value) string {
	return v.Text(func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) })
}

func TestValueJSONRoundTrip(t *testing.T) {
	for text, v := range map[string]result.Value{"1.5": result.Exactly(1.5), `{"at_least":1.5}`: result.AtLeast(1.5), "0": result.Exactly(0)} {
		b, err := json.Marshal(v)
		if err != nil || string(b) != text {
			t.Errorf("%+v is written %s, %v; want %s", v, b, err, text)
		}
		var again result.Value
		if err := json.Unmarshal(b, &again); err != nil || again != v {
			t.Errorf("%s is read as %+v, %v", b, again, err)
		}
	}
}
