package view

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/export"
	"github.com/weirmq/weir/internal/view/layout"
)

// A Format is an output format for results.
type Format string

// The formats of this package; package export has others.
const (
	FormatText     Format = "text"
	FormatMarkdown Format = "markdown"
	FormatHTML     Format = "html"
	FormatCSV      Format = "csv"
	FormatJSON     Format = "json"
	FormatOMB      Format = "omb"
)

// Formats returns the names of the formats.
func Formats() []string {
	return []string{string(FormatText), string(FormatMarkdown), string(FormatHTML), "benchstat", string(FormatCSV), string(FormatJSON), "junit", string(FormatOMB), "openmetrics"}
}

// ParseFormat returns the format of a name. Its error suggests the nearest name.
func ParseFormat(name string) (Format, error) {
	f, allowed := strings.ToLower(name), strings.Join(Formats(), ", ")
	switch {
	case slices.Contains(Formats(), f):
		return Format(f), nil
	case f == "hgrm":
		return "", fmt.Errorf("%s is not in this build yet (%s)", f, allowed)
	}
	if meant := cmp.Or(FormatMeant(f), driver.Nearest(f, Formats())); meant != "" {
		return "", fmt.Errorf("%q is not known, did you mean %s? (%s)", name, meant, allowed)
	}
	return "", fmt.Errorf("%q is not known (%s)", name, allowed)
}

// FormatMeant returns the format for a name used by other programs; "" if unknown.
func FormatMeant(word string) string {
	switch word {
	case "prometheus", "prom", "metrics":
		return "openmetrics"
	case "xml", "xunit":
		return "junit"
	case "md":
		return string(FormatMarkdown)
	case "htm", "page":
		return string(FormatHTML)
	case "txt", "table", "plain":
		return string(FormatText)
	}
	return ""
}

// FormatOfFile returns the format for a file's name.
func FormatOfFile(name string) (Format, error) {
	switch ext := strings.ToLower(filepath.Ext(name)); ext {
	case ".md", ".markdown":
		return FormatMarkdown, nil
	case ".html", ".htm":
		return FormatHTML, nil
	case ".csv":
		return FormatCSV, nil
	case ".json":
		return FormatJSON, nil
	case ".xml":
		return "", fmt.Errorf("tests of a build server are a format of their own: add --format junit (%s)", strings.Join(Formats(), ", "))
	case ".hgrm", ".pdf":
		// A file with such a name is not meant to be text.
		return "", fmt.Errorf("there is no report in the format of %s (.md, .html, .csv, .json, .txt, or --format %s)", ext, strings.Join(Formats(), "|"))
	}
	return FormatText, nil
}

// ErrOneRun reports several runs for a format that holds one.
var ErrOneRun = errors.New("one run a file")

// Write writes runs, and the searches they belong to, in a format. path turns a folder's name into its
// path.
func Write(b *bytes.Buffer, f Format, entries []Entry, o Options, path func(string) string) error {
	several := len(entries) > 1 || len(o.Searches) > 0 || o.Rest > 0
	switch {
	case f == FormatOMB && len(entries) > 1:
		return fmt.Errorf("%s is %w, and there are %d (name one folder)", f, ErrOneRun, len(entries))
	case f == FormatOMB:
		return export.OMB(b, path(entries[0].Dir))
	case f == FormatJSON:
		return objects(b, entries, o.Searches)
	case slices.Contains(export.Formats(), string(f)):
		runs := make([]export.Run, len(entries))
		for i, e := range entries {
			runs[i] = export.Run{Dir: e.Dir, Result: e.Result}
		}
		return export.Write(b, string(f), runs)
	case several && f == FormatHTML:
		return OverviewHTML(b, entries, o)
	case f == FormatHTML:
		return HTML(b, entries[0], o)
	case several && f == FormatMarkdown:
		return OverviewMarkdown(b, entries, o)
	case several:
		return Overview(b, entries, o)
	}
	o.Dir = entries[0].Dir
	if f == FormatMarkdown {
		return Markdown(b, entries[0], o)
	}
	return Text(b, entries[0], o)
}

// objects writes folders as JSON: the search of each folder that has one, else the runs.
func objects(b *bytes.Buffer, entries []Entry, searches []*Search) error {
	for _, s := range searches {
		if err := layout.JSON(b, s.Report); err != nil {
			return err
		}
	}
	for _, x := range entries {
		if slices.ContainsFunc(searches, func(s *Search) bool { return strings.HasPrefix(x.Dir, s.Dir+string(filepath.Separator)) }) {
			continue // one of its probes
		}
		if err := layout.JSON(b, x.Result); err != nil {
			return err
		}
	}
	return nil
}
