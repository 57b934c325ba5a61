package nsq

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/trial"
)

// TestServerWithoutConfigEndpointIsTooOld uses a server that reports its identity, but lacks
// /config.
func TestServerWithoutConfigEndpointIsTooOld(t *testing.T) {
	address := trial.Serve(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4096))
		answer := `{"version": "0.2.20", "tls_v1": false, "auth_required": false}`
		_, _ = c.Write(append([]byte{0, 0, 0, byte(len(answer) + 4), 0, 0, 0, 0}, answer...))
		_, _ = io.Copy(io.Discard, c)
	})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/info" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"version": "0.2.20"}`)
	}))
	t.Cleanup(web.Close)
	trial.Refuses(t, Definition(), map[string][]string{"address": {address}, "http": {web.URL}},
		trial.Mistake{Name: "open", Is: driver.ErrUnsupported, Says: "too old"})
}
