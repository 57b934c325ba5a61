// Package serve shows the runs of a folder in a browser: a searchable list, and the pages of weir's other
// verbs. The folder's contents are untrusted: no text in it becomes markup, and each page's policy lists
// everything that may run on it.
package serve

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirmq/weir/internal/history"
	"github.com/weirmq/weir/internal/index"
	"github.com/weirmq/weir/internal/view"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

// Limits of a server.
const (
	mostHead    = 256 << 10             // bytes of a request's header: a comparison lists its runs there
	mostBusy    = 2                     // concurrent pages that read runs; others wait
	patience    = 30 * time.Second      // for a turn, and for a client to read
	rest        = 10                    // pause after a scan, as a multiple of its duration: a large folder costs at most a tenth of a core
	stale       = time.Second           // oldest acceptable scan of the folders
	mostStale   = 15 * time.Second      // likewise, for a large folder
	mostDelay   = 60 * time.Millisecond // longest wait of a page for a scan
	sessionName = "weir_session"
)

// Options control what a server shows and to whom.
type Options struct {
	Index *index.Index
	Weir  string   // version
	Token string   // required from browsers; "": none
	TLS   bool     // reached over HTTPS only
	Names []string // allowed host names, besides addresses, localhost and the host's own name
	Log   *slog.Logger

	Changes *history.Memo // of the histories; nil: none
	Starter *Starter      // starts runs from a form; nil: read-only. Requires Token
}

// A Server shows the runs of one folder.
type Server struct {
	o     Options
	names []string
	busy  chan struct{}
	look  looker
	made  madePages

	watching chan struct{} // slots of readers that follow runs
}

// New returns a server. The end of ctx stops its background work.
func New(ctx context.Context, o Options) *Server {
	s := &Server{o: o, names: append([]string{"localhost"}, o.Names...), busy: make(chan struct{}, mostBusy), watching: make(chan struct{}, mostWatching)}
	if name, err := os.Hostname(); err == nil {
		s.names = append(s.names, name)
	}
	s.look = looker{ctx: ctx, index: o.Index, log: o.Log}
	return s
}

// Wait waits for the end of the server's background work, after the end of New's ctx.
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
	mux.HandleFunc("GET /suite", s.page(s.repeated))
	mux.HandleFunc("GET /live", s.reported(s.page(s.live)))
	mux.HandleFunc("GET /follow", s.follow)
	if s.o.Starter != nil && s.o.Token != "" {
		mux.HandleFunc("GET /start", s.page(s.startForm))
		mux.HandleFunc("POST /start", s.start)
		mux.HandleFunc("POST /stop", s.stop)
	}
	return s.guarded(http.NewCrossOriginProtection().Handler(mux))
}

// Answer serves requests on l until ctx ends, within a server's limits. It returns when everything has
// ended, including runs started from pages.
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
			_ = h.Close() // slower pages are cut off
		}
		<-ended
	}
	s.Wait()
	if s.o.Starter != nil {
		s.o.Starter.Close()
	}
	return err
}

// guarded refuses requests from other origins, and sets the pages' policy.
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

// called reports whether the server has this host name. It prevents DNS rebinding: another site's name
// resolving to this address must not let its pages read ours.
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

// A refusal is an error with an HTTP status of its own.
type refusal struct {
	status int
	err    error
}

func (r refusal) Error() string { return r.err.Error() }
func (r refusal) Unwrap() error { return r.err }

func refuse(status int, format string, args ...any) error {
	return refusal{status, fmt.Errorf(format, args...)}
}

// An answer is a page to be written.
type answer struct {
	body   []byte
	policy string
	status int // 0: 200

	refresh time.Duration // until the browser loads it again; 0: it does not
}

// page writes the page of show, or its error.
func (s *Server) page(show func(*http.Request) (answer, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := show(r)
		status := cmp.Or(v.status, http.StatusOK)
		if err != nil {
			if errors.Is(err, context.Canceled) {
				return // the client has gone
			}
			status = http.StatusInternalServerError
			if f := (refusal{}); errors.As(err, &f) {
				status = f.status
			} else if errors.Is(err, index.ErrUnknown) {
				status = http.StatusNotFound
			} else if errors.Is(err, index.ErrFilter) {
				status = http.StatusBadRequest
			}
			v, err = s.frame(frame{Title: "Not shown", Errors: lines(err)})
			if err != nil {
				http.Error(w, "weir serve: "+err.Error(), http.StatusInternalServerError)
				return
			}
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(2 * patience)) // if unsupported, the client has longer
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", v.policy)
		if v.refresh > 0 {
			w.Header().Set("Refresh", fmt.Sprint(int(v.refresh.Seconds())))
		}
		w.WriteHeader(status)
		_, _ = w.Write(v.body) // the client may have gone
	}
}

// lines splits an error into its distinct parts.
func lines(err error) []string {
	var out []string
	for l := range strings.Lines(err.Error()) {
		if l = strings.TrimSpace(l); l != "" && !slices.Contains(out, l) && len(out) < 50 {
			out = append(out, l)
		}
	}
	return out
}

// turn waits for a turn to read runs. It returns the function that ends the turn.
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
	if row, err := s.o.Index.Row(r.Context(), dir); err == nil && row.Kind == index.Unended && !s.o.Index.Has(dir, result.FileResult) {
		a, err := s.frame(frame{
			Title: "No result yet", Errors: []string{row.Dir + ": weir writes the result when a run ends. This one is still running, or was killed."},
			More: "/live?" + url.Values{"dir": {row.Dir}}.Encode(), MoreText: "Follow it",
		})
		a.status = http.StatusUnprocessableEntity
		return a, err
	}
	done, err := s.turn(r.Context())
	if err != nil {
		return answer{}, err
	}
	defer done()
	b, err := htmlOf(s.loaded(r.Context(), dir, whole))
	if err != nil {
		return answer{}, err
	}
	return s.within(b, "/")
}

// A drawn is what a page shows, in each form.
type drawn interface {
	HTML(w io.Writer) error
	Drawn() *layout.Page
}

// htmlOf returns the HTML of what was read, or the error of the reader.
func htmlOf(x drawn, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = x.HTML(&b)
	return b.Bytes(), err
}

// A loadedRun is a run, as weir report shows it.
type loadedRun struct{ view.Entry }

// HTML writes the page with charts.
func (r loadedRun) HTML(w io.Writer) error { return view.HTML(w, r.Entry, view.Options{}) }

// Drawn is the page for Markdown.
func (r loadedRun) Drawn() *layout.Page { return view.RunPage(r.Entry, view.Options{Dir: r.Dir}) }

// whole reads all that the page of a run shows.
var whole = view.Loading{Drawn: true, Totals: true}

// loaded reads a run.
func (s *Server) loaded(ctx context.Context, dir string, what view.Loading) (loadedRun, error) {
	path, err := s.o.Index.Path(ctx, dir)
	if err != nil {
		return loadedRun{}, err
	}
	entry, _, err := view.Load(path, dir, what)
	return loadedRun{entry}, s.unreadable(err)
}

// runAt returns where the page of a run is; "" for one that is not there.
func (s *Server) runAt(ctx context.Context) view.Linking {
	return func(dir string) string {
		if row, err := s.o.Index.Row(ctx, path.Clean(dir)); err != nil || row.Kind != index.Ended {
			return ""
		}
		return "/run?" + url.Values{"dir": {path.Clean(dir)}}.Encode()
	}
}

// unrooted removes the folder's path from an error: pages reveal nothing of the host.
func (s *Server) unrooted(err error) error {
	return errors.New(strings.ReplaceAll(err.Error(), s.o.Index.Dir()+string(os.PathSeparator), ""))
}

// within adds a link back to a page that weir writes as a file, and returns the page's own policy. Both
// markers precede all text of a result except the title, which is escaped.
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
	return answer{body: b.Bytes(), policy: html.UnescapeString(string(policy)) + "; frame-ancestors 'none'"}, nil
}

// A looker scans the folders when a page asks for it, at most once per stale.
type looker struct {
	ctx   context.Context //nolint:containedctx // of the server: a look outlives the request that began it
	index *index.Index
	log   *slog.Logger

	mu    sync.Mutex
	ended time.Time
	took  time.Duration // duration of the last scan
	going chan struct{} // closed when the current scan ends; nil: none
	so    index.Synced  // progress of the current scan
	err   error         // of the last scan
	all   sync.WaitGroup
}

// fresh starts a scan if the last one is old, and waits briefly for its end. It returns the progress, and
// whether the scan is still running.
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
	// What a later scan of a large folder finds appears at the next visit.
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
