package kafkatest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/driver"
)

// Guarantees sets what each row of a page's table of guarantees says, opens a
// connection with open, and asks the running servers. Rows that take more
// replicas than there are nodes belong to the run on more of them and are no
// tests here; one on three nodes has every row. facts reports what else is wrong
// with what the servers say.
func Guarantees(t *testing.T, rows []driver.Confirmation, nodes int,
	open func(t testing.TB, options map[string]string, d driver.Destination) driver.Conn, facts func(f driver.Facts, replicas int) error,
) {
	for i, c := range rows {
		options, replicas, err := settings(c.When)
		if err != nil {
			t.Fatal(err)
		}
		if replicas > nodes {
			continue
		}
		t.Run(c.When, func(t *testing.T) {
			d := driver.Destination{Name: "g" + strconv.Itoa(i), Partitions: 2, Replicas: replicas}
			f, err := open(t, options, d).Facts(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.Confirms, f.Confirms); diff != "" {
				t.Errorf("confirms (-page +servers):\n%s", diff)
			}
			if err := facts(f, replicas); err != nil {
				t.Errorf("%v: %+v", err, f)
			}
			if f.Nodes != nodes || f.Name != "kafka" {
				t.Errorf("facts %+v", f)
			}
		})
	}
}

// settings reads a row's settings: the driver's options, and how many replicas it
// takes, of a range the fewest.
func settings(when string) (options map[string]string, replicas int, err error) {
	options, replicas = map[string]string{}, 1
	for setting := range strings.SplitSeq(when, ", ") {
		name, value, _ := strings.Cut(setting, ": ")
		if name != "replication" {
			options[name] = value
			continue
		}
		if replicas, err = strconv.Atoi(value[:1]); err != nil {
			return nil, 0, fmt.Errorf("row %q: %w", when, err)
		}
	}
	return options, replicas, nil
}
