package ledger

import (
	"testing"

	"github.com/weirmq/weir/internal/must"
)

// BenchmarkMemoryOverHundredMillionMessages takes some twenty seconds per operation; it fails if
// memory grows.
func BenchmarkMemoryOverHundredMillionMessages(b *testing.B) {
	for b.Loop() {
		flat(b, 100_000_000)
	}
}

func BenchmarkSent(b *testing.B) {
	l := New(Config{Streams: 1})
	b.ReportAllocs()
	seq := uint64(0)
	for b.Loop() {
		l.Sent(0, seq, int64(seq), int64(seq))
		seq++
	}
}

func BenchmarkConfirmedInOrder(b *testing.B) {
	l := New(Config{Streams: 1})
	b.ReportAllocs()
	seq := uint64(0)
	for b.Loop() {
		l.Confirmed(0, seq)
		seq++
	}
}

func BenchmarkConfirmedInPairsSwapped(b *testing.B) {
	l := New(Config{Streams: 1})
	b.ReportAllocs()
	seq := uint64(0)
	for b.Loop() {
		l.Confirmed(0, seq^1)
		seq++
	}
}

// The cost of Delivered alone: the merges between rounds are not timed.
func BenchmarkDelivered(b *testing.B) {
	l := New(Config{Streams: 1, Consumers: []int{1}})
	r := l.Reader(0, 0)
	const round = 1 << 14
	b.ReportAllocs()
	for i := 0; i < b.N; i++ {
		e := Event{Seq: uint64(i), At: int64(i)}
		r.Delivered(&e)
		if i%round == round-1 {
			b.StopTimer()
			l.Merge(nil)
			b.StartTimer()
		}
	}
}

// The cost of Merge alone, per event.
func BenchmarkMerge(b *testing.B) {
	for _, bench := range []struct {
		name               string
		streams, consumers int
		block              int // consecutive messages to one consumer
	}{
		{"one consumer", 1, 1, 1},
		{"25 consumers in turn", 1, 25, 1},
		{"25 consumers, blocks of 100", 1, 25, 100},
		{"10,000 streams, 25 consumers in turn", 10_000, 25, 1},
	} {
		b.Run(bench.name, func(b *testing.B) {
			l := New(Config{Streams: bench.streams, Consumers: []int{bench.consumers}})
			const round = 1 << 14
			first := func(int, *Event) {}
			fill := func(from int) {
				for i := from; i < from+round; i++ {
					e := Event{Stream: uint32(i % bench.streams), Seq: uint64(i / bench.streams), At: int64(i)}
					l.Reader(0, i/bench.block%bench.consumers).Delivered(&e)
				}
			}
			b.ReportAllocs()
			b.StopTimer()
			for done := 0; done < b.N; done += round {
				fill(done)
				b.StartTimer()
				l.Merge(first)
				b.StopTimer()
			}
		})
	}
}

// partBench is a process that sends and receives streams in which one message in holeEvery is late
// or lost at the first of two processes; 0: none.
func partBench(streams, messages, holeEvery int) *Ledger {
	l := New(Config{Streams: streams, Consumers: []int{1}, From: 1_000_000})
	for seq := range uint64(messages) {
		for stream := range uint32(streams) {
			due := int64(seq)*int64(streams)*1000 + int64(stream)*1000
			if seq == 2 {
				l.MeasureFrom(stream, seq)
			}
			l.Sent(stream, seq, due, due+3000)
			l.Confirmed(stream, seq)
			if holeEvery == 0 || seq%uint64(holeEvery) != 1 {
				l.Reader(0, 0).Delivered(&Event{Stream: stream, Seq: seq, Due: due, Start: due + 3000, At: due + 90_000})
			}
		}
		if seq%16 == 0 || streams > 1000 {
			l.Merge(nil)
		}
	}
	l.Merge(nil)
	return l
}

// The cost of what a process does once a second, of decoding its bytes, and of joining those of 50
// processes with separate streams.
func BenchmarkPart(b *testing.B) {
	for _, bench := range []struct {
		name                         string
		streams, messages, holeEvery int
	}{
		{"10,000 streams in order", 10_000, 100, 0},
		{"25 streams with 400 holes each", 25, 40_000, 100},
		{"25 streams with 10,000 holes each", 25, 40_000, 4},
	} {
		l := partBench(bench.streams, bench.messages, bench.holeEvery)
		var p Part
		l.Part(&p)
		form, _ := p.AppendBinary(nil)
		b.Run(bench.name+"/part and form", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				l.Part(&p)
				form, _ = p.AppendBinary(form[:0])
			}
			b.ReportMetric(float64(len(form)), "form-bytes")
		})
		b.Run(bench.name+"/read", func(b *testing.B) {
			b.ReportAllocs()
			q := Part{Limits: Limits{bench.streams, 1}}
			for b.Loop() {
				must.Do(b, q.UnmarshalBinary(form))
			}
		})
	}
}

func BenchmarkJoinOf50(b *testing.B) {
	for _, bench := range []struct {
		name                         string
		streams, messages, holeEvery int // of each process
	}{
		{"200 streams each, in order", 200, 400, 0},
		{"25 streams each, with 400 holes", 25, 40_000, 100},
	} {
		b.Run(bench.name, func(b *testing.B) {
			const processes = 50
			var parts []*Part
			for i := range processes {
				l := partBench(bench.streams, bench.messages, bench.holeEvery)
				p := new(Part)
				l.Part(p)
				p.streams *= processes // its own begin at i*bench.streams
				for k := range p.sent {
					p.sent[k].stream += uint32(i * bench.streams)
				}
				for k := range p.subs[0].got {
					p.subs[0].got[k].stream += uint32(i * bench.streams)
				}
				parts = append(parts, travel(b, p))
			}
			b.ReportAllocs()
			for b.Loop() {
				must.Get(Join(parts, nil))(b)
			}
		})
	}
}
