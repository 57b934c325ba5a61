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

// A dimension is one key of a matrix with the values that it takes.
type dimension struct {
	path   string
	at     Position // of the key in the matrix
	values []*tree.Node
}

// dimensions reads the matrix of a tree and reports what is wrong with its
// shape. What is wrong with a value is found where it is read.
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
		path := tree.Join("matrix", f.Key)
		if why := unvaried(f.Key); why != "" {
			d.fault(f.At, path, "%s", why)
			continue
		}
		if f.Value.Shape != tree.List || len(f.Value.Items) == 0 {
			d.fault(f.Value.At, path, "is %s (a list of the values that it takes)", emptiness(f.Value))
			continue
		}
		seen := map[string]bool{}
		for i, v := range f.Value.Items {
			t := v.Flow()
			if seen[t] {
				d.fault(v.At, fmt.Sprintf("%s[%d]", path, i), "is given twice (once; repeat says how often a run is done)")
			}
			seen[t] = true
			if !strings.HasPrefix(v.From, "matrix") {
				v.Mark("matrix")
			}
		}
		out = append(out, dimension{f.Key, f.At, f.Value.Items})
	}
	return out
}

func emptiness(n *tree.Node) string {
	if n.Shape == tree.List {
		return "an empty list"
	}
	return n.Shape.String()
}

// unvaried says why key cannot stand in a matrix, "" where it can.
func unvaried(key string) string {
	switch {
	case slices.Contains([]string{"weir", "name", "matrix", "scenarios"}, key):
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

// contradictions reports every key of the matrix that the file sets beside it.
// It looks at the tree before environment and flags, which win over both.
func (d *decoder) contradictions() {
	n := d.find("matrix")
	if n == nil || n.Shape != tree.Mapping {
		return
	}
	for _, f := range n.Fields {
		if at, set := d.setBeside(f.Key); set {
			d.fault(f.At, tree.Join("matrix", f.Key), "is set at %v too (one of them)", at)
		}
	}
}

// setBeside finds a key outside the matrix; an option also where it is written
// as mappings in one another.
func (d *decoder) setBeside(key string) (Position, bool) {
	if option, ok := strings.CutPrefix(key, "system.options."); ok {
		n := d.find("system.options")
		if n == nil || n.Shape != tree.Mapping {
			return Position{}, false
		}
		for _, g := range d.flatten(n, "", nil) {
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

// runsOf returns how many combinations dims make.
func runsOf(dims []dimension) *big.Int {
	n := big.NewInt(1)
	for _, dim := range dims {
		n.Mul(n, big.NewInt(int64(len(dim.values))))
	}
	return n
}

// combinations yields one value of each of dims, in all ways, the last varying
// fastest; of no dimensions it yields once, nothing.
func combinations(dims []dimension) iter.Seq[[]*tree.Node] {
	return func(yield func([]*tree.Node) bool) {
		at := make([]int, len(dims))
		for {
			values := make([]*tree.Node, len(dims))
			for i, dim := range dims {
				values[i] = dim.values[at[i]]
			}
			if !yield(values) {
				return
			}
			i := len(dims) - 1
			for ; i >= 0; i-- {
				if at[i]++; at[i] < len(dims[i].values) {
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

// wholeKeys makes one fault of what is wrong with every value of a dimension in the
// same words: that is wrong with its key.
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
