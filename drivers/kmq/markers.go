package kmq

import (
	"encoding/binary"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Markers have KMQ's format: the key is the message's partition and offset; the value says start,
// with the milliseconds that processing may take, or end
// (https://github.com/softwaremill/kmq/tree/master/core/src/main/java/com/softwaremill/kmq).
const (
	keySize   = 4 + 8
	endKind   = 0
	startKind = 1
)

// countHeader counts a message's redeliveries.
const countHeader = "kmq-redelivery-count"

// putKey writes the key of a message's markers to b, which has keySize bytes.
func putKey(b []byte, partition int32, offset int64) {
	binary.BigEndian.PutUint32(b, uint32(partition))
	binary.BigEndian.PutUint64(b[4:], uint64(offset))
}

func startValue(after time.Duration) []byte {
	return binary.BigEndian.AppendUint64([]byte{startKind}, uint64(after.Milliseconds()))
}

// A marker is the content of a marker topic's record.
type marker struct {
	offset int64 // of the message, in the partition with the marker's partition number
	start  bool
}

// readMarker parses a marker; false if it is not one.
func readMarker(r *kgo.Record) (marker, bool) {
	if len(r.Key) != keySize || len(r.Value) == 0 || int32(binary.BigEndian.Uint32(r.Key)) != r.Partition {
		return marker{}, false
	}
	m := marker{offset: int64(binary.BigEndian.Uint64(r.Key[4:])), start: r.Value[0] == startKind}
	return m, m.start || r.Value[0] == endKind
}

// sentAgain returns how often a message was redelivered before.
func sentAgain(r *kgo.Record) int {
	for i := range r.Headers {
		if h := &r.Headers[i]; h.Key == countHeader {
			switch len(h.Value) {
			case 1:
				return int(h.Value[0])
			case 4:
				return int(binary.BigEndian.Uint32(h.Value))
			}
		}
	}
	return 0
}

// again returns a message for redelivery: in its partition, with its count incremented.
func again(r *kgo.Record) *kgo.Record {
	n := sentAgain(r) + 1
	count := []byte{byte(n)}
	if n > 127 { // limit of a Java byte
		count = binary.BigEndian.AppendUint32(nil, uint32(n))
	}
	headers := make([]kgo.RecordHeader, 0, len(r.Headers)+1)
	for _, h := range r.Headers {
		if h.Key != countHeader {
			headers = append(headers, h)
		}
	}
	return &kgo.Record{
		Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value,
		Headers: append(headers, kgo.RecordHeader{Key: countHeader, Value: count}),
	}
}
