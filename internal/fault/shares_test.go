package fault

import (
	"testing"

	"github.com/weirmq/weir/internal/golden"
	"github.com/weirmq/weir/result"
)

func TestFaultsRunOnTheirHost(t *testing.T) {
	kill, cut, fill, sever := Fault{Do: Kill, To: "1"}, Fault{Do: Cut, To: "1"}, Fault{Do: Fill, To: "1"}, Fault{Do: Disconnect, To: "clients"}
	steps, other := Fault{Do: Clock, To: Agents}, Fault{Do: Clock, To: Agents, On: "b"}
	servers, clients := Apart([]Fault{kill, sever, cut, fill, steps, other, kill})
	golden.Equal(t, []Fault{kill, cut, fill, kill}, servers, "of servers")
	golden.Equal(t, []Fault{sever, steps, other}, clients, "of clients")
	golden.Equal(t, []Fault{sever, steps}, Share(clients, "a"), "of agent a")
	golden.Equal(t, clients, Share(clients, "b"), "of agent b")
	golden.Equal(t, []string{"kill", "cut", "fill"}, Named(servers), "verbs")
}

func TestAgentsFaultReportsAreMerged(t *testing.T) {
	ns := func(v int64) *int64 { return &v }
	share := func(agent string, n int, began int64, undone, bound *int64) result.Fault {
		return result.Fault{
			Do: "disconnect", To: "clients", Processes: []string{"server-1"}, DueNS: 5e9, BeganNS: began, UndoneNS: undone, Connections: n, Means: "SOCK_DESTROY",
			Agents: []string{agent}, BoundNS: bound,
		}
	}
	one := func(agents []string, n int, began int64, undone, bound *int64) result.Fault {
		f := share("", n, began, undone, bound)
		f.Agents = agents
		return f
	}
	failed := share("b", 0, 5e9, nil, ns(1))
	failed.Error, failed.Processes = "no node leads", nil
	none := one([]string{"a", "b"}, 0, 5e9, nil, ns(2))
	none.Error = "no connection of clients carried messages there"
	both := one([]string{"a", "b"}, 3, 5e9, nil, ns(2))
	both.Error = "no node leads"
	step := func(agent string, began int64) result.Fault {
		return result.Fault{
			Do: "clock", To: "agents", ByNS: -1e9, Processes: []string{agent}, DueNS: 5e9, BeganNS: began, UndoneNS: ns(6e9), Means: "vDSO",
			Agents: []string{agent}, BoundNS: ns(1),
		}
	}
	steps := step("a", 5e9)
	steps.Processes, steps.Agents = []string{"a", "b"}, []string{"a", "b"}
	for name, x := range map[string]struct{ shares, want [][]result.Fault }{
		"clocks of agents": {
			[][]result.Fault{{step("a", 5e9)}, {step("b", 5e9+9)}},
			[][]result.Fault{{steps}},
		},
		"the first begins it and the last ends it": {
			[][]result.Fault{{share("a", 2, 5e9+7, ns(6e9), ns(10))}, {share("b", 3, 5e9+2, ns(6e9+1), ns(40))}},
			[][]result.Fault{{one([]string{"a", "b"}, 5, 5e9+2, ns(6e9+1), ns(40))}},
		},
		"a bound that is not known": {
			[][]result.Fault{{share("a", 2, 5e9, nil, nil)}, {share("b", 0, 5e9, nil, ns(4))}},
			[][]result.Fault{{one([]string{"a", "b"}, 2, 5e9, nil, nil)}},
		},
		"no connection anywhere": {
			[][]result.Fault{{share("a", 0, 5e9, nil, ns(1))}, {share("b", 0, 5e9, nil, ns(2))}},
			[][]result.Fault{{none}},
		},
		"one of them could not": {
			[][]result.Fault{{share("a", 3, 5e9, nil, ns(2))}, {failed}},
			[][]result.Fault{{both}},
		},
		"the same twice at a time": {
			[][]result.Fault{{share("a", 1, 5e9, nil, ns(1)), share("a", 2, 5e9, nil, ns(1))}, {share("b", 4, 5e9, nil, ns(1))}},
			[][]result.Fault{{one([]string{"a", "b"}, 5, 5e9, nil, ns(1)), share("a", 2, 5e9, nil, ns(1))}},
		},
		"no share at all": {nil, [][]result.Fault{nil}},
	} {
		golden.Equal(t, x.want[0], Merge(x.shares...), "%s", name)
	}
}
