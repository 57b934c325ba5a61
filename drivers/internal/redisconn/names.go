package redisconn

import (
	"context"
	"strings"

	"github.com/weirmq/weir/driver"
)

// clientName returns the name shown by CLIENT LIST. It must not contain blanks or non-ASCII
// characters (https://redis.io/docs/latest/commands/client-setname/).
func clientName(run driver.Run, name string) string {
	return "weir-" + run.ID + suffix(name)
}

// suffix returns name as the end of a client name.
func suffix(name string) string {
	return "-" + strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '-'
		}
		return r
	}, name)
}

// ConnectionName returns the server's name for this link's connections.
func (l *Link) ConnectionName() string { return clientName(l.run, l.name) }

// Connected returns the names of all named connections to the server. Without permission, the error
// is ErrAuth.
func (l *Link) Connected(ctx context.Context) ([]string, error) {
	list, err := l.ClientList(ctx).Result()
	if err != nil {
		return nil, Cause(err)
	}
	var names []string
	for line := range strings.Lines(list) {
		for field := range strings.FieldsSeq(line) {
			if name, ok := strings.CutPrefix(field, "name="); ok && name != "" {
				names = append(names, name)
				break
			}
		}
	}
	return names, nil
}

// AnyNamed reports whether names contains a connection of a link of that name, in any run; except
// is ignored.
func AnyNamed(names []string, link, except string) bool {
	for _, n := range names {
		if n != except && strings.HasPrefix(n, "weir-") && strings.HasSuffix(n, suffix(link)) {
			return true
		}
	}
	return false
}
