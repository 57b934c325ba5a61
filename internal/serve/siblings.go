package serve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/compare"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view"
	"github.com/weirmq/weir/internal/view/layout"
)

// mostLeft limits the folders that a page names as left out of a comparison.
const mostLeft = 50

// A sibling is a folder of runs beside others.
type sibling struct {
	compare.Side
	never string // why it is in no comparison; "": it may be in one
}

// comparisons compares folders of runs beside each other, where the same was measured, with the first by name as the
// base. apart are those that are compared with none, with the reason.
func (p *publishing) comparisons(ctx context.Context, all map[string][]string) (out []link, apart []string, err error) {
	more := 0
	defer func() { p.capped(more, "comparisons") }()
	beside := map[string][]sibling{}
	for _, folder := range slices.Sorted(maps.Keys(all)) {
		beside[path.Dir(folder)] = append(beside[path.Dir(folder)], p.sibling(ctx, folder, all[folder]))
	}
	for _, parent := range slices.Sorted(maps.Keys(beside)) {
		siblings := beside[parent]
		if len(siblings) < 2 || !slices.ContainsFunc(siblings, func(x sibling) bool { return len(all[x.Given]) >= leastASide }) {
			continue
		}
		groups := grouped(siblings)
		var base []compare.Side
		var compared []string
		for _, group := range groups {
			if len(group) < 2 {
				continue
			}
			if len(out) == mostPages {
				more++
				continue
			}
			var names, texts []string
			for _, side := range group {
				names, texts = append(names, side.Given), append(texts, folderName(side.Given))
			}
			if compared == nil {
				base = group
			}
			compared = append(compared, names...)
			b, err := p.s.comparison(ctx, slices.Clone(group), false, view.Parting{Link: p.runAt, Left: leftOut(siblings, group, names)})
			if errors.Is(err, compare.ErrSameRun) {
				apart = append(apart, lines(err)...)
				continue
			}
			at, err := p.page(ctx, "compare", strings.Join(names, " "), b, err)
			if err != nil {
				return nil, nil, err
			}
			if at != "" {
				out = append(out, link{strings.Join(texts, ", "), at})
			}
		}
		if compared == nil && len(groups) > 0 {
			base = groups[0]
			compared = []string{base[0].Given} // the others say how they differ from it
		}
		apart = append(apart, leftOut(siblings, base, compared)...)
	}
	return out, apart, nil
}

// sibling reads what comparisons need of a folder of runs.
func (p *publishing) sibling(ctx context.Context, folder string, runs []string) sibling {
	x := sibling{Side: compare.Side{Given: folder}}
	const most = mostCompared / mostSides
	switch {
	case len(runs) < leastASide:
		x.never = quantity.Counted(len(runs), "run", "runs") + fmt.Sprintf(" (a side needs %d)", leastASide)
		return x
	case len(runs) > most:
		x.never = fmt.Sprintf("%d runs (at most %d a side)", len(runs), most)
		return x
	}
	for _, dir := range slices.Sorted(slices.Values(runs)) {
		x.Runs = append(x.Runs, compare.Run{Dir: dir})
	}
	if err := p.s.fill(ctx, []compare.Side{x.Side}); err != nil {
		x.never = strings.Join(lines(err), "; ")
	} else if n := x.Lacks(alpha); n > 0 {
		x.never = fmt.Sprintf("%s of %d can be used (a side needs %d)", quantity.Counted(leastASide-n, "run", "runs"), len(runs), leastASide)
	}
	return x
}

// grouped puts folders together in which the same was measured, at most mostSides. A base of more begins a further
// group.
func grouped(siblings []sibling) (groups [][]compare.Side) {
	for _, x := range siblings {
		if x.never != "" {
			continue
		}
		began := []compare.Side{x.Side}
		at := slices.IndexFunc(groups, func(g []compare.Side) bool {
			if len(compare.Incomparable(append(slices.Clip(g), x.Side))) > 0 {
				return false
			}
			if len(g) == mostSides {
				began = []compare.Side{g[0], x.Side}
			}
			return len(g) < mostSides
		})
		if at < 0 {
			groups = append(groups, began)
			continue
		}
		groups[at] = append(groups[at], x.Side)
	}
	return groups
}

// leftOut says of the siblings that are not named why they are not in a group. It has no sides if no sibling can be one.
func leftOut(siblings []sibling, group []compare.Side, named []string) (texts []string) {
	for _, x := range siblings {
		if slices.Contains(named, x.Given) {
			continue
		}
		why := x.never
		if why == "" {
			base := folderName(group[0].Given)
			for _, d := range compare.Incomparable(append(slices.Clip(group), x.Side)) {
				why += fmt.Sprintf(", %s is %s (%s: %s)", d.Name, strings.Join(d.Sides[len(group)], " and "), base, strings.Join(d.Sides[0], " and "))
			}
			if why = strings.TrimPrefix(why, ", "); why == "" {
				why = "compared with " + base + " on another page"
			}
		}
		texts = append(texts, layout.Printable(folderName(x.Given)+": "+why))
	}
	if n := len(texts) - mostLeft; n > 0 {
		texts = append(texts[:mostLeft], fmt.Sprintf("and %d more", n))
	}
	return texts
}
