// Package hosts brings agents to hosts by the user's own ssh, and ends them.
//
// A host needs a POSIX shell with uname, mkdir, cat, chmod, mv and rm, and one of sha256sum, shasum, openssl
// and cksum. The program travels without its symbols, compressed where the host has gzip. It stays there below a folder of its hash.
//
// To each host there is one connection, the master, and a session in it for each step (ssh's ControlMaster, in a
// private folder). The agent reads the join URL from its standard input, which is never in an argument or a
// variable. It ends when that input ends, or when no line came for LostLimit: however this process, ssh or the
// network dies, no agent is left.
package hosts
