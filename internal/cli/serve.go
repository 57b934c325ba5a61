package cli

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/history"
	"github.com/weirmq/weir/internal/index"
	"github.com/weirmq/weir/internal/metrics"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/serve"
	"github.com/weirmq/weir/internal/userfile"
)

// serveCommand is `weir serve`.
type serveCommand struct {
	Dir       string   `arg:"" name:"dir" help:"Folder that holds the folders of runs, at most four levels deep."`
	Listen    *string  `placeholder:"[HOST]:PORT" help:"Where to listen. Without a host only this one can read it. Port 0 takes a free one (default: 127.0.0.1:8080)."`
	Name      []string `placeholder:"NAME" help:"Another name by which browsers call this server, such as that of a proxy; may be repeated. Addresses, localhost, the name of the host and those of the certificate always work."`
	Publish   *string  `placeholder:"DIR" help:"Write the same as static pages for any web host into this folder, which must not exist, and end."`
	Markdown  bool     `help:"With --publish: write Markdown and pictures, as for a repository. These are pages of runs, searches and suites, and README.md, which lists them."`
	Start     bool     `help:"Let pages start runs, with a token that weir prints. A scenario can run any program: who has the token acts as you. On other addresses than loopback this needs TLS."`
	TokenFile *string  `placeholder:"FILE" help:"Ask for the token in this file, of 20 characters or more. With --start, default: a new one at each start."`
	TLSCert   *string  `name:"tls-cert" placeholder:"FILE" help:"Serve HTTPS with this certificate."`
	TLSKey    *string  `name:"tls-key" placeholder:"FILE" help:"Key of the certificate."`
	Index     *string  `placeholder:"FILE" help:"File of the index, which weir makes (default: in the user's cache folder)."`
}

// Help is what kong adds to the verb's help.
func (serveCommand) Help() string {
	return "Lists the runs of a folder in a browser, with search, filters, comparisons, overlays and histories, and follows runs in progress. It only reads, unless --start says otherwise. " +
		"The list comes from an index. weir makes it from the folders, and makes it again where it is missing or out of date. " +
		"With --publish it writes the same as static pages. " +
		"Ctrl-C ends it. Do not measure on the same host while somebody reads: that takes processor time."
}

const defaultListen = "127.0.0.1:8080"

// run serves until a signal comes.
func (c *serveCommand) run(ctx context.Context, e *env) Code {
	if err := c.checkNames(); err != nil {
		e.complainEach(err)
		return Usage
	}
	at, err := c.address()
	token, tokenErr := c.token(e)
	config, tlsErr := c.tls(e)
	if err := errors.Join(err, c.checkDir(e), c.checkPublish(e), tokenErr, tlsErr); err != nil {
		e.complainEach(err)
		return Usage
	}
	ctx, stop := e.stoppable(ctx)
	defer stop()
	x, err := c.index(ctx, e)
	if err != nil {
		return e.refused(err)
	}
	if c.Publish != nil {
		return c.publish(ctx, e, x)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", at)
	if err != nil {
		return e.refused(errors.Join(fmt.Errorf("--listen: %w (another port, or 0 for a free one)", err), x.Close()))
	}
	if c.Start && !admission.OnLoopback(l.Addr().String()) && config == nil {
		return e.refused(errors.Join(fmt.Errorf("--start: others could read the token on its way to %s (--listen 127.0.0.1:PORT, or --tls-cert and --tls-key)", l.Addr()), l.Close(), x.Close()))
	}
	o := serve.Options{Index: x, Weir: buildinfo.Version(), Names: c.Name, Token: token, TLS: config != nil, Log: e.log}
	o.Changes = history.OpenMemo(e.cached(changesFile), o.Weir)
	if config != nil {
		o.Names = append(o.Names, config.Certificates[0].Leaf.DNSNames...)
	}
	if c.Start {
		o.Starter = serve.NewStarter(e.Self, e.Dir, e.Environ)
	}
	s := serve.New(ctx, o)
	scheme, query := "http", ""
	if config != nil {
		scheme, l = "https", tls.NewListener(l, config)
	}
	if token != "" && c.TokenFile == nil {
		query = "?token=" + token
	}
	e.say("weir: serving %s at %s://%s/%s", c.Dir, scheme, l.Addr(), query)
	switch {
	case c.TokenFile != nil:
		e.say("weir: add ?token= and the token of the file to the address, at the first visit")
	case !admission.OnLoopback(l.Addr().String()) && token == "":
		e.say("weir: everyone who reaches this address can read the results (--token-file FILE asks for a token)")
	}
	err = errors.Join(s.Answer(ctx, l), x.Close())
	e.keep(o.Changes)
	if err != nil {
		return e.failed(fmt.Errorf("serving: %w", err))
	}
	return OK
}

// checkPublish refuses a folder that cannot be created, and flags without effect there.
func (c *serveCommand) checkPublish(e *env) error {
	switch {
	case c.Publish == nil && c.Markdown:
		return errors.New("--markdown: the form of static pages (with --publish DIR)")
	case c.Publish == nil:
		return nil
	}
	if c.Listen != nil || c.Name != nil || c.Start || c.TokenFile != nil || c.TLSCert != nil || c.TLSKey != nil {
		return errors.New("--publish: writes pages and listens nowhere (without --listen, --name, --start, --token-file, --tls-cert and --tls-key)")
	}
	if err := e.outlet().Check(c.Publish); err != nil {
		return errors.New(strings.NewReplacer("--out:", "--publish:", "a file that does not exist yet", "a folder that does not exist yet").Replace(err.Error()))
	}
	return nil
}

// checkNames refuses names that a script left empty.
func (c *serveCommand) checkNames() error {
	var errs []error
	for _, x := range []struct {
		flag    string
		given   *string
		allowed string
	}{
		{"--index", c.Index, "a file that does not exist yet, or one that weir serve made"},
		{"--token-file", c.TokenFile, "a file with the token"},
		{"--tls-cert", c.TLSCert, "a file with the certificate"},
		{"--tls-key", c.TLSKey, "a file with the key"},
	} {
		if x.given != nil && *x.given == "" {
			errs = append(errs, fmt.Errorf("%s: is empty (%s)", x.flag, x.allowed))
		}
	}
	return errors.Join(errs...)
}

// publish writes static pages.
func (c *serveCommand) publish(ctx context.Context, e *env, x *index.Index) Code {
	s := serve.New(ctx, serve.Options{Index: x, Weir: buildinfo.Version(), Log: e.log})
	said, err := s.Publish(ctx, e.path(*c.Publish), c.Markdown)
	s.Wait()
	err = errors.Join(err, x.Close())
	switch {
	case ctx.Err() != nil:
		return e.because(Interrupted, errors.New("interrupted: nothing is published"))
	case err != nil:
		return e.failed(err)
	}
	for _, line := range said.Skipped {
		e.say("weir: not published: %s", line)
	}
	if said.Left > 0 {
		e.say("weir: %d older runs are in the list and have no page of their own", said.Left)
	}
	begin := filepath.Join(*c.Publish, map[bool]string{false: "index.html", true: "README.md"}[c.Markdown])
	if said.Pages == 0 {
		e.say("weir: wrote only %s: no run in %s can be shown", begin, c.Dir)
		return OK
	}
	e.say("weir: wrote %s; begin with %s", quantity.Counted(said.Pages, "page", "pages"), begin)
	return OK
}

// address returns the address to listen on.
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

// token is the secret that browsers must present; "": none.
func (c *serveCommand) token(e *env) (string, error) {
	if c.TokenFile == nil {
		if !c.Start {
			return "", nil
		}
		return rand.Text(), nil
	}
	token, err := serve.ReadToken(e.path(*c.TokenFile))
	if err != nil {
		err = fmt.Errorf("--token-file: %w", err)
	}
	return token, err
}

// tls returns the HTTPS configuration; nil: plain HTTP.
func (c *serveCommand) tls(e *env) (*tls.Config, error) {
	switch {
	case c.TLSCert == nil && c.TLSKey == nil:
		return nil, nil
	case c.TLSCert == nil || c.TLSKey == nil:
		return nil, errors.New("--tls-cert and --tls-key: one is missing (both, or none)")
	}
	cert, err := userfile.Read(e.path(*c.TLSCert), 1<<20)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert: %w", err)
	}
	key, err := userfile.Read(e.path(*c.TLSKey), 1<<20)
	if err != nil {
		return nil, fmt.Errorf("--tls-key: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert and --tls-key: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}, nil
}

// checkDir refuses what is not a folder.
func (c *serveCommand) checkDir(e *env) error {
	const allowed = "a folder that holds the folders of runs"
	if strings.Contains(c.Dir, "://") {
		return fmt.Errorf("an argument is a URL, not a folder (%s)", allowed) // not shown: it may hold a password
	}
	if c.Dir == "" {
		return fmt.Errorf("the name of the folder is empty (%s)", allowed)
	}
	switch st, err := os.Stat(e.path(c.Dir)); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: there is no such folder (%s)", c.Dir, allowed)
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
		return index.Open(ctx, dir, e.path(*c.Index))
	}
	if _, err := broker.CacheDir(e.Env); err != nil {
		return nil, fmt.Errorf("%w; or name the index with --index FILE", err)
	}
	file, err := index.FileIn(e.cached(""), dir)
	if err != nil {
		return nil, fmt.Errorf("%w (--index FILE puts it elsewhere)", err)
	}
	return index.Open(ctx, dir, file)
}
