package engine

import (
	"bytes"
	"compress/flate"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/stamp"
	"github.com/weirmq/weir/schedule"
)

// flated returns how many bytes flate needs for b.
func flated(t *testing.T, b []byte) int {
	t.Helper()
	var out bytes.Buffer
	w := must.Get(flate.NewWriter(&out, flate.DefaultCompression))(t)
	_, _ = w.Write(b) // to a buffer in memory
	_ = w.Close()
	return out.Len()
}

// bodiesOf returns the largest bodies of n slots for messages of the sizes.
func bodiesOf(p Payload, n int, sizes ...int) [][]byte {
	b := newBodies(p, 1, sizes)
	var out [][]byte
	for i := range n {
		var sl slot
		b.fill(&sl, uint64(i))
		out = append(out, sl.bytes[stamp.Size:sizes[len(sizes)-1]])
	}
	return out
}

func TestPayloadCompressesByConfiguredRatio(t *testing.T) {
	for _, size := range []int{256, 1000, 1024, 4096, 100_000, 1 << 20} {
		for _, saved := range []float64{0, 0.1, 0.25, 0.5, 0.75, 0.9, 1} {
			t.Run(fmt.Sprintf("%d bytes, %v", size, saved), func(t *testing.T) {
				got := bodiesOf(Payload{Kind: Compressible, Saved: saved}, 2, size)
				n := len(got[0])
				overhead := 0.05 + 24/float64(n) // flate's tables, which small messages do not repay
				one := flated(t, got[0])
				if is := 1 - float64(one)/float64(n); is < saved-overhead || is > saved+overhead {
					t.Errorf("flate saves %.3f of a message; want about %v", is, saved)
				}
				// A second message costs the same again: nothing is shared.
				two := flated(t, slices.Concat(got...))
				if saved < 1 && n < 32<<10 && float64(two) < 1.8*float64(one)-24 {
					t.Errorf("flate needs %d bytes for one message and %d for two: they share bytes", one, two)
				}
			})
		}
	}
}

func TestEveryPrefixIsCompressible(t *testing.T) {
	// With several sizes in one run, each is a prefix of the largest.
	for _, sizes := range [][]int{{256, 8192}, {64, 96, 8192}, {40, 8192}} {
		body := bodiesOf(Payload{Kind: Compressible, Saved: 0.5}, 1, sizes...)[0]
		for _, size := range sizes {
			part := body[:size-stamp.Size]
			zeros := bytes.Count(part, []byte{0})
			if is := float64(zeros) / float64(len(part)); is < 0.4 || is > 0.8 {
				t.Errorf("of sizes %v, the one of %d is zeros for %.2f; want about half", sizes, size, is)
			}
		}
	}
}

func TestRandomAndZeroPayloads(t *testing.T) {
	random := bodiesOf(Payload{}, 2, 4096)
	if n := flated(t, random[0]); n < len(random[0]) {
		t.Errorf("flate makes %d bytes of %d random ones", n, len(random[0]))
	}
	if bytes.Equal(random[0], random[1]) {
		t.Error("two slots hold the same bytes")
	}
	if zeros := bodiesOf(Payload{Kind: Zeros}, 1, 4096)[0]; len(bytes.Trim(zeros, "\x00")) > 0 {
		t.Error("zeros are not zeros")
	}
}

// A keeper is a system that verifies the bodies it receives and keeps them by sequence.
type keeper struct {
	fake
	t    *testing.T
	mu   sync.Mutex
	got  map[uint64]string // of producer 0
	errs int
}

func (k *keeper) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	if _, err := k.fake.Open(ctx, run); err != nil {
		return nil, err
	}
	k.got = map[uint64]string{}
	return k, nil
}

func (k *keeper) Producer(_ context.Context, _ driver.ProducerSpec, done driver.Completer) (driver.Producer, error) {
	return &keeping{k: k, done: done}, nil
}

type keeping struct {
	k    *keeper
	done driver.Completer
}

func (p *keeping) Publish(_ context.Context, m *driver.Message) {
	var st stamp.Stamp
	p.k.mu.Lock()
	defer p.k.mu.Unlock()
	if status := stamp.Read(m.Payload, 7, &st); status != stamp.Good {
		p.k.t.Errorf("message %d is %v", st.Seq, status)
	}
	p.k.got[st.Seq] = string(m.Payload[stamp.Size:])
	var err error
	if p.k.errs > 0 && int(st.Seq)%p.k.errs == 1 {
		err = driver.ErrAbandoned
	}
	p.done.Complete(m, err)
}
func (p *keeping) Flush(context.Context) error { return nil }
func (p *keeping) Close(context.Context) error { return nil }

// sentContents runs 110 messages, one every 10 ms, and returns their bodies in the order sent.
func sentContents(t *testing.T, k *keeper, p Payload, sizes ...int) []string {
	t.Helper()
	k.t = t
	var bodies []string
	synctest.Test(t, func(t *testing.T) {
		cfg := config(&k.fake, 100)
		cfg.Options, cfg.Mode, cfg.Payload, cfg.InFlight = k, Produce, p, 3
		cfg.Plan.Sizes = nil
		for _, s := range sizes {
			cfg.Plan.Sizes = append(cfg.Plan.Sizes, schedule.WeightedSize{Bytes: s, Weight: 1})
		}
		raw := do(t, cfg)
		expect(t, "sent", raw.All.Sent, 110)
		plan := must.Get(schedule.New(cfg.Plan))(t)
		for i := range uint64(110) {
			body := k.got[i]
			if want := plan.Size(i) - stamp.Size; len(body) != want {
				t.Errorf("message %d carries %d bytes; want %d", i, len(body), want)
			}
			bodies = append(bodies, body)
		}
	})
	return bodies
}

func TestBodyOfContentSizeIsThatContent(t *testing.T) {
	all := Payload{Kind: Contents, Contents: [][]byte{[]byte("abcd"), []byte("the quick brown fox"), []byte("wxyz"), nil}}
	want := map[int][]string{4: {"abcd", "wxyz"}, 19: {"the quick brown fox"}, 0: {""}}
	seen := map[string]int{}
	got := sentContents(t, &keeper{}, all, stamp.Size, stamp.Size+4, stamp.Size+19)
	for i, body := range got {
		seen[body]++
		turn := want[len(body)]
		if body != turn[i%len(turn)] {
			t.Errorf("message %d carries %q; want %q", i, body, turn[i%len(turn)])
		}
	}
	if len(seen) != 4 {
		t.Errorf("sent %v; want each of the contents", seen)
	}
	again := sentContents(t, &keeper{}, all, stamp.Size, stamp.Size+4, stamp.Size+19)
	if !slices.Equal(got, again) {
		t.Error("a second run of the same scenario sent other bodies")
	}
}

func TestContentIsCutOrRepeatedToSize(t *testing.T) {
	p := Payload{Kind: Contents, Contents: [][]byte{[]byte("abcd"), []byte("0123456789")}}
	for i, body := range sentContents(t, &keeper{}, p, stamp.Size+3, stamp.Size+11) {
		want := map[int][]string{3: {"abc", "dab", "012", "345", "678", "901"}, 11: {"abcdabcdabc", "01234567890"}}[len(body)]
		if body != want[i%len(want)] {
			t.Errorf("message %d carries %q; want %q", i, body, want[i%len(want)])
		}
	}
}

func TestLongContentIsSentInPieces(t *testing.T) {
	p := Payload{Kind: Contents, Contents: [][]byte{[]byte("0123456789"), []byte("ab")}}
	want := []string{"0123", "4567", "8901", "abab"} // the last piece continues with the beginning
	for i, body := range sentContents(t, &keeper{}, p, stamp.Size+4) {
		if body != want[i%len(want)] {
			t.Errorf("message %d carries %q; want %q", i, body, want[i%len(want)])
		}
	}
}

func TestPiecesAreBoundedAndHaveChecksums(t *testing.T) {
	long := make([]byte, 1<<20)
	randomize(long, rand.NewPCG(1, 2))
	sizes := []int{stamp.Size, stamp.Size + 1, stamp.Size + 1000}
	b := newBodies(Payload{Kind: Contents, Contents: [][]byte{long, long[:500]}}, 1, sizes)
	var sl slot
	b.fill(&sl, 0)
	total := 0
	for class, size := range sizes {
		total += len(b.turns[class])
		for i := range uint64(3000) {
			if crc := b.choose(&sl, i, class); crc != stamp.Checksum(sl.bytes[stamp.Size:size]) {
				t.Fatalf("message %d of %d bytes: the checksum is not that of its body", i, size)
			}
		}
	}
	if n := len(b.turns[2]); n != (1<<20+999)/1000+1 || total > mostPieces {
		t.Errorf("%d pieces of 1,000 bytes and %d in all; want 1,050 and at most %d", n, total, mostPieces)
	}
	if n := testing.AllocsPerRun(100, func() { b.choose(&sl, 5, 2); b.choose(&sl, 6, 2) }); n != 0 {
		t.Errorf("choosing a piece allocates %v times", n)
	}
}

func TestAContentSurvivesAnAbandonedSlot(t *testing.T) {
	p := Payload{Kind: Contents, Contents: [][]byte{[]byte("abcd"), []byte("wxyz")}}
	for i, body := range sentContents(t, &keeper{errs: 3}, p, stamp.Size+4) {
		if want := []string{"abcd", "wxyz"}[i%2]; body != want {
			t.Errorf("message %d carries %q; want %q", i, body, want)
		}
	}
}

func TestUnchangedBodyIsNotCopied(t *testing.T) {
	b := newBodies(Payload{Kind: Contents, Contents: [][]byte{[]byte("abcdefgh"), []byte("stuvwxyz")}}, 1, []int{stamp.Size + 4, stamp.Size + 20})
	var sl slot
	b.fill(&sl, 0)
	body := func() string { return string(sl.bytes[stamp.Size : stamp.Size+6]) }
	b.choose(&sl, 0, 1)
	copy(sl.bytes[stamp.Size:], "MARKED")
	b.choose(&sl, 2, 1)
	b.choose(&sl, 4, 0) // a shorter one of the same content is already there
	if body() != "MARKED" {
		t.Errorf("the same content was copied again: %q", body())
	}
	b.choose(&sl, 2, 0)
	if body() != "stuvED" {
		t.Errorf("another content: %q", body())
	}
	b.choose(&sl, 3, 1) // longer than what is there
	if body() != "stuvwx" {
		t.Errorf("a longer one of the same: %q", body())
	}
	if n := testing.AllocsPerRun(100, func() { b.choose(&sl, 0, 1); b.choose(&sl, 1, 1) }); n != 0 {
		t.Errorf("choosing allocates %v times", n)
	}
}

// BenchmarkContents measures the choice of a body that changes with every message.
func BenchmarkContents(b *testing.B) {
	for _, size := range []int{64, 1024, 65536} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			cs := [][]byte{bytes.Repeat([]byte("a"), size-stamp.Size), bytes.Repeat([]byte("b"), size-stamp.Size)}
			x := newBodies(Payload{Kind: Contents, Contents: cs}, 1, []int{size})
			var sl slot
			x.fill(&sl, 0)
			b.ReportAllocs()
			b.SetBytes(int64(size))
			index := uint64(0)
			for b.Loop() {
				x.choose(&sl, index, 0)
				index++
			}
		})
	}
}
