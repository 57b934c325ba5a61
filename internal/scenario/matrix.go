package scenario

import (
	"fmt"
	"iter"
	"math/big"
	"slices"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/scenario/tree"
)

// A dimension is one key of a matrix with its values.
type dimension struct {
	path   string
	at     Position // of the key in the matrix
	values []*tree.Node
	zipped bool // varies together with all other zipped dimensions
}

// zip is the key of a matrix for keys that vary together.
const zip = "zip"

// dimensions reads the matrix of a tree and reports structural faults. Invalid values are found when
// they are read.
func (d *decoder) dimensions() []dimension {
	const allowed = "a mapping of keys to lists of values, such as load.rate: [1000/s, 10000/s]"
	n := d.find("matrix")
	switch {
	case n == nil:
		return nil
	case n.Shape != tree.Mapping:
		d.fault(n.At, "matrix", "is %s (%s)", n.Shape, allowed)
		return nil
	}
	var out []dimension
	for _, f := range n.Fields {
		if f.Key == zip {
			out = append(out, d.zipped(f.Value)...)
			continue
		}
		if dim, ok := d.dimension(f, tree.Join("matrix", f.Key)); ok {
			dim.apart(d)
			out = append(out, dim)
		}
	}
	return out
}

// dimension reads one key of a matrix.
func (d *decoder) dimension(f tree.Field, path string) (dim dimension, ok bool) {
	if why := unvaried(f.Key); why != "" {
		d.fault(f.At, path, "%s", why)
		return dim, false
	}
	if f.Value.Shape != tree.List || len(f.Value.Items) == 0 {
		d.fault(f.Value.At, path, "is %s (a list of the values that it takes)", emptiness(f.Value))
		return dim, false
	}
	for _, v := range f.Value.Items {
		if !strings.HasPrefix(v.From, "matrix") {
			v.Mark("matrix")
		}
	}
	return dimension{path: f.Key, at: f.At, values: f.Value.Items}, true
}

// apart reports duplicate values of a dimension.
func (dim *dimension) apart(d *decoder) {
	seen := map[string]bool{}
	for i, v := range dim.values {
		t := v.Flow()
		if seen[t] {
			d.fault(v.At, fmt.Sprintf("%s[%d]", tree.Join("matrix", dim.path), i), "is given twice (once; repeat says how often a run is done)")
		}
		seen[t] = true
	}
}

// zipped reads the keys that vary together: their lists must have the same length.
func (d *decoder) zipped(n *tree.Node) []dimension {
	const path, allowed = "matrix." + zip, "a mapping of two or more keys to lists of one length, such as {message.size: [1KiB, 10KiB], load.rate: [1000/s, 100/s]}"
	if n.Shape != tree.Mapping {
		d.fault(n.At, path, "is %s (%s)", n.Shape, allowed)
		return nil
	}
	var out []dimension
	for _, f := range n.Fields {
		dim, ok := d.dimension(f, tree.Join(path, f.Key))
		if !ok {
			return nil // without it the lengths are meaningless
		}
		if dim.zipped = true; d.find("matrix").Field(f.Key) != nil {
			d.fault(f.At, tree.Join(path, f.Key), "is varied beside zip too (one of them)")
		}
		if len(out) > 0 && len(dim.values) != len(out[0].values) {
			d.fault(f.Value.At, tree.Join(path, f.Key), "has %d values, and %s has %d (%s)", len(dim.values), out[0].path, len(out[0].values), allowed)
			return nil
		}
		out = append(out, dim)
	}
	if len(out) == 0 {
		d.fault(n.At, path, "is empty (%s)", allowed)
		return nil
	}
	seen := map[string]bool{}
	for i := range out[0].values {
		var row []string
		for _, dim := range out {
			row = append(row, dim.values[i].Flow())
		}
		if t := strings.Join(row, "\n"); seen[t] {
			d.fault(out[0].values[i].At, path, "has the same values twice, at place %d (once; repeat says how often a run is done)", i+1)
		} else {
			seen[t] = true
		}
	}
	return out
}

func emptiness(n *tree.Node) string {
	if n.Shape == tree.List {
		return "an empty list"
	}
	return n.Shape.String()
}

// unvaried returns why key cannot be in a matrix; "" if it can.
func unvaried(key string) string {
	switch {
	case slices.Contains([]string{"weir", "name", "matrix", "scenarios", zip}, key):
		return "cannot be varied (any key of a run but its name)"
	case key == "system.options":
		return "cannot be varied as a whole (one option by its name, such as system.options.storage)"
	case strings.HasPrefix(key, "system.options."):
		return ""
	}
	var paths []string
	for _, k := range keys {
		switch {
		case k.Path == key:
			return ""
		case k.Short == key && key != "":
			return fmt.Sprintf("is the short form of a flag, did you mean %q? (keys as in a file, with dots)", k.Path)
		case !k.FileOnly:
			paths = append(paths, k.Path)
		}
	}
	if isSection(key) {
		return fmt.Sprintf("is a section (one key of it with a dot, such as %s)", tree.Join(key, members(key)[0]))
	}
	if near := driver.Nearest(key, paths); near != "" {
		return fmt.Sprintf("unknown key, did you mean %q? (keys as in a file, with dots)", near)
	}
	for _, k := range keys {
		if strings.HasSuffix(k.Path, "."+key) {
			return fmt.Sprintf("unknown key, did you mean %q? (keys as in a file, with dots)", k.Path)
		}
	}
	return "unknown key (keys as in a file, with dots, such as load.rate)"
}

// contradictions reports every key of the matrix that the file also sets outside of it. It checks the
// tree before environment and flags, which take precedence over both.
func (d *decoder) contradictions() {
	n := d.find("matrix")
	if n == nil || n.Shape != tree.Mapping {
		return
	}
	beside := func(n *tree.Node, path string) {
		for _, f := range n.Fields {
			if at, set := d.setBeside(f.Key); set {
				d.fault(f.At, tree.Join(path, f.Key), "is set at %v too (one of them)", at)
			}
		}
	}
	beside(n, "matrix")
	if z := n.Field(zip); z != nil && z.Shape == tree.Mapping {
		beside(z, "matrix."+zip)
	}
}

// setBeside finds a key outside the matrix; an option also if written as nested mappings.
func (d *decoder) setBeside(key string) (Position, bool) {
	if option, ok := strings.CutPrefix(key, "system.options."); ok {
		n := d.find("system.options")
		if n == nil || n.Shape != tree.Mapping {
			return Position{}, false
		}
		for _, g := range d.flatten(n, "") {
			if g.name == option || strings.HasPrefix(g.name, option+".") {
				return g.value.At, true
			}
		}
		return Position{}, false
	}
	n := d.find(key)
	if n == nil || unvaried(key) != "" {
		return Position{}, false
	}
	return n.At, true
}

// axes groups dims that vary together: zipped ones at the position of the first, every other one by
// itself.
func axes(dims []dimension) (out [][]int) {
	together := -1
	for i, dim := range dims {
		switch {
		case dim.zipped && together >= 0:
			out[together] = append(out[together], i)
			continue
		case dim.zipped:
			together = len(out)
		}
		out = append(out, []int{i})
	}
	return out
}

// runsOf returns the number of combinations of dims.
func runsOf(dims []dimension) *big.Int {
	n := big.NewInt(1)
	for _, axis := range axes(dims) {
		n.Mul(n, big.NewInt(int64(len(dims[axis[0]].values))))
	}
	return n
}

// combinations yields all combinations of one value from each of dims, the last varying fastest;
// without dimensions it yields once, nothing.
func combinations(dims []dimension) iter.Seq[[]*tree.Node] {
	return func(yield func([]*tree.Node) bool) {
		along := axes(dims)
		at := make([]int, len(along))
		for {
			values := make([]*tree.Node, len(dims))
			for a, axis := range along {
				for _, i := range axis {
					values[i] = dims[i].values[at[a]]
				}
			}
			if !yield(values) {
				return
			}
			i := len(along) - 1
			for ; i >= 0; i-- {
				if at[i]++; at[i] < len(dims[along[i][0]].values) {
					break
				}
				at[i] = 0
			}
			if i < 0 {
				return
			}
		}
	}
}

// wholeKeys merges faults that every value of a dimension has in the same words into one fault of the
// key.
func wholeKeys(faults Faults, dims []dimension) Faults {
	for _, dim := range dims {
		if len(dim.values) < 2 {
			continue
		}
		index := map[Position]bool{}
		for _, v := range dim.values {
			index[v.At] = true
		}
		type words struct{ path, message string }
		count := map[words]int{}
		for _, f := range faults {
			if index[f.At] {
				count[words{f.Path, f.Message}]++
			}
		}
		said := map[words]bool{}
		kept := faults[:0:0]
		for _, f := range faults {
			w := words{f.Path, f.Message}
			if index[f.At] && count[w] == len(dim.values) {
				if said[w] {
					continue
				}
				said[w] = true
				f.At = dim.at
			}
			kept = append(kept, f)
		}
		faults = kept
	}
	return faults
}
