package nsq

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/failure"
	"github.com/weirmq/weir/drivers/internal/httpapi"
)

// identity matches a message ID, which is stripped so that errors can be grouped.
var identity = regexp.MustCompile(`\b[0-9a-f]{16}\b ?`)

// words maps the client's errors, which concern connections. refusal handles nsqd's own errors.
var words = failure.Map{Hide: identity}

// refusal maps an error sent by nsqd, such as "E_BAD_TOPIC PUB topic name ... is not valid", to the
// contract's error, if there is one (https://nsq.io/clients/tcp_protocol_spec.html).
func refusal(text string) error {
	text = identity.ReplaceAllString(strings.TrimSpace(text), "")
	var is error
	switch code, _, _ := strings.Cut(text, " "); {
	case strings.Contains(text, "too big"):
		is = driver.ErrTooLarge
	case strings.HasPrefix(code, "E_AUTH"), code == "E_UNAUTHORIZED":
		is = driver.ErrAuth
	case code == "E_BAD_TOPIC", code == "E_BAD_CHANNEL", code == "E_INVALID", strings.Contains(text, "TLS required"):
		is = driver.ErrUnsupported
	case strings.HasSuffix(text, "exiting"):
		is = driver.ErrDisconnected // the topic is being deleted, or nsqd is stopping
	default:
		return fmt.Errorf("nsqd: %s", text)
	}
	return fmt.Errorf("%w: nsqd: %s", is, text)
}

// connecting returns why the client could not connect. The client has no error values for this.
func connecting(err error) error {
	text := words.Plain(err).Error()
	switch {
	case driver.IsContract(err):
		return err
	case strings.Contains(text, "Auth Required"):
		return fmt.Errorf("%w: the server wants a secret (option token)", driver.ErrAuth)
	case strings.Contains(text, "E_AUTH"), strings.Contains(text, "E_UNAUTHORIZED"):
		return fmt.Errorf("%w: %s", driver.ErrAuth, text)
	case strings.Contains(text, "E_"):
		return fmt.Errorf("%w: %s", driver.ErrUnsupported, text)
	}
	return fmt.Errorf("%w: %s", driver.ErrUnreachable, text)
}

// isMissing reports whether err means that the topic or channel does not exist. Servers other than
// NSQ answer 404, too.
func isMissing(err error) bool {
	var e *httpapi.Refusal
	return errors.As(err, &e) && httpapi.Missing(err) && strings.HasSuffix(e.Message, "_NOT_FOUND")
}
