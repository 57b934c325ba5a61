package wire

import (
	"io"
	"net"
	"testing"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

// BenchmarkSegment measures the processor time that a round trip of 1 KiB over loopback takes, of both
// ends: without programs, with programs that do not record, and with programs that record its four
// segments. The three take turns.
func BenchmarkSegment(b *testing.B) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(b)
	defer func() { _ = l.Close() }()
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}
	}()
	c := must.Get(net.Dial("tcp", l.Addr().String()))(b)
	defer func() { _ = c.Close() }()
	const trips = 1000
	data := make([]byte, 1024)
	turn := func() float64 {
		before := processorTime()
		for range trips {
			must.Get(c.Write(data))(b)
			must.Get(io.ReadFull(c, data))(b)
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
		must.Do(b, p.attach())
		idle += turn()
		must.Do(b, p.detach())
		must.Do(b, p.enable(true))
		on += turn()
		w, before := newWindow(testRun, 0), processorTime()
		w.data = kept[:0]
		must.Do(b, p.read(w.add))
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
		must.Do(b, p.enable(true))
		must.Do(b, p.enable(false))
	}
	b.ReportMetric(float64(processorTime()-before)/float64(b.N), "cpu-ns/op")
}
