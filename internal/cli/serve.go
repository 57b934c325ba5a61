package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/index"
	"github.com/weirmq/weir/internal/metrics"
	"github.com/weirmq/weir/internal/report"
	"github.com/weirmq/weir/internal/serve"
)

// serveCommand is `weir serve`.
type serveCommand struct {
	Dir     string   `arg:"" name:"dir" help:"Folder that holds the folders of runs, at most four levels deep."`
	Listen  *string  `placeholder:"[HOST]:PORT" help:"Where to listen. Without a host only this one can read it. Port 0 takes a free one. Default: 127.0.0.1:8080."`
	Name    []string `placeholder:"NAME" help:"Another name by which browsers call this server, such as that of a proxy; may be repeated. Addresses, localhost and the name of the host always work."`
	Publish *string  `placeholder:"DIR" help:"Write the same as static pages for any web host into this folder, which must not exist, and end."`
	Index   *string  `placeholder:"FILE" help:"File of the index, which weir makes. Default: in the user's cache folder."`
}

// Help is what kong adds to the verb's help.
func (serveCommand) Help() string {
	return "Lists the runs of a folder in a browser, with search, filters, comparisons, overlays and histories. It only reads. " +
		"The list comes from an index in SQLite that weir makes from the folders, again wherever it is missing or out of date. " +
		"With --publish it writes the same as static pages. " +
		"Ctrl-C ends it. Do not measure on the same host while somebody reads: that takes processor time."
}

const defaultListen = "127.0.0.1:8080"

// run serves until a signal comes.
func (c *serveCommand) run(ctx context.Context, e *env) Code {
	at, err := c.address()
	if err := errors.Join(err, c.checkDir(e), c.checkPublish(e)); err != nil {
		for _, err := range parts(err) {
			e.complain(err)
		}
		return Usage
	}
	ctx, stop := e.stoppable(ctx)
	defer stop()
	x, err := c.index(ctx, e)
	if err != nil {
		e.complain(err)
		return Usage
	}
	if c.Publish != nil {
		return c.publish(ctx, e, x)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", at)
	if err != nil {
		e.complain(errors.Join(fmt.Errorf("--listen: %w (another port, or 0 for a free one)", err), x.Close()))
		return Usage
	}
	s := serve.New(ctx, serve.Options{Index: x, Weir: buildinfo.Version(), Names: c.Name, Log: e.log})
	e.say("weir: serving %s at http://%s/", c.Dir, l.Addr())
	if !loopback(l.Addr()) {
		e.say("weir: everyone who reaches this address can read the results (--listen 127.0.0.1:PORT keeps them here)")
	}
	err = answerUntil(ctx, serve.HTTP(s.Handler(), e.log), l)
	s.Wait()
	if err := errors.Join(err, x.Close()); err != nil {
		e.complain(fmt.Errorf("serving: %w", err))
		return Failed
	}
	return OK
}

// checkPublish refuses a folder that cannot be made, and flags that it makes idle.
func (c *serveCommand) checkPublish(e *env) error {
	if c.Publish == nil {
		return nil
	}
	if c.Listen != nil || c.Name != nil {
		return errors.New("--publish: writes pages and listens nowhere (without --listen and --name)")
	}
	if err := (deliveredTo{c.Publish}).check(e); err != nil {
		return errors.New(strings.NewReplacer("--out:", "--publish:", "a file that does not exist yet", "a folder that does not exist yet").Replace(err.Error()))
	}
	return nil
}

// publish writes static pages.
func (c *serveCommand) publish(ctx context.Context, e *env, x *index.Index) Code {
	s := serve.New(ctx, serve.Options{Index: x, Weir: buildinfo.Version(), Log: e.log})
	said, err := s.Publish(ctx, e.path(*c.Publish))
	s.Wait()
	err = errors.Join(err, x.Close())
	switch {
	case ctx.Err() != nil:
		e.complain(errors.New("interrupted: nothing is published"))
		return Interrupted
	case err != nil:
		e.complain(err)
		return Failed
	}
	for _, line := range said.Skipped {
		e.say("weir: not published: %s", line)
	}
	if said.Left > 0 {
		e.say("weir: %d older runs are in the list and have no page of their own", said.Left)
	}
	e.say("weir: wrote %s; begin with %s", report.Counted(said.Pages, "page", "pages"), filepath.Join(*c.Publish, "index.html"))
	return OK
}

// answerUntil serves until ctx ends.
func answerUntil(ctx context.Context, h *http.Server, l net.Listener) error {
	h.BaseContext = func(net.Listener) context.Context { return ctx }
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := h.Shutdown(grace); err != nil {
		_ = h.Close() // a page that takes longer is cut short
	}
	<-ended
	return nil
}

// address is where to listen.
func (c *serveCommand) address() (string, error) {
	if c.Listen == nil {
		return defaultListen, nil
	}
	at, err := metrics.Address(*c.Listen)
	if err != nil {
		return "", fmt.Errorf("--listen: %w", err)
	}
	return at, nil
}

// checkDir refuses what is not a folder.
func (c *serveCommand) checkDir(e *env) error {
	const allowed = "a folder that holds the folders of runs"
	if strings.Contains(c.Dir, "://") {
		return fmt.Errorf("an argument is a URL, not a folder (%s)", allowed) // unshown: it may hold a password
	}
	switch st, err := os.Stat(e.path(c.Dir)); {
	case err != nil:
		return fmt.Errorf("%w (%s)", err, allowed)
	case !st.IsDir():
		return fmt.Errorf("%s is not a folder (%s)", c.Dir, allowed)
	}
	return nil
}

// index opens the index of the folder.
func (c *serveCommand) index(ctx context.Context, e *env) (*index.Index, error) {
	dir := e.path(c.Dir)
	if c.Index != nil {
		x, err := index.Open(ctx, dir, e.path(*c.Index))
		if err != nil {
			return nil, fmt.Errorf("--index: %w", err)
		}
		return x, nil
	}
	cache, err := broker.CacheDir(e.Env)
	if err != nil {
		return nil, fmt.Errorf("%w; or name the index with --index FILE", err)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(abs))
	file := filepath.Join(cache, "serve", hex.EncodeToString(sum[:8])+".sqlite")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the index: %w (--index FILE puts it elsewhere)", err)
	}
	return index.Open(ctx, dir, file)
}

// loopback reports whether only this host reaches an address.
func loopback(a net.Addr) bool {
	at, err := netip.ParseAddrPort(a.String())
	return err == nil && at.Addr().IsLoopback()
}
