package redisconn

import (
	"context"
	"strings"

	"github.com/weirmq/weir/driver"
)

// clientName is what CLIENT LIST shows. It takes no blanks, and nothing beyond
// ASCII (https://redis.io/docs/latest/commands/client-setname/).
func clientName(run driver.Run, name string) string {
	return "weir-" + run.ID + suffix(name)
}

// suffix is name as the end of a client's.
func suffix(name string) string {
	return "-" + strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '-'
		}
		return r
	}, name)
}

// ConnectionName is what the server shows of this link's connections.
func (l *Link) ConnectionName() string { return clientName(l.run, l.name) }

// Connected returns the names of all connections to the server that have one. A user who
// may not know is ErrAuth.
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

// AnyNamed reports whether among the names of connections is one of a link of that
// name, of whichever run; except is not looked at.
func AnyNamed(names []string, link, except string) bool {
	for _, n := range names {
		if n != except && strings.HasPrefix(n, "weir-") && strings.HasSuffix(n, suffix(link)) {
			return true
		}
	}
	return false
}
