package cli

// fleetCommand is `weir fleet`.
type fleetCommand struct {
	Token fleetToken `cmd:"" help:"Make a token, and print the URL by which agents join; list tokens, or take one back."`
}

// fleetHelp is common to the verbs.
const fleetHelp = "A fleet is several weir agents, each on a host of its own, that do one run together with the weir that runs the scenario. " +
	"Its certificate and tokens are in the folder weir/fleet in the user's folder for state, or in WEIR_FLEET_DIR."
