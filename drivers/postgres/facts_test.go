package postgres

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
)

func TestPageGuaranteesMatchServers(t *testing.T) { served.Guarantees(t, Definition(), nil, "") }

func TestUncheckedStandbyIsNotSynchronous(t *testing.T) {
	s := served.Up(t, Definition(), 3)
	alone := &served.System{Address: s.Address[:1], Options: map[string][]string{"address": s.Address[:1]}}
	f, err := open(t, alone, false).Facts(t.Context())
	want := driver.Confirms{Guarantee: driver.Replicated, Copies: driver.CopiesQuorum, Stable: driver.StableOS}
	if err != nil || f.Confirms != want || f.Settings["fsync of standbys"] != "unknown (assumed off)" {
		t.Errorf("%+v, %v", f, err)
	}
	standby := &served.System{Options: map[string][]string{"address": s.Address[1:2]}}
	trial.Refuses(t, Definition(), standby.Options, trial.Mistake{Name: "a standby alone", Says: "is a standby"})
}

func TestAnUnloggedTableSurvivesNoCrash(t *testing.T) {
	s := served.Up(t, Definition(), 1)
	execute(t, s, `CREATE UNLOGGED TABLE jobs (id uuid PRIMARY KEY, content bytea, next_delivery timestamptz)`)
	c := open(t, s, true)
	produce(t, c, "jobs")
	f, err := c.Facts(t.Context())
	if err != nil || f.Confirms != (driver.Confirms{Guarantee: driver.Received}) || f.Settings["table"] != "unlogged" {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestSynchronousStandbyNamesAreRead(t *testing.T) {
	for text, want := range map[string]wanted{
		"":                            {},
		"  ":                          {},
		"a":                           {1, 1},
		"a, b":                        {1, 2},
		"*":                           {1, 0},
		`"*"`:                         {1, 0},
		"2 (a, b, c)":                 {2, 3},
		"FIRST 2 (a, b, c)":           {2, 3},
		"any 1(weir2,weir3)":          {1, 2},
		"ANY 1 (*)":                   {1, 0},
		`ANY 3 ("a,b", "c ""d", e)`:   {3, 3},
		`First  1  ( "with (2)" , b)`: {1, 2},
	} {
		if got := parseNames(text); got != want {
			t.Errorf("%q: %+v; want %+v", text, got, want)
		}
	}
}

func TestCommitGuarantee(t *testing.T) {
	any1 := wanted{1, 2}
	one, quorum, all := driver.CopiesOne, driver.CopiesQuorum, driver.CopiesAll
	for _, c := range []struct {
		name string
		d    durability
		want driver.Confirms
	}{
		{"asynchronous", durability{commit: "off", fsync: true}, driver.Confirms{Guarantee: driver.Received}},
		{"one node", durability{commit: "on", fsync: true}, driver.Confirms{Guarantee: driver.Persisted, Copies: one, Stable: driver.StableFsync}},
		{"one node that does not sync", durability{commit: "remote_apply"}, driver.Confirms{Guarantee: driver.Received, Copies: one, Stable: driver.StableOS}},
		{"one node of two", durability{commit: "on", fsync: true, standbys: 1}, driver.Confirms{Guarantee: driver.Received, Copies: one, Stable: driver.StableFsync}},
		{"two of two", durability{commit: "on", fsync: true, standbys: 1, synced: true, names: wanted{1, 1}}, driver.Confirms{Guarantee: driver.Persisted, Copies: all, Stable: driver.StableFsync}},
		{"two of three", durability{commit: "on", fsync: true, standbys: 2, synced: true, names: any1}, driver.Confirms{Guarantee: driver.Persisted, Copies: quorum, Stable: driver.StableFsync}},
		{"two of three, any", durability{commit: "on", fsync: true, standbys: 2, synced: true, names: wanted{1, 0}}, driver.Confirms{Guarantee: driver.Persisted, Copies: quorum, Stable: driver.StableFsync}},
		{"two of three, the third is away", durability{commit: "on", fsync: true, standbys: 1, synced: true, names: any1}, driver.Confirms{Guarantee: driver.Persisted, Copies: quorum, Stable: driver.StableFsync}},
		{"two of three, by name, and a third standby", durability{commit: "on", fsync: true, standbys: 3, synced: true, names: any1}, driver.Confirms{Guarantee: driver.Received, Copies: one, Stable: driver.StableFsync}},
		{"written by a standby", durability{commit: "remote_write", fsync: true, standbys: 2, synced: true, names: any1}, driver.Confirms{Guarantee: driver.Replicated, Copies: quorum, Stable: driver.StableOS}},
		{"the primary does not sync", durability{commit: "on", standbys: 2, synced: true, names: any1}, driver.Confirms{Guarantee: driver.Replicated, Copies: quorum, Stable: driver.StableOS}},
		{"a standby does not sync", durability{commit: "on", fsync: true, standbys: 2, names: any1}, driver.Confirms{Guarantee: driver.Replicated, Copies: quorum, Stable: driver.StableOS}},
		{"local, with synchronous standbys", durability{commit: "local", fsync: true, standbys: 2, synced: true, names: any1}, driver.Confirms{Guarantee: driver.Received, Copies: one, Stable: driver.StableFsync}},
		{"three of three", durability{commit: "on", fsync: true, standbys: 2, synced: true, names: wanted{2, 2}}, driver.Confirms{Guarantee: driver.Persisted, Copies: all, Stable: driver.StableFsync}},
		{"unlogged", durability{commit: "on", fsync: true, standbys: 2, synced: true, names: any1, unlogged: true}, driver.Confirms{Guarantee: driver.Received}},
	} {
		if diff := cmp.Diff(c.want, page.Confirmations.Of(c.d.known())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
