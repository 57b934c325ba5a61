package kafkaconn

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir/driver"
)

// Sizes, in bytes.
const (
	MaxPayload = 8 << 20  // of a message, in the topics that weir makes
	overhead   = 512      // more than what the protocol puts around a message and its key
	headroom   = 64 << 10 // for keys, of the topics that weir makes
)

// stickyBytes is when the sticky partitioner turns to another partition: the
// client's default, and the vendor's.
const stickyBytes = 64 << 10

// Sending is the options of producers, and of the topics that they fill. They are
// options of the same names of every driver that embeds them.
type Sending struct {
	Acks             string        `option:"acks" allowed:"0,1,all" help:"Which replicas have a message when it is confirmed: none asked, the leader, all in sync."`
	Idempotence      string        `option:"idempotence" allowed:"auto,on,off" help:"Have brokers drop what a retry sends twice; auto: with acks all."`
	RequestsInFlight int           `option:"requests-in-flight" help:"Requests a producer has under way at each broker, without idempotence; with it 5. 0: 1."`
	Linger           time.Duration `option:"linger" help:"How long a batch waits for more messages before it is sent."`
	BatchMaxBytes    int64         `option:"batch-max-bytes" size:"bytes" help:"Most bytes of one batch of a partition; a single larger message still has its own."`
	Compression      string        `option:"compression" allowed:"none,gzip,snappy,lz4,zstd" help:"How batches are compressed."`
	Partitioner      string        `option:"partitioner" allowed:"sticky,round-robin,producer" help:"Where messages without a key go; producer: all of a producer's go to one partition."`
	DeliveryTimeout  time.Duration `option:"delivery-timeout" help:"How long a message is tried to be delivered."`
	MinInsync        int           `option:"min-insync" help:"min.insync.replicas of the topics made; 0: the brokers' own."`
	FlushMessages    int64         `option:"flush-messages" help:"flush.messages of the topics made: 1 syncs before each confirmation; 0: the brokers' own, never."`
}

// SendingDefaults returns the options' defaults.
func SendingDefaults() Sending {
	return Sending{
		Acks:          "all",
		Idempotence:   "auto",
		BatchMaxBytes: 1_000_012, // the client's default, for the brokers' of max.message.bytes
		Compression:   "none",
		Partitioner:   "sticky",
		// Longer than a pause of a broker that a fault puts into a run.
		DeliveryTimeout: 30 * time.Second,
	}
}

// Validate reports every fault, joined.
func (s *Sending) Validate() error {
	var errs []error
	if s.Idempotence == "on" && s.Acks != "all" {
		errs = append(errs, fault("idempotence", "needs acks: all (auto, off)"))
	}
	if s.RequestsInFlight < 0 || s.RequestsInFlight > 1000 {
		errs = append(errs, fault("requests-in-flight", "%d (0 to 1000)", s.RequestsInFlight))
	} else if s.RequestsInFlight > 0 && s.Idempotent() {
		errs = append(errs, fault("requests-in-flight", "is 5 with idempotence (0, or idempotence: off)"))
	}
	return errors.Join(append(errs,
		Span("linger", s.Linger, 0, time.Minute),
		Span("delivery-timeout", s.DeliveryTimeout, time.Second, time.Hour),
		size("batch-max-bytes", s.BatchMaxBytes, 512, 64<<20),
		Count("min-insync", int64(s.MinInsync), 0, math.MaxInt16),
		Count("flush-messages", s.FlushMessages, 0, math.MaxInt64))...)
}

// Idempotent reports whether the producers are.
func (s *Sending) Idempotent() bool {
	return s.Idempotence == "on" || s.Idempotence == "auto" && s.Acks == "all"
}

// Settings returns those of the topics that weir makes, by the vendor's names.
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

// longestTransaction is what brokers allow unless set (transaction.max.timeout.ms).
const longestTransaction = 15 * time.Minute

// Client returns the client's options for a producer, but for the partitioner; id is
// its transactional.id, "" for none.
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
		// Who is gone has its transaction aborted after longer than a message is tried.
		return append(opts, kgo.TransactionalID(id), kgo.TransactionTimeout(min(s.DeliveryTimeout+10*time.Second, longestTransaction)))
	case s.Idempotent():
		// Otherwise the time of a message under way would never be over.
		return append(opts, kgo.AllowIdempotentProduceCancellation())
	}
	return append(opts, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(max(s.RequestsInFlight, 1)))
}

// partitioner returns the one that the option names.
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

// Server is the settings of brokers that weir starts, as the recipe has them.
type Server struct {
	FlushMessages int64  `option:"flush-messages" help:"Brokers started by weir: log.flush.interval.messages; 1 syncs before each confirmation, 0 is never."`
	Heap          string `option:"heap" help:"Brokers started by weir: largest heap of each, as the option -Xmx of Java takes it."`
}

// ServerDefaults returns the recipe's.
func ServerDefaults() Server { return Server{Heap: "256m"} }

var heap = regexp.MustCompile(`^[1-9][0-9]{0,5}[mg]$`)

// Validate reports every fault, joined.
func (s *Server) Validate() error {
	err := Count("server.flush-messages", s.FlushMessages, 0, math.MaxInt64)
	if !heap.MatchString(s.Heap) {
		err = errors.Join(err, fault("server.heap", "%q is not a size of a heap (such as 256m, 1g)", s.Heap))
	}
	return err
}

// fault is what is wrong with an option.
func fault(name, format string, v ...any) error {
	return &driver.OptionError{Name: name, Err: fmt.Errorf(format, v...)}
}

// Span returns the fault of a duration that is out of bounds; nil for none.
func Span(name string, v, from, to time.Duration) error {
	if v < from || v > to {
		return fault(name, "%v (%v to %v)", v, from, to)
	}
	return nil
}

// Count returns the fault of a number that is out of bounds; nil for none.
func Count(name string, v, from, to int64) error {
	if v < from || v > to {
		return fault(name, "%d (%d or more)", v, from)
	}
	return nil
}

// size returns the fault of a number of bytes that is out of bounds; nil for none.
func size(name string, v, from, to int64) error {
	if v < from || v > to {
		return fault(name, "%s (%s to %s)", driver.FormatSize(v), driver.FormatSize(from), driver.FormatSize(to))
	}
	return nil
}
