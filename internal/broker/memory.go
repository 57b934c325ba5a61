package broker

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/weirmq/weir/driver"
	machine "github.com/weirmq/weir/internal/host"
	"github.com/weirmq/weir/internal/quantity"
)

// sizes adds up sizes joined by +; "" is 0.
func sizes(text string) (sum int64, err error) {
	if text == "" {
		return 0, nil
	}
	for term := range strings.SplitSeq(text, "+") {
		n, err := quantity.Size(strings.TrimSpace(term))
		if err != nil {
			return 0, fmt.Errorf("%q is not a size (sizes joined by +, such as 256m + 100MiB)", strings.TrimSpace(term))
		}
		sum += min(n, math.MaxInt64-sum)
	}
	return sum, nil
}

// memory returns how many bytes the servers need with the given number of nodes and settings, as far
// as the recipe states it.
func (r *Recipe) memory(nodes int, settings map[string]string) (sum int64, err error) {
	p := &plan{recipe: r, nodes: nodes, settings: r.defaults()}
	maps.Copy(p.settings, settings)
	p.numbered()
	l, err := p.layout()
	if err != nil {
		return 0, fmt.Errorf("recipe %s: %w", r.Name, err)
	}
	for _, u := range l.units {
		sum += min(u.memory, math.MaxInt64-sum)
	}
	return sum, nil
}

// Fits returns driver.ErrUnsupported if the servers need more memory than this host has available. If
// the host or the recipe does not state it, they fit.
func (s *Serving) Fits() error { return s.fits(machine.MemoryAvailable()) }

func (s *Serving) fits(available uint64) error {
	r, nodes := s.Recipe, max(s.Nodes, 1)
	needs, err := r.memory(nodes, s.Settings)
	if err != nil {
		return fmt.Errorf("%w: %w", driver.ErrUnsupported, err)
	}
	if available == 0 || uint64(needs) <= available {
		return nil
	}
	advice := []string{"a host with more memory"}
	if nodes > r.Nodes[0] {
		advice = append(advice, "fewer nodes")
	}
	for _, name := range r.memorySettings() {
		advice = append(advice, "a lower "+name)
	}
	return fmt.Errorf("%w: %s on %d node(s) needs %d MiB of memory, and this host has %d MiB available (%s)",
		driver.ErrUnsupported, r.Name, nodes, needs>>20, available>>20, strings.Join(advice, ", or "))
}

// settingUsed matches a use of a setting in a template.
var settingUsed = regexp.MustCompile(`\bset "([a-z0-9-]+)"`)

// memorySettings returns the settings that affect the memory required, sorted.
func (r *Recipe) memorySettings() []string {
	var names []string
	for _, part := range r.Processes {
		for _, m := range settingUsed.FindAllStringSubmatch(part.Memory, -1) {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
