package cli

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// putWithin bounds sending a result folder.
const putWithin = 10 * time.Minute

// putTo returns the URL to which the result is sent, of --put or WEIR_PUT; nil: none. Messages do not show it: a
// presigned URL is a secret.
func (c *runCommand) putTo(e *env) (*url.URL, error) {
	name, to := "--put", c.Put
	if v, ok := e.Env("WEIR_PUT"); ok && v != "" && to == nil {
		name, to = "WEIR_PUT", &v
	}
	if to == nil {
		return nil, nil
	}
	u, err := url.Parse(strings.TrimSpace(*to))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%s: is not a URL (such as https://HOST/PATH)", name)
	}
	return u, nil
}

// put sends a folder to a URL as a .tar.gz, once, by HTTP PUT.
func put(ctx context.Context, to *url.URL, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, putWithin)
	defer cancel()
	// Packed first, since S3 refuses a PUT without its length.
	packed, err := os.CreateTemp("", "weir-put-")
	if err != nil {
		return err
	}
	defer func() { _ = packed.Close(); _ = os.Remove(packed.Name()) }()
	if err := pack(packed, dir); err != nil {
		return err
	}
	length, err := packed.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if _, err := packed.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, to.String(), packed)
	if err != nil {
		return errors.New("the URL is wrong")
	}
	r.ContentLength = length
	answer, err := http.DefaultClient.Do(r)
	if wrong, ok := errors.AsType[*url.Error](err); ok {
		return wrong.Err // without the URL
	}
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode >= 300 {
		said, _ := io.ReadAll(io.LimitReader(answer.Body, 300))
		return fmt.Errorf("%s answers %s: %s", to.Host, answer.Status, strings.Join(strings.Fields(string(said)), " "))
	}
	return nil
}

// pack writes a folder's files as a .tar.gz.
func pack(w io.Writer, dir string) error {
	zipped := gzip.NewWriter(w)
	files := tar.NewWriter(zipped)
	return errors.Join(files.AddFS(os.DirFS(dir)), files.Close(), zipped.Close())
}
