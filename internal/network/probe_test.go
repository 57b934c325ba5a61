package network

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"
	"time"
)

// simulated returns what measure finds for one direction in virtual time, probed with the trains of one set
// of conditions and behaving according to another.
func simulated(asked, does Conditions, seed uint64) (m measured) {
	send := func(t train) (all []arrival) {
		l := newOneWay(does, seed)
		// A probe repeats its number, so that a changed bit is detected as by a checksum.
		probe := func(i int) []byte {
			b := binary.BigEndian.AppendUint32(nil, uint32(i))
			return bytes.Repeat(b, (t.payload+heads)/4)
		}
		arrive := func(until time.Duration) {
			for at, any := l.next(); any && at <= until; at, any = l.next() {
				b := l.arrive(at)
				if i := int(binary.BigEndian.Uint32(b)); i < t.n && bytes.Equal(b, probe(i)) {
					all = append(all, arrival{i, at, at - time.Duration(i)*t.gap})
				}
				l.done(b)
			}
		}
		for i := range t.n {
			at := time.Duration(i) * t.gap
			arrive(at)
			l.take(at, probe(i))
		}
		arrive(math.MaxInt64)
		return all
	}
	m.take(send(asked.delays()))
	if t := asked.shares(); t.n > 0 {
		m.shares = t.n
		m.count(send(t), asked.Latency/2)
	}
	if t := asked.rate(); t.n > 0 {
		all := send(t)
		m.rate, m.rated = bits(all, (t.payload+heads)/4*4), len(all)
	}
	return m
}

// someConditions returns conditions of every kind, alone and combined.
func someConditions() map[string]Conditions {
	const ms = time.Millisecond
	all := map[string]Conditions{
		"nothing":                  {},
		"latency":                  {Latency: 20 * ms},
		"loss":                     {Loss: 0.1},
		"much loss":                {Latency: 5 * ms, Loss: 0.4, Bandwidth: 2_000_000},
		"duplication":              {Latency: 10 * ms, Duplicate: 0.2, Bandwidth: 5_000_000},
		"reordering":               {Latency: 50 * ms, Reorder: 0.05},
		"reordering with jitter":   {Latency: 50 * ms, Jitter: 10 * ms, Reorder: 0.1},
		"corruption":               {Latency: 10 * ms, Corrupt: 0.15, Bandwidth: 20_000_000},
		"little bandwidth":         {Latency: 60 * ms, Bandwidth: 30_000},
		"much bandwidth":           {Latency: ms, Bandwidth: 100_000_000},
		"all at once":              {Latency: 30 * ms, Jitter: 3 * ms, Distribution: Normal, Loss: 0.05, Duplicate: 0.05, Corrupt: 0.02, Bandwidth: 10_000_000},
		"jitter with little width": {Latency: 100 * ms, Jitter: 20 * ms, Bandwidth: 256_000},
	}
	for d, word := range Distributions() {
		all["jitter, "+word] = Conditions{Latency: 40 * ms, Jitter: 10 * ms, Distribution: Distribution(d)}
	}
	for _, p := range Profiles() {
		all["to, "+p.Name], all["from, "+p.Name] = p.To, p.From
	}
	return all
}

func TestConformingDirectionPassesVerification(t *testing.T) {
	const seeds = 20
	for name, c := range someConditions() {
		for seed := range uint64(seeds) {
			m := simulated(c, c, seed)
			if err := c.verify(&m, new(measured)); err != nil {
				t.Errorf("%s, seed %d: %v", name, seed, err)
			}
		}
	}
}

func TestDeviatingDirectionFailsVerification(t *testing.T) {
	const ms = time.Millisecond
	for name, x := range map[string]struct{ asked, does Conditions }{
		"less latency":                 {Conditions{Latency: 20 * ms}, Conditions{Latency: 19 * ms}},
		"more latency":                 {Conditions{Latency: 20 * ms}, Conditions{Latency: 22 * ms}},
		"no latency":                   {Conditions{Latency: 20 * ms}, Conditions{}},
		"no jitter":                    {Conditions{Latency: 50 * ms, Jitter: 20 * ms}, Conditions{Latency: 50 * ms}},
		"five times as much jitter":    {Conditions{Latency: 90 * ms, Jitter: 8 * ms, Distribution: Normal}, Conditions{Latency: 90 * ms, Jitter: 40 * ms, Distribution: Normal}},
		"half of the loss":             {Conditions{Loss: 0.1}, Conditions{Loss: 0.05}},
		"no loss":                      {Conditions{Loss: 0.02}, Conditions{}},
		"no duplicates":                {Conditions{Duplicate: 0.1}, Conditions{}},
		"no reordering":                {Conditions{Latency: 20 * ms, Reorder: 0.1}, Conditions{Latency: 20 * ms}},
		"no corruption":                {Conditions{Corrupt: 0.1}, Conditions{}},
		"four fifths of the bandwidth": {Conditions{Bandwidth: 10_000_000}, Conditions{Bandwidth: 8_000_000}},
		"a quarter more bandwidth":     {Conditions{Bandwidth: 10_000_000}, Conditions{Bandwidth: 12_500_000}},
		"no bound to the bandwidth":    {Conditions{Bandwidth: 64_000}, Conditions{}},
	} {
		for seed := range uint64(5) {
			m := simulated(x.asked, x.does, seed)
			if err := x.asked.verify(&m, new(measured)); err == nil {
				t.Errorf("%s, seed %d: it is not refused", name, seed)
			}
		}
	}
}
