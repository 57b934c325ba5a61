package kafkaconn

import (
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir/driver"
)

// Sizes, in bytes.
const (
	MaxPayload = 8 << 20  // of a message, in topics that weir creates
	overhead   = 512      // more than the protocol adds to a message and its key
	headroom   = 64 << 10 // room for keys in topics that weir creates
)

// stickyBytes is when the sticky partitioner switches partitions: the default of the client and of
// the vendor.
const stickyBytes = 64 << 10

// Sending holds the options of producers and of the topics that they fill.
type Sending struct {
	Acks             string        `option:"acks" allowed:"0,1,all" firm:"all" help:"Which replicas have a message when it is confirmed: none asked, the leader, all in sync."`
	Idempotence      string        `option:"idempotence" allowed:"auto,on,off" help:"Have brokers drop what a retry sends twice; auto: with acks all."`
	RequestsInFlight int           `option:"requests-in-flight" min:"0" max:"1000" help:"Requests a producer has under way at each broker, without idempotence; with it 5. 0: 1."`
	Linger           time.Duration `option:"linger" min:"0s" max:"1m" help:"How long a batch waits for more messages before it is sent."`
	BatchMaxBytes    int64         `option:"batch-max-bytes" min:"512B" max:"64MiB" size:"bytes" help:"Most bytes of one batch of a partition; a single larger message still has its own."`
	Compression      string        `option:"compression" allowed:"none,gzip,snappy,lz4,zstd" help:"How batches are compressed."`
	Partitioner      string        `option:"partitioner" allowed:"sticky,round-robin,producer" help:"Where messages without a key go; producer: all of a producer's go to one partition."`
	DeliveryTimeout  time.Duration `option:"delivery-timeout" min:"1s" max:"1h" help:"How long a message is tried to be delivered."`
	MinInsync        int           `option:"min-insync" min:"0" max:"32767" firm:"2" help:"min.insync.replicas of the topics made; 0: the brokers' own."`
	FlushMessages    int64         `option:"flush-messages" min:"0" firm:"1" help:"flush.messages of the topics made: 1 syncs before each confirmation; 0: the brokers' own, never."`
}

func (s *Sending) validate() error {
	var faults driver.Faults
	if s.Idempotence == "on" && s.Acks != "all" {
		faults.Add("idempotence", "needs acks: all (auto, off)")
	}
	if s.RequestsInFlight > 0 && s.Idempotent() {
		faults.Add("requests-in-flight", "is 5 with idempotence (0, or idempotence: off)")
	}
	return faults.Join()
}

// Idempotent reports whether the producers are.
func (s *Sending) Idempotent() bool {
	return s.Idempotence == "on" || s.Idempotence == "auto" && s.Acks == "all"
}

// Settings returns the settings of topics that weir creates, by the vendor's names.
func (s *Sending) Settings() map[string]string {
	settings := map[string]string{maxBytes: strconv.Itoa(MaxPayload + headroom)}
	if s.MinInsync > 0 {
		settings[minISR] = strconv.Itoa(s.MinInsync)
	}
	if s.FlushMessages > 0 {
		settings[flushMessages] = strconv.FormatInt(s.FlushMessages, 10)
	}
	return settings
}

// longestTransaction is the brokers' default limit (transaction.max.timeout.ms).
const longestTransaction = 15 * time.Minute

// Client returns the client's options for a producer, without the partitioner; id is its
// transactional.id, "" for none.
func (s *Sending) Client(id string) []kgo.Opt {
	codec := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}[s.Compression]
	opts := []kgo.Opt{kgo.ProducerLinger(s.Linger), kgo.ProducerBatchCompression(codec), kgo.RecordDeliveryTimeout(s.DeliveryTimeout)}
	switch s.Acks {
	case "0":
		opts = append(opts, kgo.RequiredAcks(kgo.NoAck()))
	case "1":
		opts = append(opts, kgo.RequiredAcks(kgo.LeaderAck()))
	default:
		opts = append(opts, kgo.RequiredAcks(kgo.AllISRAcks()))
	}
	switch {
	case id != "":
		// The transaction of a lost producer is aborted only after messages would time out.
		return append(opts, kgo.TransactionalID(id), kgo.TransactionTimeout(min(s.DeliveryTimeout+10*time.Second, longestTransaction)))
	case s.Idempotent():
		// Otherwise messages in flight would never time out.
		return append(opts, kgo.AllowIdempotentProduceCancellation())
	}
	return append(opts, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(max(s.RequestsInFlight, 1)))
}

// partitioner returns the partitioner named by the option.
func (s *Sending) partitioner() kgo.Partitioner {
	switch s.Partitioner {
	case "producer":
		return kgo.ManualPartitioner()
	case "round-robin":
		keyed := kgo.StickyKeyPartitioner(nil)
		return kgo.BasicConsistentPartitioner(func(topic string) func(*kgo.Record, int) int {
			byKey, next := keyed.ForTopic(topic), 0
			return func(r *kgo.Record, n int) int {
				if r.Key != nil {
					return byKey.Partition(r, n)
				}
				next++
				return next % n
			}
		})
	}
	return kgo.UniformBytesPartitioner(stickyBytes, true, true, nil)
}
