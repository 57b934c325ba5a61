package serve

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed" // the frame of a page and its style
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/index"
	"github.com/weirmq/weir/internal/quantity"
	"github.com/weirmq/weir/internal/view/layout"
	"github.com/weirmq/weir/result"
)

//go:embed page.tmpl
var pageFrame string

//go:embed list.js
var listScript string

//go:embed page.css
var ownStyle string

// perPage is the number of rows in a list.
const perPage = 100

// betweenReads is between two looks of a browser that has no run to show yet.
const betweenReads = time.Second

// running is how recently the files of a run without a result must have changed for it to count as running.
const running = 10 * time.Second

// A frame is the data of a page of this package.
type frame struct {
	Title    string
	Errors   []string
	Next     string // link of an otherwise empty page
	More     string // another link; "": none
	MoreText string
	List     *listView
	Live     *liveView
	Begins   bool   // it waits for a run that can be stopped
	Said     string // by that run
	Start    *startView
	Starts   bool // has a form that starts runs
	Footer   string
}

// A listView is the list of runs.
type listView struct {
	Query              index.Query
	Systems, Scenarios []index.Choice
	Sorts, Statuses    []string
	Heads              []headView // columns
	Total              int        // rows
	Runs               int
	Found              string // what the rows are, in words
	Rows               []rowView
	From, To           int
	Newer, Older       string // URLs; "": none
	History            string // URL of the history of these runs
	Searches           []rowView
	Folders            []string // folders of the rows
	Reading            bool     // there may be more

	// For published pages.
	Static              bool
	Tested              []testedView
	Suites              []link
	Series, Comparisons []link
	Apart               []string // folders that are not compared, with reasons
	Search              index.Search
	Note                string
}

// A headView is the head of a column.
type headView struct {
	Text, Class string
	Link        string // URL of the list in this order; "": the column has none
	Sorted      string // value of aria-sort; "": the list is in another order
}

// A rowView is a formatted row of the list.
type rowView struct {
	index.Row
	About               string // the scenario, or what a search or a suite is of, where the name does not say it
	Toggle              string // URL that opens or closes the row of several
	Inside              bool   // of an open row
	Marks               bool   // can be marked for a comparison
	LostText, FailText  string
	Rates               bool // its headline figure is the rate, not a percentile
	Link                string
	When, State, Class  string
	Objectives          string
	Sent, Came          string
	Median, High, Tails string
}

// frame renders a page.
func (s *Server) frame(f frame) (answer, error) {
	t, err := template.New("page").Funcs(template.FuncMap{
		"count": func(n int) string { return quantity.Count(uint64(n)) },
		"none": func(cell string) string { // the class of a cell that a phone leaves out
			if cell == "" || cell == "-" {
				return " none"
			}
			return ""
		},
	}).Parse(pageFrame)
	if err != nil {
		return answer{}, fmt.Errorf("the frame of a page: %w", err)
	}
	if f.Footer == "" {
		f.Footer = "weir " + s.o.Weir
	}
	style := string(layout.Style()) + ownStyle
	sum := sha256.Sum256([]byte(style))
	policy := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'self'"
	script := ""
	switch {
	case f.List != nil && f.List.Static:
		script = listScript
	case f.Live != nil:
		script = liveScript
		policy += "; connect-src 'self'"
	}
	f.Starts = s.o.Starter != nil
	if script != "" {
		sum := sha256.Sum256([]byte(script))
		policy += "; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	f.Title = layout.Printable(f.Title)
	var b bytes.Buffer
	err = t.Execute(&b, map[string]any{"F": f, "Policy": policy, "Style": template.CSS(style), "Script": template.JS(script)}) //nolint:gosec // G203: files of this program
	return answer{body: b.Bytes(), policy: policy + "; frame-ancestors 'none'"}, err
}

// list is the page of all runs.
func (s *Server) list(r *http.Request) (answer, error) {
	so, going, err := s.look.fresh(r.Context())
	if err != nil {
		return answer{}, refuse(http.StatusInternalServerError, "%w", s.unrooted(err))
	}
	v := r.URL.Query()
	q := queryOf(v)
	q.Most = perPage
	if from, err := strconv.Atoi(v.Get("from")); err == nil {
		q.From = max(0, from)
	}
	q.Open = v.Get("open")
	l, err := s.listing(r, q)
	wrong := errors.Is(err, index.ErrFilter)
	if err != nil && !wrong {
		return answer{}, err
	}
	if wrong { // the form is there to mend it
		a, err := s.frame(frame{Title: "Runs", Errors: lines(err), List: l})
		a.status = http.StatusBadRequest
		return a, err
	}
	l.Reading = going
	switch {
	case going:
		l.Note = "weir looks for new runs. Load the page again to see them."
		if so.Read > 0 || l.Total == 0 {
			l.Note = fmt.Sprintf("weir is reading the folder: %s read so far. Load the page again to see more.", quantity.Counted(so.Read, "run", "runs"))
		}
		if len(l.Rows) == 0 && len(filters(q)) == 0 { // nothing is marked or typed yet
			l.Note = fmt.Sprintf("weir is reading the folder: %s read so far. The list follows.", quantity.Counted(so.Read, "run", "runs"))
			a, err := s.frame(frame{Title: "Runs", List: l})
			a.refresh = betweenReads
			return a, err
		}
	case so.Beyond:
		l.Note = "The folder holds more runs than weir lists. Serve a part of it."
	case len(so.Refused) > 0:
		l.Note = "weir may not read these folders: " + layout.Printable(strings.Join(so.Refused, ", ")) + "."
	}
	return s.frame(frame{Title: "Runs", List: l})
}

// listing fills a list.
func (s *Server) listing(r *http.Request, q index.Query) (*listView, error) {
	l := &listView{Query: q, Sorts: index.Sorts(), Statuses: []string{"valid", "suspect", "invalid", "interrupted", "fail", "open"}}
	var err error
	if l.Systems, l.Scenarios, err = s.o.Index.Choices(r.Context()); err != nil {
		return nil, err
	}
	q.Grouped, q.Kinds = true, []index.Kind{index.Ended, index.Unended, index.Capacity, index.Suite}
	found, err := s.o.Index.List(r.Context(), q)
	if err != nil {
		return l, err
	}
	l.Total, l.Runs = found.Total, found.Of[index.Ended]+found.Of[index.Unended]
	l.Found = quantity.Counted(l.Runs, "run", "runs")
	if n := found.Of[index.Capacity]; n > 0 {
		l.Found += ", " + quantity.Counted(n, "search", "searches") + " for a capacity"
	}
	if n := found.Of[index.Suite]; n > 0 {
		l.Found += ", " + quantity.Counted(n, "suite", "suites")
	}
	for _, row := range found.Rows {
		x := viewOf(row)
		if row.Group != "" && row.Kind.Runs() || row.Members > 0 {
			x.group(q)
		}
		l.Rows = append(l.Rows, x)
		if parent := path.Dir(row.Dir); parent != "." && !slices.Contains(l.Folders, parent) {
			l.Folders = append(l.Folders, parent)
		}
	}
	of := map[string]int{} // rows of several by folder: a folder is a side if it holds one series
	for _, x := range l.Rows {
		if x.Members > 0 {
			of[x.Dir]++
		}
	}
	for i := range l.Rows {
		x := &l.Rows[i]
		x.Marks = x.Marks || x.Members > 0 && x.Kind.Runs() && x.Dir != "." && of[x.Dir] == 1
	}
	if len(l.Rows) > 0 {
		l.From, l.To = q.From+1, q.From+len(l.Rows)
	}
	at := func(from int) string {
		v := filters(q)
		if from > 0 {
			v.Set("from", strconv.Itoa(from))
		}
		return "/?" + v.Encode()
	}
	l.History = "/history?" + filters(q).Encode()
	l.Heads = heads(q)
	if q.From > 0 {
		l.Newer = at(max(0, q.From-perPage))
	}
	if q.From+len(l.Rows) < l.Total {
		l.Older = at(q.From + perPage)
	}
	return l, nil
}

// group completes a row of several, or one inside of it.
func (v *rowView) group(q index.Query) {
	if v.Members == 0 {
		v.Inside = true
		return
	}
	open := filters(q)
	if q.Open != v.Group {
		open.Set("open", v.Group)
	}
	if q.From > 0 {
		open.Set("from", strconv.Itoa(q.From))
	}
	v.Toggle = "/?" + open.Encode()
	if v.Kind.Runs() {
		v.Link = v.Toggle
	}
}

// heads are the columns of the list. A click on the order that the list has gives the newest first.
func heads(q index.Query) []headView {
	order := cmp.Or(q.Sort, "newest")
	var out []headView
	for _, h := range []struct{ text, class, sort, sorted string }{
		{"run", "left", "name", "ascending"},
		{"system", "left", "system", "ascending"},
		{"began", "left", "newest", "descending"},
		{"verdict", "left", "verdict", "descending"},
		{"objectives", "left", "", ""},
		{"lost", "", "lost", "descending"},
		{"failed", "", "failed", "descending"},
		{"offered", "", "rate", "descending"},
		{"delivered", "", "delivered", "descending"},
		{"p50", "first", "p50", "ascending"},
		{"p99", "", "p99", "ascending"},
		{"p99.9", "", "p99.9", "ascending"},
		{"of", "left", "", ""},
		{"guarantee", "left", "", ""},
	} {
		v := headView{Text: h.text, Class: h.class}
		if h.sort != "" {
			to := h.sort
			switch {
			case h.sort == "newest" && order == "newest":
				to, v.Sorted = "oldest", "descending"
			case h.sort == "newest" && order == "oldest":
				v.Sorted = "ascending"
			case order == h.sort:
				to, v.Sorted = "newest", h.sorted
			}
			q := q
			q.Sort = to
			v.Link = "/?" + filters(q).Encode()
		}
		out = append(out, v)
	}
	return out
}

// filters returns a query's filters as URL parameters.
func filters(q index.Query) url.Values {
	v := url.Values{}
	for name, value := range map[string]string{"q": q.Words, "system": q.System, "scenario": q.Scenario, "verdict": q.Status, "sort": q.Sort, "below": q.Below} {
		if value != "" {
			v.Set(name, value)
		}
	}
	return v
}

// viewOf formats a row.
func viewOf(r index.Row) rowView {
	v := rowView{Row: r, Marks: r.Kind.Runs() && r.Members == 0 && r.Wrong == "", LostText: "-", FailText: "-", When: "unknown", State: strings.ToUpper(r.Status), Objectives: r.SLO, Sent: "-", Came: "-", Median: "-", High: "-", Tails: "-"}
	for _, s := range []*string{&v.Name, &v.Scenario, &v.Driver, &v.Server, &v.Guarantee, &v.Wrong} {
		*s = layout.Printable(*s)
	}
	if !strings.HasPrefix(v.Name, v.Scenario) {
		v.About = v.Scenario
	}
	if !r.Started.IsZero() {
		v.When = r.Started.UTC().Format("2006-01-02 15:04")
	}
	v.Class = map[string]string{"valid": "good", "suspect": "warn"}[r.Status]
	page := "/run"
	switch {
	case r.Wrong != "":
		v.State, v.Class = "unreadable", "bad"
	case r.Kind == index.Unended && time.Since(r.Touched) < running:
		v.State, v.Class = "running", "good"
	case r.Kind == index.Unended:
		v.State, v.Class = "no result", "dim"
	case v.Class == "":
		v.Class = "bad"
	}
	switch r.Kind {
	case index.Capacity:
		page = "/capacity"
		if r.Wrong == "" {
			v.State, v.Class = "search", "dim"
		}
	case index.Suite:
		page = "/suite"
		if r.Wrong == "" {
			v.State, v.Class = "suite", "dim"
		}
	case index.Unended:
		page = "/live"
	case index.Ended:
		if r.Wrong == "" {
			v.LostText, v.FailText = quantity.Count(r.Lost), quantity.Count(r.Failed)
			v.Rates = r.Rate == nil || r.Mode == result.ModeConsume || r.Mode == result.ModeBacklog
		}
	}
	v.Link = page + "?" + url.Values{"dir": {r.Dir}}.Encode()
	for _, x := range []struct {
		from *float64
		to   *string
	}{{r.Rate, &v.Sent}, {r.Received, &v.Came}} {
		if x.from != nil {
			*x.to = quantity.Rate(*x.from)
		}
	}
	if r.Kind == index.Capacity && r.Wrong == "" {
		if r.Rate != nil {
			v.Sent = "kept " + v.Sent
		}
		if r.Received != nil {
			v.Came = "not " + v.Came
		}
	}
	for _, x := range []struct {
		from *result.Value
		to   *string
	}{{r.P50, &v.Median}, {r.P99, &v.High}, {r.P999, &v.Tails}} {
		if x.from != nil {
			*x.to = x.from.Text(func(v float64) string { return quantity.Time(int64(v)) })
		}
	}
	return v
}
