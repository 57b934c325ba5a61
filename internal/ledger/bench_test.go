package ledger

import "testing"

// BenchmarkMemoryOverHundredMillionMessages takes some twenty seconds an
// operation; it fails where memory is not flat.
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

// The cost of Delivered alone: the merge between the rounds is not timed.
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

// The cost of Merge alone, an event.
func BenchmarkMerge(b *testing.B) {
	for _, bench := range []struct {
		name               string
		streams, consumers int
		block              int // so many in a row to one consumer
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
