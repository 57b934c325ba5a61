package wire

import (
	"io"
	"net"
	"testing"

	"github.com/weirmq/weir/internal/needs"
)

// BenchmarkSegment measures the processor time that a round trip of 1 KiB over loopback takes, of both
// ends: without programs, with programs that do not record, and with programs that record its four
// segments. The three take turns.
func BenchmarkSegment(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	const trips = 1000
	data := make([]byte, 1024)
	turn := func() float64 {
		before := processorTime()
		for range trips {
			if _, err := c.Write(data); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(c, data); err != nil {
				b.Fatal(err)
			}
		}
		return float64(processorTime()-before) / trips
	}
	turn()
	var kept []byte
	var bare, idle, on, reading float64
	for range b.N {
		bare += turn()
		p, err := openTap()
		if err != nil {
			needs.Host(b, "ebpf", err)
		}
		p.scan()
		if err := p.attach(); err != nil {
			b.Fatal(err)
		}
		idle += turn()
		if err := p.detach(); err != nil {
			b.Fatal(err)
		}
		if err := p.enable(true); err != nil {
			b.Fatal(err)
		}
		on += turn()
		w, before := newWindow(testRun, 0), processorTime()
		w.data = kept[:0]
		if err := p.read(w.add); err != nil {
			b.Fatal(err)
		}
		w.order()
		kept = w.data
		reading += float64(processorTime()-before) / float64(max(w.number, 1))
		_ = p.close()
	}
	n := float64(b.N)
	b.ReportMetric(bare/n, "bare-ns")
	b.ReportMetric((idle-bare)/n, "attached-ns")
	b.ReportMetric((on-idle)/n/4, "segment-ns")
	b.ReportMetric(reading/n, "read-ns")
}

// BenchmarkAttach measures the processor time of starting and stopping to record.
func BenchmarkAttach(b *testing.B) {
	p, err := openTap()
	if err != nil {
		needs.Host(b, "ebpf", err)
	}
	defer func() { _ = p.close() }()
	before := processorTime()
	for b.Loop() {
		if err := p.enable(true); err != nil {
			b.Fatal(err)
		}
		if err := p.enable(false); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(processorTime()-before)/float64(b.N), "cpu-ns/op")
}
