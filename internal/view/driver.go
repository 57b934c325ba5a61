package view

import (
	"slices"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/tested"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/buildinfo"
)

// A Driver is what `weir drivers` shows of a driver, all from its definition.
type Driver struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Summary string `json:"summary"`
	About   string `json:"about"`
	Program string `json:"program,omitempty"` // the only program with this driver

	Client   *driverModule  `json:"client,omitempty"`   // absent: the system runs in the process
	Embedded *driverModule  `json:"embedded,omitempty"` // absent: weir does not embed it
	Recipes  []DriverRecipe `json:"recipes"`            // to start real servers; the first is the default

	Features     driver.Features `json:"features"`
	Capabilities map[string]bool `json:"capabilities"`
	Settle       []string        `json:"settle"`     // the first is the default
	Guarantees   []string        `json:"guarantees"` // weakest first
	Replays      []string        `json:"replays"`    // positions at which a subscription can begin
	Delivery     string          `json:"delivery"`
	Ordering     string          `json:"ordering"`
	MaxPayload   int             `json:"max_payload_bytes"` // 0: no limit below 64 MiB

	Words         []driver.Mapping     `json:"words"`
	Confirmations []driverConfirmation `json:"confirmations"`
	Options       []DriverOption       `json:"options"`
	ServerOptions []DriverOption       `json:"server_options"` // of servers that weir starts
	Examples      []string             `json:"examples"`

	Tested []tested.Entry `json:"tested"` // versions that the conformance suites last passed against
}

// A driverModule is a Go module compiled into the program.
type driverModule struct {
	Path    string `json:"module"`
	Version string `json:"version,omitempty"` // empty: the build does not record it
	Why     string `json:"why,omitempty"`
}

// String says it in a line.
func (m *driverModule) String() string { return strings.TrimSpace(m.Path + " " + m.Version) }

// A driverConfirmation says what a confirmation means with certain settings.
type driverConfirmation struct {
	When      string `json:"when"` // empty: always
	Guarantee string `json:"guarantee"`
	Copies    string `json:"copies"`
	Stable    string `json:"stable"`
	Source    string `json:"source,omitempty"` // the vendor's documentation
}

// An DriverOption is an option of a driver.
type DriverOption struct {
	Name    string   `json:"name"`
	Type    string   `json:"type"`
	Default string   `json:"default"`
	Help    string   `json:"help"`
	Allowed []string `json:"allowed,omitempty"`
}

// optionOf returns an option of a driver; its help includes its bounds.
func optionOf(o driver.Option) DriverOption {
	return DriverOption{Name: o.Name, Type: o.Type, Default: o.Default, Help: o.Help, Allowed: o.Allowed}
}

// A capability is one of the driver.Capabilities.
type capability struct {
	field string // of driver.Capabilities
	word  string // in pages and JSON
	short string // in the list
	means string
	has   func(c *driver.Capabilities) bool
}

// capabilities are all capabilities in display order.
var capabilities = [...]capability{
	{"Consume", "consumers", "cons", "messages can be received", func(c *driver.Capabilities) bool { return c.Consume }},
	{"Subscriptions", "subscriptions", "subs", "several subscriptions each get every message", func(c *driver.Capabilities) bool { return c.Subscriptions }},
	{"Competing", "competing", "comp", "several consumers share one subscription", func(c *driver.Capabilities) bool { return c.Competing }},
	{"Partitions", "partitions", "part", "destinations may have more than one partition", func(c *driver.Capabilities) bool { return c.Partitions }},
	{"Replicas", "replicas", "repl", "destinations may have more than one replica", func(c *driver.Capabilities) bool { return c.Replicas }},
	{"Keys", "keys", "keys", "messages carry keys", func(c *driver.Capabilities) bool { return c.Keys }},
	{"Batch", "batches", "batch", "several messages are handed over in one call of the client", func(c *driver.Capabilities) bool { return c.Batch }},
	{"Requests", "requests", "req", "requests and replies are the system's own", func(c *driver.Capabilities) bool { return c.Requests }},
	{"Leaders", "leaders", "lead", "the system tells which server leads each destination, for faults", func(c *driver.Capabilities) bool { return c.Leaders }},
	{"Retains", "retains", "keep", "what is sent while no consumer runs is kept for its subscription", func(c *driver.Capabilities) bool { return c.Retains }},
	{"Resumes", "resumes", "resum", "a subscription continues where it was after its consumers are gone; consume.durable", func(c *driver.Capabilities) bool { return c.Resumes }},
	{"Nack", "refusing", "nack", "a message that a consumer refuses is delivered again", func(c *driver.Capabilities) bool { return c.Nack }},
	{"DeadLetters", "dead-letters", "dead", "a message that consumers have refused some times goes to dead letters; consume.dead_letter", func(c *driver.Capabilities) bool { return c.DeadLetters }},
	{"SettleConfirmed", "settle-confirmed", "sconf", "the system confirms settlements, which are then measured", func(c *driver.Capabilities) bool { return c.SettleConfirmed }},
	{"PublishBlocks", "publish-blocks", "block", "publishing may wait for the network or for room; each producer then has a goroutine of its own", func(c *driver.Capabilities) bool { return c.PublishBlocks }},
	{"InProcess", "in-process", "local", "producers and consumers must be in one process", func(c *driver.Capabilities) bool { return c.InProcess }},
}

// DriverOf returns the page of a driver. record has what the drivers were tested against.
func DriverOf(d driver.Definition, record []tested.Entry) Driver {
	can := &d.Capabilities
	p := Driver{
		Name: d.Name, Title: d.Title, Summary: d.Summary, About: d.About, Features: d.Features,
		Capabilities: map[string]bool{}, Settle: []string{}, Guarantees: []string{}, Replays: []string{},
		Delivery: can.Delivery.String(), Ordering: can.Ordering.String(), MaxPayload: can.MaxPayload,
		Words: append([]driver.Mapping{}, d.Maps...), Confirmations: []driverConfirmation{},
		Options: []DriverOption{}, ServerOptions: []DriverOption{}, Tested: append([]tested.Entry{}, tested.Of(record, d.Name)...),
	}
	if d.Client != "" {
		p.Client = &driverModule{Path: d.Client, Version: buildinfo.Module(d.Client), Why: d.ClientWhy}
	}
	if d.Serve != nil {
		p.Embedded = &driverModule{Path: d.Embeds, Version: buildinfo.Module(d.Embeds)}
	}
	for _, c := range capabilities {
		p.Capabilities[c.word] = c.has(can)
	}
	for _, s := range can.Settle {
		p.Settle = append(p.Settle, s.String())
	}
	for _, g := range slices.Sorted(slices.Values(can.Guarantees)) {
		p.Guarantees = append(p.Guarantees, g.String())
	}
	for _, r := range can.Replays {
		p.Replays = append(p.Replays, r.String())
	}
	for _, c := range d.Confirmations {
		p.Confirmations = append(p.Confirmations, driverConfirmation{c.When.String(), c.Guarantee.String(), c.Copies.String(), c.Stable.String(), c.Source})
	}
	for _, o := range driver.Options(d.New()) {
		if strings.HasPrefix(o.Name, driver.ServerPrefix) {
			p.ServerOptions = append(p.ServerOptions, optionOf(o))
			continue
		}
		p.Options = append(p.Options, optionOf(o))
	}
	p.addRecipes(d)
	p.Examples = examples(&d, &p)
	return p
}

// Only records that only this program has the driver, not every weir.
func (d *Driver) Only(program string) {
	d.Program = program
	for i, x := range d.Examples {
		d.Examples[i] = program + strings.TrimPrefix(x, "weir")
	}
}

func examples(d *driver.Definition, p *Driver) []string {
	first := "weir run --driver " + d.Name
	switch {
	case len(driver.CommandOptions(d.New())) > 0:
		first += " --option command=PROGRAM,ARGUMENT"
	case d.Serve != nil:
	case len(p.Recipes) > 0 && p.Recipes[0].Source != "docker": // weir starts no containers
		first += " --start process"
	case slices.ContainsFunc(p.Options, func(o DriverOption) bool { return o.Name == "address" }):
		i := slices.IndexFunc(p.Options, func(o DriverOption) bool { return o.Name == "address" })
		first += " --address " + p.Options[i].Default
	}
	all := []string{first}
	if len(p.Guarantees) < 2 {
		return all
	}
	if more, ok := strongest(d); ok {
		all = append(all, first+" --guarantee "+p.Guarantees[len(p.Guarantees)-1]+more)
	}
	return all
}

// strongest returns the fewest flags that give the strongest guarantee, with servers that weir starts or
// those at the default address. ok is false if there are none.
func strongest(d *driver.Definition) (flags string, ok bool) {
	most := d.Confirmations[len(d.Confirmations)-1].Guarantee
	r, _ := broker.RecipeOf(*d, "")
	fewest := 0
	for _, row := range d.Confirmations {
		if row.Guarantee != most {
			continue
		}
		cfg, servers, settings, set, n := d.New(), driver.Servers{}, map[string]string{}, "", 0
		if r != nil || d.Serve != nil {
			servers = driver.Servers{Nodes: 1, Replicas: 1}
		}
		for _, c := range row.When {
			i := slices.IndexFunc(driver.Options(cfg), func(o driver.Option) bool { return o.Name == c.Name })
			value := c.Examples()[0]
			switch {
			case c.Name == "replication" && value != "1":
				servers, n = driver.Servers{Nodes: 3, Replicas: 3}, n+1 // the fewest with a majority
			case i < 0 || c.Holds(driver.Options(cfg)[i].Default) || r != nil && r.Connect.Options[d.Name][c.Name] != "":
			case driver.SetOption(cfg, c.Name, value) == nil:
				set, n = set+" --option "+c.Name+"="+value, n+1
				settings[strings.TrimPrefix(c.Name, driver.ServerPrefix)] = value
			}
		}
		if servers.Replicas > 1 {
			set += " --nodes 3 --replication 3"
		}
		if r != nil {
			for name, value := range r.Known(d.Name, servers.Nodes, settings) {
				_ = driver.SetOption(cfg, name, value...) // the recipe's tests show that it can be set
			}
		}
		gives, predicts := d.PredictGuarantee(cfg, servers)
		if (gives >= most || !predicts) && (!ok || n < fewest) {
			flags, fewest, ok = set, n, true
		}
	}
	return flags, ok
}

// span writes the weakest and the strongest guarantee.
func (p *Driver) span() string {
	if n := len(p.Guarantees); n > 1 {
		return p.Guarantees[0] + " to " + p.Guarantees[n-1]
	}
	return strings.Join(p.Guarantees, "")
}

func (p *Driver) can(has bool) []string {
	var words []string
	for _, c := range capabilities {
		if p.Capabilities[c.word] == has {
			words = append(words, c.word)
		}
	}
	return words
}

func (p *Driver) promise() string {
	s := p.Delivery + ", order " + p.Ordering
	if p.Ordering == driver.Unordered.String() {
		s = p.Delivery + ", no order"
	}
	if p.MaxPayload > 0 {
		return s + ", messages up to " + driver.FormatSize(int64(p.MaxPayload))
	}
	return s
}

func (p *Driver) settling() string {
	if len(p.Settle) == 0 {
		return ""
	}
	return strings.Join(append([]string{p.Settle[0] + " (default)"}, p.Settle[1:]...), ", ")
}

func (o *DriverOption) meaning() string {
	s := o.Help
	if len(o.Allowed) > 0 {
		s += " (" + strings.Join(o.Allowed, ", ") + ")"
	}
	if o.Type == "secret" {
		s += " A reference: ${env:NAME} or {file: PATH}."
	}
	return s
}
