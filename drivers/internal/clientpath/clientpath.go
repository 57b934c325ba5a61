// Package clientpath is the option of the drivers that do not publish by their
// client library's own publisher alone: it has them do so.
package clientpath

// The values of the option client-path.
const (
	Weir   = "weir"
	Vendor = "vendor"
)

// An Option is embedded in the Config of such a driver.
type Option struct {
	Path string `option:"client-path" allowed:"weir,vendor" help:"What publishes: weir's own path past or below the client's publisher (weir), or that publisher alone (vendor)."`
}

// Default returns weir's own path.
func Default() Option { return Option{Path: Weir} }

// ByVendor reports whether the client library's publisher alone publishes.
func (o Option) ByVendor() bool { return o.Path == Vendor }

// Label returns what publishes, as driver.Labelled has it: the words own for
// weir's path, or else the client library's publisher by its call.
func (o Option) Label(own, call string) string {
	if o.ByVendor() {
		return "the client's own publisher (" + call + ")"
	}
	return own
}
