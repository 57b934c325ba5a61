package postgres

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
)

func TestTablesOfTheUsers(t *testing.T) {
	s := served.Up(t, Definition(), 1)
	execute(t, s, `CREATE SCHEMA "Other";
CREATE TABLE jobs (id uuid PRIMARY KEY, content bytea NOT NULL, next_delivery timestamptz NOT NULL);
CREATE TABLE "Other"."My ""Jobs" (id bigserial PRIMARY KEY, content bytea NOT NULL, next_delivery timestamptz NOT NULL, attempts integer NOT NULL DEFAULT 0, more text);
CREATE TABLE texts (id uuid PRIMARY KEY, content text NOT NULL, next_delivery timestamptz NOT NULL);
CREATE TABLE stranger (name text);
CREATE VIEW view AS SELECT * FROM jobs`)
	for _, name := range []string{"jobs", "public.jobs", `Other.My "Jobs`} {
		t.Run(name, func(t *testing.T) {
			c := open(t, s, true)
			p, f := produce(t, c, name)
			texts := trial.Numbered("m", 300)
			f.Send(t, p, name, texts...)
			if n, err := c.Backlog(t.Context(), "s", []string{name}); n != 300 || err != nil {
				t.Errorf("backlog %d, %v", n, err)
			}
			x := consume(t, c, driver.ConsumerSpec{Destinations: []string{name}}, nil)
			trial.Eventually(func() bool { _, _, settled, _ := x.look(); return settled >= len(texts) })
			got, _, _, faults := x.look()
			if diff := cmp.Diff(texts, got); diff != "" || len(faults) > 0 {
				t.Errorf("faults %v (-sent +delivered):\n%s", faults, diff)
			}
			if n, err := c.Backlog(t.Context(), "s", []string{name}); n != 0 || err != nil {
				t.Errorf("backlog %d, %v", n, err)
			}
		})
	}
	for name, says := range map[string]string{
		"nosuch":    "there is no table of this name",
		"view":      "there is no table of this name",
		"a\x00b":    "no name that a table may have",
		"texts":     "column content is text",
		"stranger":  "column id is missing",
		`jobs"; --`: "there is no table of this name",
	} {
		t.Run("refused: "+strings.ReplaceAll(name, "\x00", "NUL"), func(t *testing.T) {
			c := open(t, s, true)
			trial.NoProducer(t, c, driver.ProducerSpec{Destinations: []string{name}}, name, driver.ErrUnsupported, says)
			trial.NoConsumer(t, c, driver.ConsumerSpec{Subscription: "s", Destinations: []string{name}}, "consumer of "+name, driver.ErrUnsupported, "")
		})
	}
}

func TestNamesOfTablesAreSafe(t *testing.T) {
	s := served.Up(t, Definition(), 1)
	execute(t, s, `CREATE TABLE victim (n integer)`)
	c := open(t, s, false)
	long := strings.Repeat("é", 60)
	names := []string{`x"; DROP TABLE victim; --`, "Über 'quoted' $1 \\", "d", "D", long + "1", long + "2"}
	declare(t, c, names...)
	p, f := produce(t, c, names...)
	for i, name := range names {
		trial.Send(t, p, name, trial.Numbered("m", i+1)[i])
	}
	f.MustConfirm(t, trial.Numbered("m", len(names))...)
	for _, name := range names {
		if n, err := c.Backlog(t.Context(), "s", []string{name}); n != 1 || err != nil {
			t.Errorf("%q: %d rows, %v; want its own one", name, n, err)
		}
	}
	execute(t, s, `SELECT n FROM victim`)
	if left := execute(t, s, `SELECT count(*) FROM pg_class WHERE relname LIKE 'weir-%' AND octet_length(relname) > 63`); left[0][0] != "0" {
		t.Errorf("%s names were cut", left[0][0])
	}
}

func TestBrokenControlConnectionIsReopened(t *testing.T) {
	s := served.Up(t, Definition(), 1)
	c := open(t, s, false)
	declare(t, c, "d")
	ask := []func() error{
		func() error { _, err := c.Backlog(t.Context(), "s", []string{"d"}); return err },
		func() error { _, err := c.Facts(t.Context()); return err },
		func() error { return c.Delete(t.Context(), driver.Destination{Name: "d"}) },
	}
	for i, f := range ask {
		execute(t, s, `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name LIKE '%control'`)
		if err := f(); err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
	trial.Must(t, s.Restart)
	if _, err := c.Facts(t.Context()); err != nil {
		t.Errorf("after a restart: %v", err)
	}
}

func TestIdentifiersDiffer(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"a", strings.Repeat("a", 50), strings.Repeat("a", 60), strings.Repeat("a", 61), strings.Repeat("é", 40)} {
		id := identifier("weir-run", name, len(indexEnding))
		if len(id)+len(indexEnding) > identifierBytes || strings.ToValidUTF8(id, "") != id || seen[id] != "" {
			t.Errorf("%q (%d bytes), as of %q", id, len(id), seen[id])
		}
		seen[id] = name
	}
}
