package postgres

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirmq/weir/driver"
)

// nothing means no table to take from.
const nothing = -1

// taken is the result of one statement. The next one reuses its bytes.
type taken struct {
	table    int
	bytes    []byte
	spans    []span
	ids      [][]byte // as sent by the server
	ds       []driver.Delivery
	open     bool // delivered, and neither settled nor given back
	accepted bool // by Deliver
	settled  int  // how many of ds, if settled individually

	ends []int     // scratch: end of each settling transaction
	list []byte    // scratch: ids as an array
	args [1][]byte // scratch
}

// A span locates the parts of a row in bytes; each part ends where the next begins. Slices are made
// once bytes no longer grows.
type span struct {
	id, content, key, end int
	keyed                 bool
	attempts              int32
}

// add copies a row: id, content, key, attempts.
func (t *taken) add(values [][]byte) {
	s := span{id: len(t.bytes), keyed: values[2] != nil, attempts: int32(binary.BigEndian.Uint32(values[3]))}
	t.bytes = append(t.bytes, values[0]...)
	s.content = len(t.bytes)
	t.bytes = append(t.bytes, values[1]...)
	s.key = len(t.bytes)
	t.bytes = append(t.bytes, values[2]...)
	s.end = len(t.bytes)
	t.spans = append(t.spans, s)
}

// begin clears the previous result.
func (t *taken) begin(table int) {
	t.table, t.settled, t.open = table, 0, false
	t.bytes, t.spans, t.ids, t.ds = t.bytes[:0], t.spans[:0], t.ids[:0], t.ds[:0]
}

// deliveries builds ids and ds from the added rows. A row with more attempts than first was
// delivered before.
func (t *taken) deliveries(first int32) {
	for _, s := range t.spans {
		d := driver.Delivery{Payload: t.bytes[s.content:s.key:s.key], Partition: -1, Source: int32(t.table), Redelivered: s.attempts > first}
		if s.keyed {
			d.Key = t.bytes[s.key:s.end:s.end]
		}
		t.ids = append(t.ids, t.bytes[s.id:s.content:s.content])
		t.ds = append(t.ds, d)
	}
}

// array returns ids as a parameter: an array in binary format (src/backend/utils/adt/arrayfuncs.c,
// array_recv).
func (t *taken) array(ids [][]byte, kind uint32) []byte {
	b := t.list[:0]
	for _, n := range []uint32{1, 0, kind, uint32(len(ids)), 1} { // dimensions, no NULLs, type, length, first index
		b = binary.BigEndian.AppendUint32(b, n)
	}
	for _, id := range ids {
		b = binary.BigEndian.AppendUint32(b, uint32(len(id)))
		b = append(b, id...)
	}
	t.list = b
	return b
}

// exchange settles what is open, and takes from the table with that index, both in one round trip.
// failed is why nothing was taken; err means the end of the connection, and what is still open can
// then be settled on the next one.
func (r *running) exchange(table int) (failed, err error) {
	r.fuse.light()
	pipe := r.link.StartPipeline(context.Background())
	if r.taken.open {
		r.sendSettlement(pipe)
	}
	if table != nothing {
		pipe.SendQueryStatement(r.link.tables[table].take, nil, nil, binaryFormat)
		pipe.SendPipelineSync()
	}
	if err = pipe.Flush(); err == nil && r.taken.open {
		err = r.settlement(pipe)
	}
	if err == nil && table != nothing {
		r.fuse.light()
		r.taken.begin(table)
		failed, err = r.link.committed(pipe, r.taken.add)
	}
	if err == nil {
		err = pipe.Close()
	} else {
		_ = pipe.Close() // same error
	}
	switch silent := r.fuse.out(); {
	case err == nil:
	case silent:
		err = fmt.Errorf("%w: the server was silent", driver.ErrDisconnected)
	default:
		err = cause(err)
	}
	if err != nil || failed != nil || table == nothing {
		return failed, err
	}
	first := int32(1) // incremented by the take
	if r.spec.Settle == driver.SettleAuto {
		first = 0
	}
	r.taken.deliveries(first)
	return nil, nil
}

// sendSettlement sends the statements that settle or give back what is open.
func (r *running) sendSettlement(pipe *pgconn.Pipeline) {
	t, s := &r.taken, r.link.tables[r.taken.table]
	t.ends = t.ends[:0]
	if !t.accepted || r.spec.Settle != driver.SettleEach {
		statement := s.settle
		if !t.accepted {
			statement = s.giveBack
		}
		t.args[0] = t.array(t.ids, s.take.Fields[0].DataTypeOID)
		pipe.SendQueryStatement(statement, t.args[:], binaryFormat, nil)
		pipe.SendPipelineSync()
		t.ends = append(t.ends, len(t.ids))
		return
	}
	for i := t.settled; i < len(t.ids); i++ {
		t.args[0] = t.ids[i]
		pipe.SendQueryStatement(s.settle, t.args[:], binaryFormat, nil)
		if (i+1-t.settled)%r.conn.cfg.Transaction == 0 || i+1 == len(t.ids) {
			pipe.SendPipelineSync()
			t.ends = append(t.ends, i+1)
		}
	}
}

// settlement reads and reports the answers. An error means the end of the connection: the rest
// stays open.
func (r *running) settlement(pipe *pgconn.Pipeline) error {
	t := &r.taken
	for _, end := range t.ends {
		failed, err := r.link.committed(pipe, nil)
		if err != nil {
			return err
		}
		r.report(end, failed)
	}
	t.open = false
	return nil
}

// report reports the results of the settlements up to end to the sink.
func (r *running) report(end int, err error) {
	t := &r.taken
	if t.accepted {
		r.sink.Settled(t.ds[t.settled:end], err)
	}
	t.settled = end
	if err != nil {
		r.sink.Fault(fmt.Errorf("not settled: %w", err))
	}
}

// unsettled reports that what is still open remains unsettled.
func (r *running) unsettled(err error) {
	if r.taken.open {
		r.report(len(r.taken.ds), err)
		r.taken.open = false
	}
}
