package scenario

import (
	"slices"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/userfile"
)

// A Need is what an option requires on the host where its driver runs: an environment variable, a
// file, or a command that the driver executes.
type Need struct {
	Env     string `json:"env,omitempty"`
	File    string `json:"file,omitempty"`    // its path
	Command string `json:"command,omitempty"` // its words in the format of commandText
}

// commandText formats a command as a flag takes it: comma-separated words, with commas and backslashes
// escaped by a backslash.
func commandText(words []string) string {
	escaped := make([]string, len(words))
	for i, w := range words {
		escaped[i] = strings.NewReplacer(`\`, `\\`, ",", `\,`).Replace(w)
	}
	return strings.Join(escaped, ",")
}

// isCommand reports whether an option is a command that the driver executes.
func isCommand(sys *System, name string) bool {
	return slices.Contains(driver.CommandOptions(sys.Config), name)
}

// Needs lists without duplicates what the scenario's options require on the host where their driver
// runs: what they refer to, and the files that the driver itself reads.
func (s *Scenario) Needs() []Need {
	var all []Need
	for _, o := range s.System.Options {
		n := Need{}
		switch {
		case o.File:
			n.File = o.Reference
		case o.Reference != "":
			n.Env = envForm.FindStringSubmatch(o.Reference)[1]
		case isFile(&s.System, o.Name):
			n.File = o.Values[0]
		case isCommand(&s.System, o.Name):
			n.Command = commandText(o.Values)
		}
		// A server's settings are looked up on the host that starts it.
		if n != (Need{}) && !strings.HasPrefix(o.Name, driver.ServerPrefix) && !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	return all
}

// isFile reports whether an option's value is the path of a file that the driver reads.
func isFile(sys *System, name string) bool {
	return slices.Contains(driver.FileOptions(sys.Config), name)
}

// unknown stands for a secret that is looked up on another host.
const unknown = "looked up elsewhere"

func (in Inputs) permit(n Need) error {
	if in.Permit == nil {
		return nil
	}
	return in.Permit(n)
}

func (in Inputs) readOption(path string) ([]byte, error) {
	if in.ReadOption == nil {
		return in.ReadFile(path)
	}
	return in.ReadOption(path)
}

// mostOption limits the size of an option's file.
const mostOption = 64 << 10

// ReadOption reads a file that an option refers to, for Inputs.ReadOption.
func ReadOption(path string) ([]byte, error) { return userfile.Read(path, mostOption) }
