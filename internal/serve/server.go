// Package serve shows the runs of a folder in a browser: a list with search, and the pages
// that weir's other verbs write. What the folder holds is not trusted: no text of it is
// markup, and each page's policy names all that may run on it.
package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirmq/weir/internal/index"
	"github.com/weirmq/weir/internal/view"
)

// Bounds of a server.
const (
	mostHead    = 256 << 10             // bytes of a request's head: a comparison names its runs there
	mostBusy    = 2                     // pages at once that read runs; others wait
	patience    = 30 * time.Second      // for a turn, and for a client that reads
	rest        = 10                    // times as long as a look took there is none: a large folder takes a tenth of a core at most
	stale       = time.Second           // how old a look at the folders may be
	mostStale   = 15 * time.Second      // likewise, of a large folder
	mostDelay   = 60 * time.Millisecond // that a page waits for a look
	sessionName = "weir_session"
)

// Options say what a server shows and to whom.
type Options struct {
	Index *index.Index
	Weir  string   // version
	Token string   // that a browser must have shown; "": none
	TLS   bool     // it is reached by HTTPS alone
	Names []string // by which it may be called, beside addresses, localhost and the host's own name
	Log   *slog.Logger

	Starter *Starter // starts runs from a form; nil: the server only reads. It needs Token
}

// A Server shows the runs of one folder.
type Server struct {
	o     Options
	names []string
	busy  chan struct{}
	look  looker

	watching chan struct{} // readers that follow runs
}

// New returns a server. ctx ending ends what it does beside its requests.
func New(ctx context.Context, o Options) *Server {
	s := &Server{o: o, names: append([]string{"localhost"}, o.Names...), busy: make(chan struct{}, mostBusy), watching: make(chan struct{}, mostWatching)}
	if name, err := os.Hostname(); err == nil {
		s.names = append(s.names, name)
	}
	s.look = looker{ctx: ctx, index: o.Index, log: o.Log}
	return s
}

// Wait waits until what the server does beside its requests has ended, after ctx of New has.
func (s *Server) Wait() { s.look.all.Wait() }

// Handler answers requests. All but those that start and stop runs only read.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.page(s.list))
	mux.HandleFunc("GET /run", s.page(s.run))
	mux.HandleFunc("GET /compare", s.page(s.compared))
	mux.HandleFunc("GET /overlay", s.page(s.overlaid))
	mux.HandleFunc("GET /history", s.page(s.followed))
	mux.HandleFunc("GET /capacity", s.page(s.searched))
	mux.HandleFunc("GET /live", s.page(s.live))
	mux.HandleFunc("GET /follow", s.follow)
	if s.o.Starter != nil && s.o.Token != "" {
		mux.HandleFunc("GET /start", s.page(s.startForm))
		mux.HandleFunc("POST /start", s.start)
		mux.HandleFunc("POST /stop", s.stop)
	}
	return s.guarded(http.NewCrossOriginProtection().Handler(mux))
}

// Answer answers requests at l until ctx ends, with the bounds that a server needs. It
// returns when nothing goes on any more, runs that pages started among it.
func (s *Server) Answer(ctx context.Context, l net.Listener) error {
	h := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: patience, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: mostHead,
		ErrorLog:    slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(l) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if err := h.Shutdown(grace); err != nil {
			_ = h.Close() // a page that takes longer is cut short
		}
		<-ended
	}
	s.Wait()
	if s.o.Starter != nil {
		s.o.Starter.Close()
	}
	return err
}

// guarded refuses requests of strangers, and says what a page may do.
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		switch {
		case r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate":
			http.Error(w, "weir serve: pages of other sites may link to it, and not read it", http.StatusForbidden)
			return
		case !s.called(r.Host):
			http.Error(w, "weir serve: it is not called by this name (--name NAME allows one)", http.StatusMisdirectedRequest)
			return
		case s.o.Token != "" && !s.admitted(w, r):
			return
		}
		next.ServeHTTP(w, r)
	})
}

// called reports whether the server has this name. A name that a stranger's DNS gives to
// this address must not let the stranger's page read ours.
func (s *Server) called(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return true
	}
	return slices.ContainsFunc(s.names, func(n string) bool { return strings.EqualFold(n, name) })
}

// A refusal is an error that a page tells with its own status.
type refusal struct {
	status int
	err    error
}

func (r refusal) Error() string { return r.err.Error() }
func (r refusal) Unwrap() error { return r.err }

func refuse(status int, format string, args ...any) error {
	return refusal{status, fmt.Errorf(format, args...)}
}

// An answer is a page that is to be written.
type answer struct {
	body   []byte
	policy string
}

// page writes what show makes, or what went wrong.
func (s *Server) page(show func(*http.Request) (answer, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := show(r)
		status := http.StatusOK
		if err != nil {
			if errors.Is(err, context.Canceled) {
				return // the client has gone
			}
			status = http.StatusInternalServerError
			if f := (refusal{}); errors.As(err, &f) {
				status = f.status
			} else if errors.Is(err, index.ErrUnknown) {
				status = http.StatusNotFound
			}
			v, err = s.frame(frame{Title: "Not shown", Errors: lines(err)})
			if err != nil {
				http.Error(w, "weir serve: "+err.Error(), http.StatusInternalServerError)
				return
			}
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(2 * patience)) // where it cannot, the client has longer
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", v.policy)
		w.WriteHeader(status)
		_, _ = w.Write(v.body) // a client that has gone is told nothing
	}
}

// lines are the parts of an error, each once.
func lines(err error) []string {
	var out []string
	for l := range strings.Lines(err.Error()) {
		if l = strings.TrimSpace(l); l != "" && !slices.Contains(out, l) && len(out) < 50 {
			out = append(out, l)
		}
	}
	return out
}

// turn waits until a page may read runs. It returns what ends the turn.
func (s *Server) turn(ctx context.Context) (func(), error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case s.busy <- struct{}{}:
		return func() { <-s.busy }, nil
	case <-ctx.Done():
		return nil, refuse(http.StatusServiceUnavailable, "other pages are being made: load this one again in a while")
	}
}

// run is the page of one run.
func (s *Server) run(r *http.Request) (answer, error) {
	dir := r.URL.Query().Get("dir")
	done, err := s.turn(r.Context())
	if err != nil {
		return answer{}, err
	}
	defer done()
	b, err := s.runPage(r.Context(), dir)
	if err != nil {
		return answer{}, err
	}
	return s.within(b, "/")
}

// runPage is the page of a run as weir report writes it.
func (s *Server) runPage(ctx context.Context, dir string) ([]byte, error) {
	path, err := s.o.Index.Path(ctx, dir)
	if err != nil {
		return nil, err
	}
	entry, _, err := view.Load(path, dir, view.Loading{Drawn: true, Totals: true})
	if err != nil {
		return nil, refusal{http.StatusUnprocessableEntity, s.unrooted(err)}
	}
	var b bytes.Buffer
	err = view.HTML(&b, entry, view.Options{})
	return b.Bytes(), err
}

// unrooted takes the path of the folder out of an error: a page tells nothing of the host.
func (s *Server) unrooted(err error) error {
	return errors.New(strings.ReplaceAll(err.Error(), s.o.Index.Dir()+string(os.PathSeparator), ""))
}

// within puts a way back on a page that weir writes as a file, and has the page's own
// policy. Both marks stand before all text of a result but the title, which is escaped.
func (s *Server) within(page []byte, back string) (answer, error) {
	const opened = `http-equiv="Content-Security-Policy" content="`
	_, rest, found := bytes.Cut(page, []byte(opened))
	policy, _, ended := bytes.Cut(rest, []byte(`"`))
	before, after, body := bytes.Cut(page, []byte("<body>"))
	if !found || !ended || !body {
		return answer{}, errors.New("a page of weir has no policy")
	}
	var b bytes.Buffer
	b.Write(before)
	b.WriteString(`<body><main><p><a href="` + html.EscapeString(back) + `">All runs</a></p></main>`)
	b.Write(after)
	return answer{b.Bytes(), html.UnescapeString(string(policy)) + "; frame-ancestors 'none'"}, nil
}

// A looker looks at the folders when a page asks for it, not more often than stale.
type looker struct {
	ctx   context.Context //nolint:containedctx // of the server: a look outlives the request that began it
	index *index.Index
	log   *slog.Logger

	mu    sync.Mutex
	ended time.Time
	took  time.Duration // the last one
	going chan struct{} // closed when the look that goes on ends; nil: none goes on
	so    index.Synced  // of the look that goes on, so far
	err   error         // of the last one
	all   sync.WaitGroup
}

// fresh begins a look where the last one is old, and waits a moment for its end. It
// returns how far the look came, and whether it goes on.
func (l *looker) fresh(ctx context.Context) (so index.Synced, going bool, err error) {
	l.mu.Lock()
	if l.going == nil && time.Since(l.ended) > max(stale, min(rest*l.took, mostStale)) {
		l.going, l.so = make(chan struct{}), index.Synced{}
		l.all.Add(1)
		go l.sync(l.going)
	}
	wait := l.going
	l.mu.Unlock()
	if wait != nil {
		t := time.NewTimer(mostDelay)
		defer t.Stop()
		select {
		case <-wait:
		case <-t.C:
		case <-ctx.Done():
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// What a later look of a large folder finds is seen at the next visit.
	return l.so, l.going != nil && (l.ended.IsZero() || l.so.Read > 0), l.err
}

func (l *looker) sync(done chan struct{}) {
	defer l.all.Done()
	began := time.Now()
	so, err := l.index.Sync(l.ctx, func(so index.Synced) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.so = so
	})
	if err != nil && l.ctx.Err() == nil {
		l.log.Warn("the folder of results cannot be read", "error", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.so, l.err, l.ended, l.going = so, err, time.Now(), nil
	l.took = l.ended.Sub(began)
	close(done)
}
