package sqs

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	client "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/blocking"
	"github.com/weirmq/weir/drivers/internal/failure"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// A feed repeatedly receives up to ten messages in one call, delivers them, and settles them.
type feed struct {
	cfg      *Config
	run      driver.Run
	name     string
	receive  *link // without retries
	settle   *link
	each     bool // one delete call per message
	in       client.ReceiveMessageInput
	source   int32
	lost     bool
	messages []types.Message
	ds       [batchMost]driver.Delivery
}

// Consumer looks up the queues, which keep their messages for any consumer.
func (c *conn) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	receivers, most := share(c.cfg.Receivers, spec.Prefetch)
	return blocking.NewFeeds(spec.Destinations, func(source int, d string) (x blocking.Feeds, err error) {
		q, err := c.queue(ctx, d)
		if err != nil {
			return nil, err
		}
		once, err := c.connect(receivers, 1)
		if err != nil {
			return nil, err
		}
		often, err := c.connect(receivers, c.cfg.Attempts)
		if err != nil {
			return nil, err
		}
		for range receivers {
			x = append(x, &feed{
				cfg: &c.cfg, run: c.run.For(&spec), name: spec.Name(),
				receive: once, settle: often, each: spec.Settle == driver.SettleEach, source: int32(source),
				in: client.ReceiveMessageInput{
					QueueUrl: q.url, MaxNumberOfMessages: int32(most),
					WaitTimeSeconds:             int32(c.cfg.Wait / time.Second),
					VisibilityTimeout:           int32(c.cfg.VisibilityTimeout / time.Second),
					MessageAttributeNames:       []string{payloadName, keyName},
					MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameApproximateReceiveCount},
				},
			})
		}
		return x, nil
	})
}

// share divides a prefetch into concurrent calls and a maximum of messages per call.
func share(receivers, prefetch int) (calls, most int) {
	switch {
	case prefetch <= 0:
		return receivers, batchMost
	case prefetch < batchMost:
		return 1, prefetch
	}
	return min(receivers, prefetch/batchMost), batchMost
}

// endLimit is how long a call may take in addition to the option wait when the consumer ends.
const endLimit = time.Second

// Run implements blocking.Feed. It ends when the queue can no longer be received from. The end of
// ctx does not interrupt a call: messages already sent by the service would be invisible to
// everyone.
func (f *feed) Run(ctx context.Context, sink driver.Sink) error {
	life, end := context.WithCancel(context.Background())
	defer end()
	defer context.AfterFunc(ctx, func() { retry.Pause(life, f.cfg.Wait+endLimit); end() })()
	for ctx.Err() == nil {
		limited, cancel := context.WithTimeout(life, f.cfg.Wait+f.cfg.Timeout)
		out, err := f.receive.ReceiveMessage(limited, &f.in)
		cancel()
		switch err = words.Cause(err); {
		case life.Err() != nil:
			return nil
		case failure.Hopeless(err):
			return fmt.Errorf("subscription lost: %w", err)
		case err != nil:
			f.lost = true
			sink.Fault(err)
			retry.Pause(ctx, f.cfg.ReconnectWait)
			continue
		}
		if f.lost {
			f.lost = false
			f.run.Tell(driver.Reconnect, f.name)
		}
		if f.messages = out.Messages; len(f.messages) == 0 {
			continue
		}
		ds := f.deliveries()
		if ctx.Err() != nil || sink.Deliver(ds) != nil {
			f.giveBack(sink)
			continue
		}
		f.delete(sink, ds)
	}
	return nil
}

// deliveries returns the messages held by the feed.
func (f *feed) deliveries() []driver.Delivery {
	for i := range f.messages {
		m := &f.messages[i]
		received, _ := strconv.Atoi(m.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)])
		f.ds[i] = driver.Delivery{
			Payload: payload(m), Key: m.MessageAttributes[keyName].BinaryValue,
			Partition: -1, Source: f.source, Redelivered: received > 1,
		}
	}
	return f.ds[:len(f.messages)]
}

// payload returns a message's payload. If weir did not send the message, that is the body.
func payload(m *types.Message) []byte {
	if a, ok := m.MessageAttributes[payloadName]; ok {
		return a.BinaryValue
	}
	text := aws.ToString(m.Body)
	if b, err := base64.StdEncoding.DecodeString(text); err == nil {
		return b
	}
	return []byte(text)
}

// limited returns a context for a settling call, independent of Run's context: accepted messages
// are settled.
func (f *feed) limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), f.cfg.Timeout)
}

// giveBack makes the messages visible at once.
func (f *feed) giveBack(sink driver.Sink) {
	in := &client.ChangeMessageVisibilityBatchInput{QueueUrl: f.in.QueueUrl}
	for i := range f.messages {
		in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), ReceiptHandle: f.messages[i].ReceiptHandle,
		})
	}
	ctx, cancel := f.limited()
	defer cancel()
	out, err := f.settle.ChangeMessageVisibilityBatch(ctx, in)
	if err == nil && len(out.Failed) > 0 {
		err = refused(&out.Failed[0])
	}
	if err != nil {
		sink.Fault(fmt.Errorf("giving messages back: %w", words.Cause(err)))
	}
}

// delete settles the messages, and reports the result.
func (f *feed) delete(sink driver.Sink, ds []driver.Delivery) {
	ctx, cancel := f.limited()
	defer cancel()
	if f.each {
		for i := range ds {
			_, err := f.settle.DeleteMessage(ctx, &client.DeleteMessageInput{QueueUrl: f.in.QueueUrl, ReceiptHandle: f.messages[i].ReceiptHandle})
			settled(sink, ds[i:i+1], words.Cause(err))
		}
		return
	}
	in := &client.DeleteMessageBatchInput{QueueUrl: f.in.QueueUrl, Entries: make([]types.DeleteMessageBatchRequestEntry, len(ds))}
	for i := range ds {
		in.Entries[i] = types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: f.messages[i].ReceiptHandle}
	}
	out, err := f.settle.DeleteMessageBatch(ctx, in)
	if err != nil || len(out.Failed) == 0 {
		settled(sink, ds, words.Cause(err))
		return
	}
	var errs [batchMost]error
	for i := range out.Failed {
		if n, ok := place(out.Failed[i].Id, len(ds)); ok {
			errs[n] = refused(&out.Failed[i])
		}
	}
	for i := range ds {
		settled(sink, ds[i:i+1], errs[i])
	}
}

// settled reports a settlement.
func settled(sink driver.Sink, ds []driver.Delivery, err error) {
	if err != nil {
		sink.Fault(fmt.Errorf("settling: %w", err))
	}
	sink.Settled(ds, err)
}

// Close implements blocking.Feed. The feeds of a queue share their connections.
func (f *feed) Close() {
	f.receive.Close()
	f.settle.Close()
}
