package export

import (
	"encoding/csv"
	"io"
	"strconv"
)

// writeCSV writes a row for each figure of each run.
func writeCSV(w io.Writer, runs []Run) error {
	c := csv.NewWriter(w)
	rows := [][]string{{"folder", "run", "started_at", "driver", "server", "version", "nodes", "guarantee", "verdict", "figure", "unit", "value", "low_95", "high_95", "supported", "at_least"}}
	for _, r := range runs {
		x := r.Result
		for _, f := range Figures(x) {
			value, atLeast := f.Value.Least()
			rows = append(rows, []string{
				r.Dir, x.Run.Name, x.Run.StartedAt, x.System.Driver, x.System.Server.Name, x.System.Server.Version, strconv.Itoa(x.System.Server.Nodes),
				x.System.Guarantee, string(x.Verdict.Status),
				f.Name, f.Unit, number(value), optional(f.Low), optional(f.High), strconv.FormatBool(!f.Weak), strconv.FormatBool(atLeast),
			})
		}
	}
	return c.WriteAll(rows)
}

func optional(v *float64) string {
	if v == nil {
		return ""
	}
	return number(*v)
}
