package postgres

import (
	"context"
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/weirmq/weir/driver"
)

// standbys asks the primary for its streaming standbys, each with its application_name and its
// state (async, potential, sync or quorum)
// (https://www.postgresql.org/docs/current/monitoring-stats.html#MONITORING-PG-STAT-REPLICATION-VIEW).
// A user without pg_monitor sees only their number.
func (c *conn) standbys(ctx context.Context) ([]string, error) {
	rows, err := c.ask(ctx, `SELECT application_name, sync_state FROM pg_stat_replication
WHERE coalesce(state, 'streaming') = 'streaming' ORDER BY 1`)
	var ss []string
	for _, r := range rows {
		ss = append(ss, strings.TrimSpace(r[0]+" "+r[1]))
	}
	return ss, err
}

// A wanted is the request in synchronous_standby_names: confirmations from that many of the named
// standbys.
type wanted struct {
	confirm int
	named   int // 0: any ("*")
}

var (
	counted  = regexp.MustCompile(`(?i)^\s*(?:(?:first|any)\s*)?(\d+)\s*\((.*)\)\s*$`)
	quotedID = regexp.MustCompile(`"(?:[^"]|"")*"`)
)

// parseNames parses synchronous_standby_names
// (https://www.postgresql.org/docs/current/runtime-config-replication.html#GUC-SYNCHRONOUS-STANDBY-NAMES).
func parseNames(s string) wanted {
	w := wanted{confirm: 1}
	if m := counted.FindStringSubmatch(s); m != nil {
		w.confirm, _ = strconv.Atoi(m[1])
		s = m[2]
	}
	if strings.TrimSpace(s) == "" {
		return wanted{}
	}
	any := false
	for name := range strings.SplitSeq(quotedID.ReplaceAllStringFunc(s, func(q string) string {
		if q == `"*"` {
			return "*"
		}
		return "q" // may contain a comma
	}), ",") {
		w.named++
		any = any || strings.TrimSpace(name) == "*"
	}
	if any {
		w.named = 0
	}
	return w
}

// A durability holds what decides the meaning of a commit.
type durability struct {
	commit   string // synchronous_commit
	fsync    bool   // on the primary
	standbys int    // number of streaming standbys
	synced   bool   // every standby reports that it syncs
	names    wanted // synchronous_standby_names
	unlogged bool   // one of the tables is unlogged
}

// known returns the settings in the page's table. standbys is how many nodes a commit waits for,
// including the primary.
func (d durability) known() driver.Known {
	onOff := map[bool]string{true: "on", false: "off"}
	nodes := 1 + max(d.standbys, d.names.named)
	k := driver.Known{
		"synchronous-commit": d.commit, "server.fsync": onOff[d.fsync], "fsync of standbys": onOff[d.synced],
		"replication": strconv.Itoa(nodes), "standbys": driver.Of(1+d.names.confirm, nodes),
	}
	if d.unlogged {
		k["synchronous-commit"] = "off" // there is nothing to wait for
	}
	return k
}

// Known implements driver.GuaranteePredictor. What a commit waits for is set on each connection.
// With servers that weir starts it is one standby, and all addresses are known.
func (c *Config) Known(s driver.Servers) driver.Known {
	if s.Nodes == 0 {
		return driver.KnownOf(c, "synchronous-commit")
	}
	d := durability{commit: c.SynchronousCommit, fsync: c.Server.Fsync == "on", standbys: s.Nodes - 1}
	if d.synced = d.fsync; d.standbys > 0 {
		d.names = wanted{1, d.standbys}
	}
	return d.known()
}

// settings lists the settings that decide durability and delivery, under the vendor's names.
var settings = []string{
	"fsync", "synchronous_commit", "synchronous_standby_names", "full_page_writes", "wal_level", "wal_sync_method", "commit_delay", "max_connections",
}

// Facts asks the primary, and the standbys among the addresses, for their settings.
func (c *conn) Facts(ctx context.Context) (driver.Facts, error) {
	f := driver.Facts{Name: "postgres", Nodes: 1, Settings: map[string]string{}}
	rows, err := c.ask(ctx, `SELECT name, current_setting(name) FROM pg_settings WHERE name = ANY($1::text[])`,
		"{server_version,"+strings.Join(settings, ",")+"}")
	if err != nil {
		return f, unanswered(err)
	}
	for _, r := range rows {
		f.Settings[r[0]] = r[1]
	}
	// "15.18 (Debian 15.18-0+deb12u1)"
	f.Version, _, _ = strings.Cut(f.Settings["server_version"], " ")
	delete(f.Settings, "server_version")
	if at, err := c.ask(ctx, `SELECT host(inet_server_addr()), inet_server_port()::text`); err == nil && len(at) > 0 && at[0][1] != "" {
		f.Leaders = []string{net.JoinHostPort(at[0][0], at[0][1])} // none with a Unix socket
	}
	unlogged := false
	for _, t := range c.tables.All() {
		rows, err := c.ask(ctx, `SELECT relpersistence FROM pg_class WHERE oid = to_regclass($1)`, t.name)
		if err != nil {
			return f, unanswered(err)
		}
		unlogged = unlogged || len(rows) > 0 && rows[0][0] != "p"
	}
	there, err := c.standbys(ctx)
	if err != nil {
		return f, unanswered(err)
	}
	f.Nodes += len(there)
	d := durability{
		commit: f.Settings["synchronous_commit"], fsync: f.Settings["fsync"] == "on", unlogged: unlogged,
		standbys: len(there), names: parseNames(f.Settings["synchronous_standby_names"]),
	}
	if len(there) > 0 {
		d.synced, f.Settings["fsync of standbys"] = c.standbysSync(ctx, len(there))
		f.Settings["standbys"] = strings.Join(there, ", ")
	}
	if d.unlogged {
		f.Settings["table"] = "unlogged"
	}
	f.Settings["visibility_timeout"] = c.cfg.VisibilityTimeout.String()
	f.Settings["transaction"] = strconv.Itoa(c.cfg.Transaction)
	f.Confirms = page.Confirmations.Of(d.known())
	return f, nil
}

// standbysSync asks the standbys among the addresses whether they sync. There are n in total.
func (c *conn) standbysSync(ctx context.Context, n int) (synced bool, said string) {
	on := 0
	if len(c.cfg.Address) > 1 {
		for _, a := range c.cfg.Address {
			l, err := c.cfg.connect(ctx, c.run, "facts", []string{a})
			if err != nil {
				continue
			}
			rows, err := query(ctx, l, `SELECT pg_is_in_recovery(), current_setting('fsync')`)
			l.close(ctx)
			switch {
			case err != nil || rows[0][0] != "t":
			case rows[0][1] != "on":
				return false, "off"
			default:
				on++
			}
		}
	}
	if on < n {
		return false, "unknown (assumed off)"
	}
	return true, "on"
}
