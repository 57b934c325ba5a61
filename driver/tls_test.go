package driver_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/must"
)

func TestCertificateErrorNamesItsOption(t *testing.T) {
	dir := t.TempDir()
	none, text := filepath.Join(dir, "none"), filepath.Join(dir, "text")
	must.Do(t, os.WriteFile(text, []byte("no certificate"), 0o600))
	for _, c := range []struct{ name, ca, cert, key, option string }{
		{"no file", "", "", "", ""},
		{"an authority's file that is missing", none, "", "", "tls.ca"},
		{"an authority's file without a certificate", text, "", "", "tls.ca"},
		{"a certificate that is missing", "", none, none, "tls.cert"},
		{"a certificate that is none", "", text, text, "tls.cert"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conf, err := driver.TLSFiles(c.ca, c.cert, c.key, true)
			var of *driver.OptionError
			switch {
			case c.option == "" && (err != nil || !conf.InsecureSkipVerify || conf.RootCAs != nil || conf.Certificates != nil):
				t.Errorf("%+v, %v", conf, err)
			case c.option != "" && (!errors.As(err, &of) || of.Name != c.option):
				t.Errorf("%v; want a fault of %s", err, c.option)
			}
		})
	}
}

func TestCertificateRequiresKey(t *testing.T) {
	for _, c := range []struct {
		o      driver.TLSOptions
		option string
	}{
		{driver.TLSOptions{}, ""},
		{driver.TLSOptions{CA: "c", Insecure: true}, ""},
		{driver.TLSOptions{Cert: "c", Key: "k"}, ""},
		{driver.TLSOptions{Cert: "c"}, "tls.cert"},
		{driver.TLSOptions{Key: "k"}, "tls.cert"},
	} {
		err := c.o.Validate()
		var of *driver.OptionError
		if c.option == "" && err != nil || c.option != "" && (!errors.As(err, &of) || of.Name != c.option) {
			t.Errorf("%+v: %v; want a fault of %q", c.o, err, c.option)
		}
	}
}
