package kmq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/kafkaconn"
)

const (
	atOnce    = 500              // messages redelivered together
	readLimit = 10 * time.Second // for reading them, and for reading open markers
)

// redeliver republishes the messages at offsets, which are sorted, and writes their end markers. It
// returns the offsets that failed.
func (t *tracker) redeliver(ctx context.Context, link *kafkaconn.Link, partition int32, offsets []int64) (left []int64, err error) {
	for part := range slices.Chunk(offsets, atOnce) {
		l, e := t.some(ctx, link, partition, part)
		left, err = append(left, l...), errors.Join(err, e)
	}
	return left, err
}

func (t *tracker) some(ctx context.Context, link *kafkaconn.Link, partition int32, offsets []int64) (left []int64, err error) {
	firsts, err := link.Offsets(ctx, t.queue.topic, kafkaconn.Earliest)
	if err != nil {
		return offsets, err
	}
	there, _ := slices.BinarySearch(offsets, firsts[partition])
	gone, wanted := slices.Clone(offsets[:there]), offsets[there:]
	var rs []*kgo.Record
	if len(wanted) > 0 {
		var missing []int64
		rs, missing, left, err = t.read(ctx, partition, wanted)
		gone = append(gone, missing...)
	}
	for _, offset := range gone {
		t.conn.fault(fmt.Errorf("kmq: topic %s, partition %d: the message at offset %d was removed before it could be sent again", t.queue.topic, partition, offset))
	}
	var ends []*kgo.Record
	if len(rs) > 0 {
		sent := make([]*kgo.Record, len(rs))
		for i, r := range rs {
			sent[i] = again(r)
		}
		results := link.ProduceSync(ctx, sent...)
		of := map[*kgo.Record]int64{}
		for i, r := range rs {
			of[sent[i]] = r.Offset
		}
		for _, res := range results {
			if res.Err != nil {
				left, err = append(left, of[res.Record]), errors.Join(err, res.Err)
				continue
			}
			ends = append(ends, t.end(partition, of[res.Record]))
		}
	}
	for _, offset := range gone {
		ends = append(ends, t.end(partition, offset))
	}
	if len(ends) == 0 {
		return left, err
	}
	for _, res := range link.ProduceSync(ctx, ends...) {
		if res.Err != nil { // then it is delivered a third time
			m, _ := readMarker(res.Record)
			left, err = append(left, m.offset), errors.Join(err, res.Err)
		}
	}
	return left, err
}

// end returns a message's end marker.
func (t *tracker) end(partition int32, offset int64) *kgo.Record {
	key := make([]byte, keySize)
	putKey(key, partition, offset)
	return &kgo.Record{Topic: t.queue.markers, Partition: partition, Key: key, Value: []byte{endKind}}
}

// read reads a partition's messages at offsets, which are sorted. gone are the offsets that no
// longer exist, left those that could not be read in time.
func (t *tracker) read(ctx context.Context, partition int32, offsets []int64) (rs []*kgo.Record, gone, left []int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	from := map[string]map[int32]kgo.Offset{t.queue.topic: {partition: kgo.NewOffset().At(offsets[0])}}
	wanted := offsets
	err = t.conn.scan(ctx, from, func(r *kgo.Record) bool {
		for len(wanted) > 0 && wanted[0] < r.Offset {
			gone, wanted = append(gone, wanted[0]), wanted[1:]
		}
		if len(wanted) > 0 && wanted[0] == r.Offset {
			rs, wanted = append(rs, r), wanted[1:]
		}
		return len(wanted) > 0
	})
	return rs, gone, wanted, err
}

// scan reads partitions with its own client until more returns false.
func (c *conn) scan(ctx context.Context, from map[string]map[int32]kgo.Offset, more func(*kgo.Record) bool) error {
	link, err := c.Connect(ctx, c.Run, "reading again", nil,
		kgo.ConsumePartitions(from), kgo.FetchMaxWait(c.cfg.FetchMaxWait), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer link.Kill()
	for {
		fetches := link.PollFetches(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("not read within %v: %w", readLimit, driver.ErrTimeout)
		}
		for _, e := range fetches.Errors() {
			if !kerr.IsRetriable(e.Err) {
				return fmt.Errorf("reading topic %s, partition %d: %w", e.Topic, e.Partition, kafkaconn.Cause(e.Err))
			}
		}
		for it := fetches.RecordIter(); !it.Done(); {
			if !more(it.Next()) {
				return nil
			}
		}
	}
}

// commit commits positions of the client's group.
func commit(ctx context.Context, client *kgo.Client, at map[string]map[int32]kgo.EpochOffset) (err error) {
	var one error
	err = kafkaconn.CommitPositions(ctx, client, at, func(_ string, partition int32, e error) {
		one = fmt.Errorf("partition %d: %w", partition, kafkaconn.Cause(e))
	})
	return cmp.Or(err, one)
}
