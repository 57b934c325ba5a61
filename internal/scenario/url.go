package scenario

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/weirmq/weir/driver"
)

// addressVariable is the environment variable that sets the option address.
const addressVariable = prefix + "ADDRESS"

// login is what connection URLs contain besides addresses.
type login struct {
	user, password  string
	hasUser, hasKey bool   // present, possibly empty
	within          string // path: a virtual host or a database
	sslmode         string // PostgreSQL's
}

// splitURL parses a connection URL as provided by hosting services: amqps://user:password@host/vhost.
// Parts for which the driver has no option stay in the address, or are rejected. Several
// comma-separated URLs must have the same login. Errors contain nothing of the URL.
func splitURL(text string, cfg driver.Config) (addresses []string, l login, err error) {
	has := func(option string) bool { return driver.HasOption(cfg, option) }
	scheme := ""
	for i, one := range strings.Split(text, ",") {
		one = strings.TrimSpace(one)
		if s, _, found := strings.Cut(one, "://"); found {
			scheme = s + "://"
		} else {
			one = scheme + one // as in nats://a,b
		}
		bare := !strings.Contains(one, "://")
		if bare {
			one = "any://" + one
		}
		u, err := url.Parse(one)
		if err != nil || u.Host == "" {
			return nil, l, errors.New("is not a connection URL such as scheme://user:password@host:port")
		}
		mine := login{}
		if u.User != nil {
			mine.user, mine.hasUser = u.User.Username(), u.User.Username() != ""
			mine.password, mine.hasKey = u.User.Password()
			u.User = nil
		}
		if p := strings.TrimPrefix(u.Path, "/"); p != "" && (has("vhost") || has("database")) {
			mine.within, u.Path, u.RawPath = p, "", ""
		}
		if q := u.Query(); has("database") && len(q) == 1 && q.Has("sslmode") {
			mine.sslmode, u.RawQuery = q.Get("sslmode"), ""
		}
		if i > 0 && mine != (login{}) && mine != l {
			return nil, l, errors.New("holds URLs that differ in more than host and port (the same user, password and path in each)")
		}
		if i == 0 {
			l = mine
		}
		address := strings.TrimRight(u.String(), "/")
		if bare {
			address = strings.TrimPrefix(address, "any://")
		}
		addresses = append(addresses, address)
	}
	return addresses, l, nil
}

// apply sets the driver's options from a login, except those given explicitly, and returns their
// names. reference names the variable or file with the login.
func (l *login) apply(cfg driver.Config, reference string, given func(option string) bool) (set []string, errs []error) {
	has := func(option string) bool { return driver.HasOption(cfg, option) }
	to := func(name string, option func() error) {
		switch {
		case given(name):
		case !has(name):
			errs = append(errs, fmt.Errorf("holds a %s, and the driver takes none", name))
		case option() != nil:
			errs = append(errs, fmt.Errorf("holds a %s that the driver does not take, and that is not shown", name))
		default:
			set = append(set, name)
		}
	}
	text := func(name, value string) { to(name, func() error { return driver.SetOption(cfg, name, value) }) }
	secret := func(name, value string) {
		to(name, func() error { return driver.SetSecret(cfg, name, driver.NewSecret(value, reference)) })
	}
	switch {
	case l.hasUser && !l.hasKey && has("token"): // NATS's nats://token@host
		secret("token", l.user)
	case l.hasUser:
		text("user", l.user)
	}
	if l.hasKey {
		secret("password", l.password)
	}
	switch {
	case l.within == "":
	case has("vhost"):
		text("vhost", l.within)
	default:
		text("database", l.within)
	}
	// As libpq understands sslmode; the modes that may go without TLS go without it:
	// https://www.postgresql.org/docs/current/libpq-ssl.html#LIBPQ-SSL-PROTECTION
	switch l.sslmode {
	case "", "disable", "allow", "prefer":
	case "require":
		text("tls.insecure", "yes")
	case "verify-full":
		text("tls.on", "yes")
	default:
		errs = append(errs, errors.New("has an sslmode that weir does not take (disable, allow, prefer, require, verify-full)"))
	}
	return set, errs
}
