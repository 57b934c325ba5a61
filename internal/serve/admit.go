package serve

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"

	"github.com/weirmq/weir/internal/userfile"
)

// leastToken and mostToken bound the length of a token.
const leastToken, mostToken = 20, 200

// ReadToken reads the token in a file.
func ReadToken(file string) (string, error) {
	b, err := userfile.Read(file, 4096)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(b))
	if n := len(token); n < leastToken || n > mostToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("the file holds no token (%d to %d characters without a space)", leastToken, mostToken)
	}
	return token, nil
}

// admitted reports whether a request has the token, in a cookie or a header. A request with the token in
// its URL gets the cookie, and is sent to the URL without it. It answers any other request itself.
func (s *Server) admitted(w http.ResponseWriter, r *http.Request) bool {
	if c, err := r.Cookie(sessionName); err == nil && same(c.Value, s.session()) {
		return true
	}
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && same(token, s.o.Token) {
		return true
	}
	q := r.URL.Query()
	if shown := q.Get("token"); r.Method == http.MethodGet && shown != "" && same(shown, s.o.Token) {
		http.SetCookie(w, &http.Cookie{Name: sessionName, Value: s.session(), Path: "/", HttpOnly: true, Secure: s.o.TLS, SameSite: http.SameSiteStrictMode})
		q.Del("token")
		u := *r.URL
		u.Scheme, u.Host, u.RawQuery = "", "", q.Encode()
		// A page, not a redirect: after a navigation from another site browsers do not send a strict cookie
		// with a redirect.
		v, err := s.frame(frame{Title: "Welcome", Next: "/" + strings.TrimLeft(u.String(), "/")})
		if err != nil {
			http.Error(w, "weir serve: "+err.Error(), http.StatusInternalServerError)
			return false
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", v.policy)
		_, _ = w.Write(v.body) // the client may have gone
		return false
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="weir serve"`)
	http.Error(w, "weir serve: open the address that weir serve printed; it has the token", http.StatusUnauthorized)
	return false
}

// session is the cookie's value, which reveals nothing of the token.
func (s *Server) session() string {
	sum := sha256.Sum256([]byte("weir serve session\n" + s.o.Token))
	return hex.EncodeToString(sum[:])
}

// same compares in constant time.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
