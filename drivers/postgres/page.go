package postgres

import "github.com/weirmq/weir/driver"

// page is what the driver says to a reader.
func page() driver.Page {
	const (
		locking = "https://www.postgresql.org/docs/current/sql-select.html#SQL-FOR-UPDATE-SHARE"
		commit  = "https://www.postgresql.org/docs/current/runtime-config-wal.html#GUC-SYNCHRONOUS-COMMIT"
		remove  = "https://www.postgresql.org/docs/current/sql-delete.html"
	)
	confirms := func(g driver.Guarantee, c driver.Copies, s driver.Stable) driver.Confirms {
		return driver.Confirms{Guarantee: g, Copies: c, Stable: s}
	}
	return driver.Page{
		About: "PostgreSQL is a database; here one table is a queue, as in SoftwareMill's comparison of queues. Sending inserts a row. Receiving locks the first free rows (SKIP LOCKED) and hides them for a while. Settling deletes them. " +
			"Each of the three is a transaction that waits for the disk, and a connection commits one at a time. Messages that wait for a producer's connection share a transaction (option transaction; 1 turns that off). " +
			"Every message leaves two dead rows and their index entries to the server's vacuum, which a long run should cover. " +
			"synchronous_commit, fsync and synchronous_standby_names decide what a confirmation means; weir reads them from the servers. A standby that is not among the addresses counts as not syncing. " +
			"The table below has synchronous_standby_names = 'ANY 1 (...)' where there are replicas.",
		ClientWhy: "the client for Go that is maintained and speaks the protocol's pipelines; its low layer pgconn is used, which moves bytes without types",
		Features: driver.Features{
			Persistence: "tables and a write-ahead log in files",
			Replication: "streaming of the log to standbys, waited for if named synchronous",
			Protocol:    "PostgreSQL 3.0, binary over TCP",
		},
		Maps: []driver.Mapping{
			{
				Word: "destination", To: "a table of jobs with an index on (next_delivery, id). An existing destination is a table with the columns id, content bytea and next_delivery timestamptz",
				Source: locking,
			},
			{Word: "partition", To: "none; more than one is refused", Source: "https://www.postgresql.org/docs/current/ddl-partitioning.html"},
			{Word: "subscription", To: "the table itself: a message is one row, so there is one subscription, and its consumers compete", Source: locking},
			{Word: "consumer", To: "a connection that takes up to fetch rows at a time, and looks again after poll-interval or a NOTIFY", Source: "https://www.postgresql.org/docs/current/sql-notify.html"},
			{Word: "guarantee", To: "the COMMIT has returned; what that means decide synchronous_commit, fsync and the synchronous standbys", Source: commit},
			{Word: "settle each", To: "every message is deleted by a statement of its own; those taken together share transactions", Source: remove},
			{Word: "settle batch", To: "all that one statement took is deleted by one statement", Source: remove},
			{Word: "settle auto", To: "rows are deleted when they are taken, and delivery is at most once", Source: remove},
			{
				Word: "redelivered", To: "the row's count of attempts: it was hidden, and not settled within visibility-timeout, or was given back",
				Source: "https://www.postgresql.org/docs/current/dml-returning.html",
			},
		},
		Confirmations: []driver.Confirmation{
			{When: "synchronous-commit: off", Confirms: confirms(driver.Received, driver.CopiesOne, driver.StableNone)},
			{When: "synchronous-commit: on, replication: 1, server.fsync: off", Confirms: confirms(driver.Received, driver.CopiesOne, driver.StableOS)},
			{When: "synchronous-commit: local, replication: 2 to 3", Confirms: confirms(driver.Received, driver.CopiesOne, driver.StableFsync)},
			{When: "synchronous-commit: remote_write, replication: 3", Confirms: confirms(driver.Replicated, driver.CopiesQuorum, driver.StableOS)},
			{When: "synchronous-commit: on, replication: 3, server.fsync: off", Confirms: confirms(driver.Replicated, driver.CopiesQuorum, driver.StableOS)},
			{When: "synchronous-commit: on, replication: 1", Confirms: confirms(driver.Persisted, driver.CopiesOne, driver.StableFsync)},
			{When: "synchronous-commit: on, replication: 3", Confirms: confirms(driver.Persisted, driver.CopiesQuorum, driver.StableFsync)},
			{When: "synchronous-commit: remote_apply, replication: 3", Confirms: confirms(driver.Persisted, driver.CopiesQuorum, driver.StableFsync)},
		},
	}
}
