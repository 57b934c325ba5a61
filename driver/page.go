package driver

// A Page is the part of a Definition that is for its readers:
// `weir drivers NAME` and docs/drivers are made from it.
type Page struct {
	About     string // some sentences: what the system is, and what to know when reading its figures
	ClientWhy string // one clause: why this client library is the one measured; empty where there is none
	Embeds    string // module path of the system that Definition.Serve runs; empty where Serve is nil

	Features Features

	Maps          []Mapping      // what weir's words are there, Words first, in their order
	Confirmations []Confirmation // which settings give which guarantee, weakest first
}

// Features are those columns of the feature table that are not Capabilities,
// each a few words without a capital and a full stop.
type Features struct {
	Persistence string // where messages are kept: "memory or files, by stream"
	Replication string // how copies are made: "Raft, a group for each stream"; "none"
	Protocol    string // spoken on the wire: "NATS, text over TCP"; "none" in process
}

// A Mapping says what one of weir's words is in a system.
type Mapping struct {
	Word   string // "destination"; also "settle each" and what else needs saying
	To     string // a clause without a capital and a full stop
	Source string // https address where the vendor documents it; empty only for a system without a client library
}

// Words returns those words that every driver's Maps explain.
func Words() []string {
	return []string{"destination", "partition", "subscription", "consumer", "guarantee"}
}

// A Confirmation says what a confirmation means under some settings. What is in
// force is read from the running system (Conn.Facts); this is what to expect.
type Confirmation struct {
	// When holds the settings as "name: value" joined by ", ": the driver's own
	// options by their names, and replication, the number of replicas of a
	// destination, of which several are written as a range, "2 to 5". An option
	// that is not there has its default.
	When string
	Confirms
}
