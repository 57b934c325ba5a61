package broker

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/driver"
)

// dotted matches the first version in a text.
var dotted = regexp.MustCompile(`[0-9]+(\.[0-9]+)*`)

// number returns the numbers of a version, or nil if there are none.
func number(version string) []int {
	text := dotted.FindString(version)
	if text == "" {
		return nil
	}
	var out []int
	for part := range strings.SplitSeq(text, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil
		}
		out = append(out, n)
	}
	return out
}

// older reports whether version a comes before b.
func older(a, b string) bool { return slices.Compare(number(a), number(b)) < 0 }

// pinned is the placeholder for the version in a recipe's source and images.
const pinned = "{{.Version}}"

// pin replaces pinned with the version and returns how many texts of the source contained it.
func (r *Recipe) pin() int {
	n := 0
	fill := func(texts ...*string) {
		for _, t := range texts {
			if strings.Contains(*t, pinned) {
				*t = strings.ReplaceAll(*t, pinned, r.Version)
				n++
			}
		}
	}
	if in := r.Install; in != nil {
		if in.Go != nil {
			fill(&in.Go.Version)
			for name, text := range in.Go.Files {
				fill(&text)
				in.Go.Files[name] = text
			}
		}
		if in.Maven != nil {
			for _, list := range [][]string{in.Maven.Artifacts, in.Maven.Archives} {
				for i := range list {
					fill(&list[i])
				}
			}
			for name, p := range in.Maven.Programs {
				fill(&p)
				in.Maven.Programs[name] = p
			}
		}
		if in.PyPI != nil {
			fill(&in.PyPI.Version)
		}
	}
	for _, p := range r.Processes {
		if p.Docker != nil {
			p.Docker.Image = strings.ReplaceAll(p.Docker.Image, pinned, r.Version)
		}
	}
	return n
}

// Other reports whether the recipe was given a version other than its default.
func (r *Recipe) Other() bool { return r.other }

// Ref returns the name with which RecipeOf finds this recipe in this version.
func (r *Recipe) Ref() string {
	if r.other {
		return r.Name + "@" + r.Version
	}
	return r.Name
}

// versionOf returns r in the given version; "" or its default leaves it unchanged. A version that the
// recipe does not list returns driver.ErrUnsupported.
func versionOf(def driver.Definition, r *Recipe, version string) (*Recipe, error) {
	if version == "" || version == r.Version {
		return r, nil
	}
	if !slices.Contains(r.Versions, version) {
		return nil, fmt.Errorf("%w: recipe %s has no version %q (%s)", driver.ErrUnsupported, r.Name, version, strings.Join(append([]string{r.Version}, r.Versions...), ", "))
	}
	rs, err := parseRecipes("recipe of "+def.Name, def.Recipe, r.Name, version)
	if err != nil {
		return nil, err
	}
	return rs[slices.IndexFunc(rs, func(x *Recipe) bool { return x.Name == r.Name })], nil
}
