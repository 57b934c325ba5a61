package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
)

// schema is the format name of the file with the figures.
const schema = "weir.peers/v1"

// figures are the rows of the table.
type figures struct {
	Schema string `json:"schema"`
	Rows   []row  `json:"rows"`
}

// A row holds the results of a flow's turns. Rates are messages per second.
type row struct {
	Name       string    `json:"name"`
	System     string    `json:"system"`
	Server     string    `json:"server"` // server version
	Tool       string    `json:"tool"`
	What       string    `json:"what"`
	Size       int       `json:"size"`
	InFlight   string    `json:"in_flight"`
	Guarantee  string    `json:"guarantee"`
	WeirCounts string    `json:"weir_counts"`
	PeerCounts string    `json:"peer_counts"`
	Different  string    `json:"different"`
	Weir       []float64 `json:"weir_per_s"` // in order of turns
	Peer       []float64 `json:"peer_per_s"` // likewise; equal indices form a pair
	Ratio      ratio     `json:"ratio"`
}

// read returns the figures in a file; none if the file does not exist yet.
func read(name string) (*figures, error) {
	f := &figures{Schema: schema}
	if name == "" {
		return f, nil
	}
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, f); err != nil || f.Schema != schema {
		return nil, fmt.Errorf("%s does not hold figures of this program (schema %s)", name, schema)
	}
	return f, nil
}

// put adds a row, or replaces the row of the same name.
func (f *figures) put(r row) {
	if i := slices.IndexFunc(f.Rows, func(o row) bool { return o.Name == r.Name }); i >= 0 {
		f.Rows[i] = r
		return
	}
	f.Rows = append(f.Rows, r)
}

// store writes the rows into a file, keeping its current rows of other flows.
func (f *figures) store(name string) error {
	stored, err := read(name)
	if err != nil {
		return err
	}
	for _, r := range f.Rows {
		stored.put(r)
	}
	slices.SortStableFunc(stored.Rows, func(a, b row) int { return place(a.Name) - place(b.Name) })
	b, err := json.MarshalIndent(stored, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(b, '\n'), 0o644)
}

// place returns the index of a flow among all flows; -1 if unknown.
func place(name string) int {
	at := 0
	for _, s := range systems {
		for _, f := range s.flows {
			if f.name == name {
				return at
			}
			at++
		}
	}
	return -1
}

// page lays out the rows: the ratios, then what each side counts.
func (f *figures) page(p *layout.Page) {
	x := &layout.Table{Columns: layout.Columns(layout.Word, layout.Plain, "system", "flow", "tool", "confirmed means")}
	x.Columns = append(x.Columns, layout.Columns(layout.Number, layout.Plain, "size", "in flight", "weir/tool", "95 %", "pairs", "single pairs")...)
	for _, r := range f.Rows {
		interval := "not known"
		if r.Ratio.Lo != nil && r.Ratio.Hi != nil {
			interval = fmt.Sprintf("%.2f..%.2f", *r.Ratio.Lo, *r.Ratio.Hi)
		}
		name := r.System
		if r.Server != "" {
			name += " (" + r.Server + ")"
		}
		x.Row(name, r.What, r.Tool, r.Guarantee, quantity.Count(uint64(r.Size))+" B", r.InFlight, fmt.Sprintf("%.2f", r.Ratio.Median), interval,
			fmt.Sprint(r.Ratio.Pairs), fmt.Sprintf("%.2f..%.2f", r.Ratio.Least, r.Ratio.Most))
	}
	p.Table(x)
	for _, r := range f.Rows {
		p.Bullet(fmt.Sprintf("%s, %s: weir counts messages %s. The tool counts messages %s. Different: %s.", r.System, r.What, r.WeirCounts, r.PeerCounts, r.Different))
	}
}
