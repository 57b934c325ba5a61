package sqs

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	client "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/names"
)

// Message attributes.
const (
	payloadName = "payload"
	keyName     = "key"
	binary      = "Binary"
)

// overhead is what counts toward a message's size besides its payload: a name, a type, and the
// required body of one byte.
const overhead = len(payloadName) + len(binary) + 1

// limit names the size limit in errors.
const limit = "the queue's maximum message size, with names and key"

// size returns the size of a message as the service counts it.
func size(m *driver.Message, payload string) int {
	n := sized(len(m.Payload), payload)
	if len(m.Key) > 0 {
		n += len(keyName) + len(binary) + len(m.Key)
	}
	return n
}

// sized is size for a payload of n bytes without a key.
func sized(n int, payload string) int {
	if payload == body {
		return base64.StdEncoding.EncodedLen(n)
	}
	return n + overhead
}

// A call is one call of a sender, with reused memory.
type call struct {
	in      client.SendMessageBatchInput
	items   []item
	bytes   int
	errs    [batchMost]error
	entries [batchMost]types.SendMessageBatchRequestEntry
}

// errUnanswered means that the answer reports a message neither as accepted nor as rejected.
var errUnanswered = fmt.Errorf("%w: the answer does not name the message", driver.ErrTimeout)

// work sends until the producer's queue is closed and empty.
func (p *producer) work() {
	c := &call{items: make([]item, 0, batchMost)}
	for i := range c.entries {
		c.entries[i].Id = aws.String(strconv.Itoa(i))
		c.entries[i].MessageAttributes = make(map[string]types.MessageAttributeValue, 2)
	}
	for p.gather(c) {
		p.send(c)
	}
}

// gather collects the messages of one call: those of a batch, or waiting single ones, for one queue
// and within the limits. It waits for the first, and returns false at the end.
func (p *producer) gather(c *call) bool {
	p.gathering.Lock()
	defer p.gathering.Unlock()
	it, most := p.held, p.cfg.Gather
	p.held = item{}
	if it.m == nil {
		it = <-p.queue
	}
	if it.m == nil {
		return false
	}
	if it.batch {
		most = batchMost
	}
	c.items, c.bytes = append(c.items[:0], it), size(it.m, p.cfg.Payload)
	for len(c.items) < most {
		next := item{}
		if it.batch && it.last {
			break
		}
		if it.batch {
			next = <-p.queue // the rest of the batch is about to arrive
		} else {
			select {
			case next = <-p.queue:
			default:
			}
		}
		if next.m == nil {
			break
		}
		n := size(next.m, p.cfg.Payload)
		if next.batch != it.batch || next.to.url != it.to.url || c.bytes+n > sizeMost {
			p.held = next
			break
		}
		c.items, c.bytes, it = append(c.items, next), c.bytes+n, next
	}
	return true
}

// fill writes an item's message to its entry in the call.
func (p *producer) fill(e *types.SendMessageBatchRequestEntry, it item) {
	clear(e.MessageAttributes)
	if p.cfg.Payload == body {
		e.MessageBody = aws.String(base64.StdEncoding.EncodeToString(it.m.Payload))
	} else {
		e.MessageBody = p.mark
		e.MessageAttributes[payloadName] = types.MessageAttributeValue{DataType: p.binary, BinaryValue: it.m.Payload}
	}
	group := &p.group
	if len(it.m.Key) > 0 {
		e.MessageAttributes[keyName] = types.MessageAttributeValue{DataType: p.binary, BinaryValue: it.m.Key}
		if it.to.fifo {
			group = aws.String(names.Join(128, "key", string(it.m.Key)))
		}
	}
	e.MessageGroupId, e.MessageDeduplicationId = nil, nil
	if it.to.fifo {
		e.MessageGroupId = group
		e.MessageDeduplicationId = aws.String(p.unique + strconv.FormatUint(p.count.Add(1), 10))
	}
}

// send makes a call and completes its messages.
func (p *producer) send(c *call) {
	for i, it := range c.items {
		p.fill(&c.entries[i], it)
		c.errs[i] = errUnanswered
	}
	c.in.QueueUrl, c.in.Entries = c.items[0].to.url, c.entries[:len(c.items)]
	ctx, cancel := context.WithTimeout(p.life, p.cfg.Timeout)
	out, err := p.link.SendMessageBatch(ctx, &c.in)
	cancel()
	if err == nil {
		p.answered(c, out)
	} else {
		err = words.Cause(err)
		p.lost.Store(errors.Is(err, driver.ErrDisconnected) || errors.Is(err, driver.ErrTimeout))
	}
	for i, it := range c.items {
		if err != nil {
			c.errs[i] = err
		}
		p.Complete(it.m, c.errs[i])
	}
}

// answered records the result of each message in a call.
func (p *producer) answered(c *call, out *client.SendMessageBatchOutput) {
	if p.lost.Load() && p.lost.Swap(false) {
		p.run.Tell(driver.Reconnect, p.name)
	}
	for i := range out.Successful {
		if n, ok := place(out.Successful[i].Id, len(c.items)); ok {
			c.errs[n] = nil
		}
	}
	for i := range out.Failed {
		if n, ok := place(out.Failed[i].Id, len(c.items)); ok {
			c.errs[n] = refused(&out.Failed[i])
		}
	}
}

// place returns the index of the batch entry that an answer concerns.
func place(id *string, n int) (int, bool) {
	i, err := strconv.Atoi(aws.ToString(id))
	return i, err == nil && i >= 0 && i < n
}
