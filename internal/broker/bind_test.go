package broker

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/must"
)

func TestWhereServersMayListen(t *testing.T) {
	for _, good := range []string{"127.0.0.1", "10.0.0.5", "192.168.1.200"} {
		if err := CheckBind(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "0.0.0.0", "::", "::1", "fe80::1", "224.0.0.1", "localhost", "10.0.0.5:1", "10.0.0", "010.0.0.1", " 10.0.0.5", "10.0.0.5\n"} {
		if err := CheckBind(bad); err == nil {
			t.Errorf("%q passes", bad)
		}
	}
	rs := must.Get(ParseRecipes("r.yaml", []byte(goodRecipe)))(t)
	s := Serving{Recipe: rs[0], Bind: "0.0.0.0"}
	if err := s.Check(); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("%v; want ErrUnsupported", err)
	}
}

// TestServersUseConfiguredListenAndAdvertisedAddresses lays out one recipe for loopback, for another
// address, and for containers, whose ports are published on loopback.
func TestServersUseConfiguredListenAndAdvertisedAddresses(t *testing.T) {
	rs := must.Get(ParseRecipes("r.yaml", []byte(goodRecipe)))(t)
	r := rs[0]
	for _, c := range []struct{ bind, reach string }{{"", "127.0.0.1"}, {"10.1.2.3", "10.1.2.3"}} {
		p := plan{recipe: r, nodes: 3, settings: r.defaults(), bind: c.bind, root: "/root", install: "/i", programs: map[string]string{"java": "/usr/bin/java"}}
		p.numbered()
		l := must.Get(p.layout())(t)
		if want := []string{c.reach + ":4000"}; !slices.Equal(l.address, want) {
			t.Errorf("%q: at %q; want %q", c.bind, l.address, want)
		}
		if got, want := l.units[1].files["good.conf"], c.reach+":4001 "+c.reach+":4201 \n"; got != want {
			t.Errorf("%q: a file is %q; want %q", c.bind, got, want)
		}
		if s := p.scope(1, "", ""); s.Bind != c.reach || s.Reach != c.reach {
			t.Errorf("%q: listens at %s, is reached at %s", c.bind, s.Bind, s.Reach)
		}
	}
	p := plan{
		recipe: r, nodes: 3, settings: r.defaults(), root: "/root", install: "/i", programs: map[string]string{"java": "/usr/bin/java"},
		places: []Place{{Address: "10.9.0.2"}, {Address: "10.9.0.6"}, {Address: "10.9.0.10"}},
	}
	p.numbered()
	l := must.Get(p.layout())(t)
	if got, want := l.units[1].files["good.conf"], "10.9.0.2:4001 10.9.0.10:4201 \n"; got != want {
		t.Errorf("apart: a file is %q; want %q", got, want)
	}
	if s := p.scope(2, "", ""); s.Bind != "10.9.0.6" || s.Reach != "10.9.0.6" || !s.Apart {
		t.Errorf("apart: it listens at %s, is reached at %s, apart %v", s.Bind, s.Reach, s.Apart)
	}
	p = plan{recipe: r, nodes: 3, settings: r.defaults(), bind: "10.1.2.3", container: true}
	p.numbered()
	if s := p.scope(1, "", ""); s.Bind != "0.0.0.0" || s.Reach != "127.0.0.1" {
		t.Errorf("a container listens at %s, is reached at %s", s.Bind, s.Reach)
	}
}

// TestAProcessForEachAddress: a process that listens once per address runs only once if nodes share
// the address.
func TestAProcessForEachAddress(t *testing.T) {
	rs := must.Get(ParseRecipes("r.yaml", []byte(strings.Replace(goodRecipe, "on: first", "on: address", 1))))(t)
	for apart, want := range map[bool]string{false: "server-1 server-2 server-3 side-1", true: "server-1 server-2 server-3 side-1 side-2 side-3"} {
		var got []string
		for _, p := range Processes(rs[0], 3, apart) {
			got = append(got, p.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("apart %v: %v; want %s", apart, got, want)
		}
	}
}
