package mongodb

import (
	"context"
	"fmt"
	"strconv"

	"github.com/weirmq/weir/driver"
)

// A durability holds what decides the meaning of an answer to a write.
type durability struct {
	unknown bool // nothing more is known: FerretDB, or a server that forwards writes (mongos)
	nodes   int  // members with data; 0: unknown
	w       int  // members that have the write; 0: a majority
	journal bool // they have written it to their journals
	stored  bool // the storage engine reports that it is persistent
}

// known returns the settings in the page's table. Journal counts as no if the storage engine is in
// memory or unknown, and a number of members counts as too low if the members are unknown.
func (d durability) known() driver.Known {
	if d.unknown {
		return driver.Known{"atomic": "no", "journal": "ignored", "w": "ignored", "nodes": "not told"}
	}
	k := driver.Known{"atomic": "yes", "journal": strconv.FormatBool(d.journal && d.stored), "nodes": strconv.Itoa(d.nodes)}
	switch {
	case d.w == 0 && d.nodes != 1:
		k["w"] = majority
	default:
		k["w"] = driver.Of(min(d.w, d.nodes), d.nodes)
	}
	return k
}

// Known implements driver.GuaranteePredictor. Of the servers that weir starts, only FerretDB's lack
// an atomic findAndModify. Other servers may be a single one, or a set with exactly that many
// members.
func (c *Config) Known(s driver.Servers) driver.Known {
	n, _ := c.members() // checked by Validate
	if s.Nodes > 0 {
		return durability{unknown: !c.Atomic, nodes: s.Nodes, w: n, journal: c.Journal, stored: true}.known()
	}
	k := driver.KnownOf(c, "journal", "w")
	if n > 1 {
		delete(k, "w")
	}
	return k
}

// Facts asks the server. What the user may not query counts as unknown.
func (c *conn) Facts(ctx context.Context) (driver.Facts, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	var hello struct {
		Set      string   `bson:"setName"`
		Hosts    []string `bson:"hosts"`
		Passives []string `bson:"passives"`
		Message  string   `bson:"msg"`
	}
	var build struct {
		Version  string `bson:"version"`
		FerretDB string `bson:"ferretdbVersion"`
	}
	if err := again(func() error { return c.link.admin(ctx, "hello", &hello) }); err != nil {
		return driver.Facts{}, words.Unreachable(err)
	}
	if err := c.link.admin(ctx, "buildInfo", &build); err != nil {
		return driver.Facts{}, words.Unreachable(err)
	}
	n, _ := c.cfg.members() // checked by Validate
	d := durability{w: n, journal: c.cfg.Journal, nodes: 1}
	f := driver.Facts{Name: "MongoDB", Version: build.Version, Nodes: 1, Settings: map[string]string{
		"w": c.cfg.W, "j": strconv.FormatBool(c.cfg.Journal), "visibility-timeout": c.cfg.VisibilityTimeout.String(),
	}}
	switch {
	case build.FerretDB != "":
		d.unknown = true
		f.Name, f.Version = "FerretDB", build.FerretDB
		f.Settings["w"] += " (ignored)"
		f.Settings["j"] += " (ignored)"
		f.Settings["findAndModify"] = "not atomic"
		f.Settings["speaks as"] = "MongoDB " + build.Version
	case hello.Message == "isdbgrid":
		d.unknown = true
		f.Settings["cluster"] = "sharded; what the shards do is not told"
	default:
		if hello.Set != "" {
			f.Nodes = len(hello.Hosts) + len(hello.Passives)
			d.nodes = c.dataMembers(ctx)
			f.Settings["members with data"] = fmt.Sprint(d.nodes)
			if d.nodes == 0 {
				f.Settings["members with data"] = "not told"
			}
		}
		d.stored, f.Settings["storage engine"] = c.stored(ctx)
	}
	f.Confirms = page.Confirmations.Of(d.known())
	return f, nil
}

// dataMembers asks how many members of the replica set have data; 0 if unknown.
func (c *conn) dataMembers(ctx context.Context) (n int) {
	var reply struct {
		Config struct {
			Members []struct {
				ArbiterOnly bool `bson:"arbiterOnly"`
			} `bson:"members"`
		} `bson:"config"`
	}
	if err := c.link.admin(ctx, "replSetGetConfig", &reply); err != nil {
		c.run.Logger().Debug("the members are not told", "error", words.Cause(err))
		return 0
	}
	for _, m := range reply.Config.Members {
		if !m.ArbiterOnly {
			n++
		}
	}
	return n
}

// stored asks for the storage engine, and whether it is persistent.
func (c *conn) stored(ctx context.Context) (persistent bool, engine string) {
	var reply struct {
		Engine struct {
			Name       string `bson:"name"`
			Persistent bool   `bson:"persistent"`
		} `bson:"storageEngine"`
	}
	if err := c.link.admin(ctx, "serverStatus", &reply); err != nil || reply.Engine.Name == "" {
		return false, "not told (counts as memory)"
	}
	return reply.Engine.Persistent, reply.Engine.Name
}
