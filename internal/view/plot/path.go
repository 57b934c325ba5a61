package plot

import (
	"math"
	"strconv"
	"strings"
)

// A path builds the data of an SVG path. After its first point it is relative, and what repeats is left out: a
// page has tens of thousands of points.
type path struct {
	strings.Builder
	x, y   int  // the current point, in tenths of a unit
	fx, fy int  // where the subpath began
	flat   int  // a horizontal stroke that is not yet written, in tenths
	begun  bool // the path has a point
	last   byte // the command before, which need not be repeated
}

func tenths(v float64) int { return int(math.Round(v * 10)) }

// write writes a command with its numbers.
func (d *path) write(command byte, numbers ...int) {
	repeats := command == d.last
	if !repeats {
		d.WriteByte(command)
		d.last = command
	}
	for i, n := range numbers {
		if (repeats || i > 0) && n >= 0 {
			d.WriteByte(' ')
		}
		d.WriteString(short(n))
	}
}

// short writes tenths without the zero before the point.
func short(tenths int) string {
	s := num(float64(tenths) / 10)
	switch {
	case strings.HasPrefix(s, "0."):
		return s[1:]
	case strings.HasPrefix(s, "-0."):
		return "-" + s[2:]
	}
	return s
}

// flush writes the horizontal stroke.
func (d *path) flush() {
	if d.flat != 0 {
		d.write('h', d.flat)
		d.flat = 0
	}
}

// move begins a subpath.
func (d *path) move(x, y float64) {
	d.flush()
	tx, ty := tenths(x), tenths(y)
	if d.begun {
		d.write('m', tx-d.x, ty-d.y)
	} else {
		d.WriteString("M" + strconv.FormatFloat(float64(tx)/10, 'f', -1, 64) + " " + strconv.FormatFloat(float64(ty)/10, 'f', -1, 64))
	}
	d.begun, d.last = true, 0
	d.x, d.y, d.fx, d.fy = tx, ty, tx, ty
}

// line draws to a point.
func (d *path) line(x, y float64) {
	dx, dy := tenths(x)-d.x, tenths(y)-d.y
	d.x, d.y = d.x+dx, d.y+dy
	if dy == 0 {
		if dx != 0 && d.flat != 0 && d.flat > 0 != (dx > 0) {
			d.flush()
		}
		d.flat += dx
		return
	}
	d.flush()
	if dx == 0 {
		d.write('v', dy)
	} else {
		d.write('l', dx, dy)
	}
}

// rect adds a rectangle.
func (d *path) rect(x, y, wide, high float64) {
	d.move(x, y)
	d.line(x+wide, y)
	d.line(x+wide, y+high)
	d.line(x, y+high)
	d.close()
}

// close ends a subpath where it began.
func (d *path) close() {
	d.flush()
	d.WriteByte('z')
	d.x, d.y, d.last = d.fx, d.fy, 0
}

// dot draws a point that no line joins, where the path is.
func (d *path) dot() {
	d.flush()
	d.write('h', 1)
	d.x++
}

// String returns the data.
func (d *path) String() string {
	d.flush()
	return d.Builder.String()
}
