package report

import (
	"fmt"
	"math"
	"strings"
)

// servers writes what the processes of a system used that weir started, all of
// them together.
func (t *single) servers() {
	if t.r.Servers == nil {
		return
	}
	var cores, memory, written, disk float64
	parts := map[*float64]bool{} // which of them any was told of
	add := func(sum *float64, v float64) { *sum, parts[sum] = *sum+v, true }
	for _, p := range t.r.Servers.Processes {
		if p.Cores != nil {
			add(&cores, *p.Cores)
		}
		for _, x := range []struct {
			sum *float64
			v   *uint64
		}{{&memory, p.RSSMaxBytes}, {&written, p.WrittenBytes}, {&disk, p.DiskBytes}} {
			if x.v != nil {
				add(x.sum, float64(*x.v))
			}
		}
	}
	var says []string
	for _, x := range []struct {
		sum  *float64
		text string
	}{
		{&cores, fmt.Sprintf("used %.2f cores", cores)},
		{&memory, "up to " + Size(memory) + " of memory"},
		{&written, Size(written) + " written"},
		{&disk, Size(disk) + " on disk at the end"},
	} {
		if parts[x.sum] {
			says = append(says, x.text)
		}
	}
	if len(says) > 0 {
		t.Labelled("servers", plain(strings.Join(says, ", ")))
	}
}

// Size returns a number of bytes in units of 1024: "12.0 MiB".
func Size(bytes float64) string {
	for _, u := range []struct {
		name string
		size float64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if bytes >= u.size*0.9995 {
			return significant(bytes/u.size, false) + " " + u.name
		}
	}
	return significant(math.Round(bytes), true) + " B"
}
