package admission

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/placement"
)

// joining is a join that is in order, but for what change does to it before the proof
// and spoil after it.
func joining(t *testing.T, d *Authenticator, x Token, change, spoil func(*Request)) Request {
	t.Helper()
	nonce := must.Get(d.Challenge("agent-1"))(t)
	j := Request{Agent: "agent-1", Version: "v1", Labels: map[string]string{"zone": "a", "rack": "7"}, About: []byte(`{"cores":4}`), Nonce: nonce}
	if change != nil {
		change(&j)
	}
	j.Prove(x)
	if spoil != nil {
		spoil(&j)
	}
	return j
}

func TestJoinAuthorization(t *testing.T) {
	k := keep(t)
	good, revoked, short, other := token(t, k, time.Hour), token(t, k, time.Hour), token(t, k, time.Minute), token(t, keep(t), time.Hour)
	must.Do(t, k.Revoke(revoked.ID()))
	clock := noon
	d := NewAuthenticator(k, "v1", func() time.Time { return clock })
	nonce := func(agent string) string {
		return must.Get(d.Challenge(agent))(t)
	}
	for _, tt := range []struct {
		name          string
		token         Token
		change, spoil func(*Request)
		wait          time.Duration
		is            error
		want          string
	}{
		{name: "all is in order", token: good},
		{name: "in time", token: good, wait: NonceLife - 1},
		{name: "too late", token: good, wait: NonceLife, is: ErrExpired},
		{name: "another version", token: good, change: func(j *Request) { j.Version = "v2" }, is: ErrVersion, want: `the agent's is "v2", the coordinator's "v1"`},
		{name: "no token", is: ErrToken},
		{name: "a token of another keep", token: other, is: ErrToken},
		{name: "a token that is revoked", token: revoked, is: ErrRevoked},
		{name: "a token that ended", token: short, wait: 0, change: func(*Request) { clock = noon.Add(time.Minute) }, is: ErrExpired},
		{name: "a nonce that was not given", token: good, change: func(j *Request) { j.Nonce = strings.Repeat("0", 32) }, is: ErrReplayed},
		{name: "a nonce of another agent", token: good, change: func(j *Request) { j.Nonce = nonce("agent-2") }, is: ErrReplayed},
		{name: "another nonce than was proved", token: good, spoil: func(j *Request) { j.Nonce = nonce("agent-1") }, is: ErrToken},
		{name: "another token than was proved", token: good, spoil: func(j *Request) { j.TokenID = revoked.public() }, is: ErrToken},
		{name: "a later end than was proved", token: short, spoil: func(j *Request) { j.TokenID = short.id + ".99999999999" }, is: ErrToken},
		{name: "another label than was proved", token: good, spoil: func(j *Request) { j.Labels["zone"] = "b" }, is: ErrToken},
		{name: "no labels, which were proved", token: good, spoil: func(j *Request) { j.Labels = nil }, is: ErrToken},
		{name: "another word about it than was proved", token: good, spoil: func(j *Request) { j.About = nil }, is: ErrToken},
		{name: "malformed", token: good, change: func(j *Request) { j.Agent = "Agent 1" }, is: ErrMalformed},
	} {
		clock = noon
		j := joining(t, d, tt.token, tt.change, tt.spoil)
		clock = clock.Add(tt.wait)
		if tt.name == "a token that ended" {
			// Its nonce is of a minute before: give it a fresh one.
			j = joining(t, d, tt.token, nil, nil)
		}
		err := d.Admit(j)
		if !errors.Is(err, tt.is) || tt.want != "" && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v; want %v %s", tt.name, err, tt.is, tt.want)
		}
		if tt.is == nil || errors.Is(tt.is, ErrToken) {
			if err := d.Admit(j); !errors.Is(err, ErrReplayed) {
				t.Errorf("%s, once more: %v; want %v", tt.name, err, ErrReplayed)
			}
		}
		clock = noon
		if err := d.Admit(joining(t, d, good, nil, nil)); err != nil {
			t.Errorf("after that a join that is in order: %v", err)
		}
	}
	open := NewAuthenticator(nil, "v1", nil)
	j := joining(t, open, Token{}, nil, nil)
	if err := open.Admit(j); err != nil {
		t.Errorf("no token where none is asked for: %v", err)
	}
	if err := open.Admit(j); !errors.Is(err, ErrReplayed) {
		t.Errorf("the same again: %v; want %v", err, ErrReplayed)
	}
}

func TestReplayedJoinIsAdmittedOnce(t *testing.T) {
	k := keep(t)
	d := NewAuthenticator(k, "v1", func() time.Time { return noon })
	j := joining(t, d, token(t, k, time.Hour), nil, nil)
	var admitted, replayed atomic.Int32
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			switch err := d.Admit(j); {
			case err == nil:
				admitted.Add(1)
			case errors.Is(err, ErrReplayed):
				replayed.Add(1)
			}
		})
	}
	wg.Wait()
	if admitted.Load() != 1 || replayed.Load() != 31 {
		t.Errorf("%d admitted, %d replayed; want 1, 31", admitted.Load(), replayed.Load())
	}
}

func TestAuthenticatorNonceMemoryIsBounded(t *testing.T) {
	clock := noon
	d := NewAuthenticator(nil, "v1", func() time.Time { return clock })
	first := must.Get(d.Challenge("agent-1"))(t)
	for i := range Outstanding - 1 {
		must.Get(d.Challenge(fmt.Sprintf("agent-%d", i)))(t)
	}
	if _, err := d.Challenge("agent-x"); !errors.Is(err, ErrBusy) {
		t.Errorf("one more: %v; want %v", err, ErrBusy)
	}
	if err := d.Admit(Request{Agent: "agent-1", Version: "v1", Nonce: first}); err != nil {
		t.Errorf("the first: %v", err)
	}
	if _, err := d.Challenge("agent-x"); err != nil {
		t.Errorf("in its place: %v", err)
	}
	clock = clock.Add(NonceLife)
	if _, err := d.Challenge("agent-y"); err != nil || len(d.nonces) != 1 {
		t.Errorf("after all ended: %v, %d remembered; want 1", err, len(d.nonces))
	}
	if _, err := d.Challenge("Agent"); !errors.Is(err, ErrMalformed) {
		t.Errorf("a name that is none: %v; want %v", err, ErrMalformed)
	}
}

// plain is a message that is in order.
func plain(change func(map[string]any)) []byte {
	m := map[string]any{"agent": "a", "version": "v1", "nonce": strings.Repeat("0a", nonceSize)}
	if change != nil {
		change(m)
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return b
}

func TestMalformedMessagesAreRejected(t *testing.T) {
	labels := func(n, size int) map[string]any {
		m := map[string]any{}
		for i := range n {
			m[fmt.Sprintf("l%d", i)] = strings.Repeat("x", size)
		}
		return m
	}
	for _, tt := range []struct {
		name string
		b    []byte
		bad  bool
	}{
		{"in order", plain(nil), false},
		{"the most of all", plain(func(m map[string]any) {
			m["agent"], m["version"], m["labels"], m["about"] = strings.Repeat("a", 64), strings.Repeat("v", 64), labels(32, 64), make([]byte, AboutSize)
		}), false},
		{"empty", nil, true},
		{"null", []byte("null"), true},
		{"a list", []byte("[]"), true},
		{"cut off", plain(nil)[:20], true},
		{"more after it", append(plain(nil), '1'), true},
		{"two of them", append(plain(nil), plain(nil)...), true},
		{"too large", append(plain(nil), bytes.Repeat([]byte(" "), RequestSize)...), true},
		{"an unknown field", plain(func(m map[string]any) { m["allow"] = "broker" }), true},
		{"a number for a name", plain(func(m map[string]any) { m["agent"] = 1 }), true},
		{"no name", plain(func(m map[string]any) { delete(m, "agent") }), true},
		{"a long name", plain(func(m map[string]any) { m["agent"] = strings.Repeat("a", 65) }), true},
		{"a name that is a subject", plain(func(m map[string]any) { m["agent"] = "a.>" }), true},
		{"no version", plain(func(m map[string]any) { m["version"] = "" }), true},
		{"a version of several lines", plain(func(m map[string]any) { m["version"] = "v1\nv2" }), true},
		{"too many labels", plain(func(m map[string]any) { m["labels"] = labels(33, 1) }), true},
		{"a long label", plain(func(m map[string]any) { m["labels"] = labels(1, 65) }), true},
		{"a label as placements have them", plain(func(m map[string]any) { m["labels"] = map[string]any{"Disk.Kind": "NVMe_2"} }), false},
		{"a label that none selects", plain(func(m map[string]any) { m["labels"] = map[string]any{"zone=a": "b"} }), true},
		{"a label that rings", plain(func(m map[string]any) { m["labels"] = map[string]any{"zone": "\a"} }), true},
		{"a label of no UTF-8", bytes.Replace(plain(func(m map[string]any) { m["labels"] = map[string]any{"zone": "QQ"} }), []byte("QQ"), []byte{0xff}, 1), true},
		{"too much about it", plain(func(m map[string]any) { m["about"] = make([]byte, AboutSize+1) }), true},
		{"no nonce", plain(func(m map[string]any) { delete(m, "nonce") }), true},
		{"a nonce in capitals", plain(func(m map[string]any) { m["nonce"] = strings.Repeat("0A", nonceSize) }), true},
		{"a token without proof", plain(func(m map[string]any) { m["token"] = "0123456789abcdef.1" }), true},
		{"a proof without token", plain(func(m map[string]any) { m["proof"] = strings.Repeat("0", 64) }), true},
		{"deep", []byte(strings.Repeat(`{"labels":`, 5000)), true},
	} {
		_, err := Decode(tt.b)
		if errors.Is(err, ErrMalformed) != tt.bad || !tt.bad && err != nil {
			t.Errorf("%s: %v; want malformed: %v", tt.name, err, tt.bad)
		}
	}
	j := Request{Agent: "A"}
	if _, err := j.Encode(); !errors.Is(err, ErrMalformed) {
		t.Errorf("encoding what is none: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	k := must.Get(Open(f.TempDir(), noon))(f)
	x := must.Get(k.New(time.Hour, noon))(f)
	j := Request{Agent: "a-1", Version: "v1", Labels: map[string]string{"zone": "a"}, About: []byte("x"), Nonce: strings.Repeat("0a", nonceSize)}
	j.Prove(x)
	b := must.Get(j.Encode())(f)
	f.Add(b)
	f.Add(plain(nil))
	f.Add([]byte(`{"agent":"a","AGENT":"b","nonce":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		d := NewAuthenticator(k, "v1", func() time.Time { return noon })
		j, err := Decode(b)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Errorf("%q: %v", b, err)
			}
			return
		}
		if len(j.Labels) > Labels || len(j.About) > AboutSize || placement.CheckName(j.Agent) != nil {
			t.Errorf("%q is beyond the bounds", b)
		}
		// The door gave no nonce.
		if err := d.Admit(j); err == nil {
			t.Errorf("%q was admitted", b)
		}
		again, err := j.Encode()
		if err != nil {
			t.Fatalf("%q cannot be encoded again: %v", b, err)
		}
		l, err := Decode(again)
		if err != nil || l.Agent != j.Agent || l.Version != j.Version || !maps.Equal(l.Labels, j.Labels) || !slices.Equal(l.About, j.About) ||
			l.Nonce != j.Nonce || l.TokenID != j.TokenID || l.Proof != j.Proof {
			t.Errorf("%q is %+v, and then %+v, %v", b, j, l, err)
		}
	})
}

// TestDifferentBuildsAreRejected: a build that names no revision is only like its own file.
func TestDifferentBuildsAreRejected(t *testing.T) {
	const one, two, hint = "devel@linux/amd64:000000000001", "devel@linux/amd64:000000000002", "copy one to all hosts"
	for _, tt := range []struct {
		agent, coordinator string
		refused, hinted    bool
	}{
		{one, one, false, false},
		{one, two, true, true},
		{"v1.2.0", "v1.2.1", true, false},
		{one, "devel@darwin/arm64:000000000002", false, false},
	} {
		d := NewAuthenticator(nil, tt.coordinator, nil)
		nonce, err := d.Challenge("a")
		if err != nil {
			t.Fatal(err)
		}
		err = d.Admit(Request{Agent: "a", Version: tt.agent, Nonce: nonce})
		if errors.Is(err, ErrVersion) != tt.refused || err != nil && strings.Contains(err.Error(), hint) != tt.hinted || err != nil && !tt.refused {
			t.Errorf("%s at %s: %v", tt.agent, tt.coordinator, err)
		}
	}
}
