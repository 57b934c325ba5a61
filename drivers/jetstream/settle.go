package jetstream

import (
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weirmq/weir/driver"
)

// acknowledges reports whether messages are settled individually.
func (x *consumer) acknowledges() bool {
	return x.spec.Settle == driver.SettleEach || x.spec.Settle == driver.SettleBatch
}

// settle acknowledges or rejects a delivery.
func (r *running) settle(m jetstream.Msg, d *driver.Delivery, accepted bool) {
	if !r.x.acknowledges() {
		return
	}
	var err error
	switch {
	case !accepted:
		err = m.Nak()
	case r.confirms != nil:
		err = r.confirm(m, d)
	default:
		err = m.Ack()
	}
	if err != nil {
		r.sink.Fault(fmt.Errorf("not settled: %w", words.Cause(err)))
	}
}

// ack is the payload of an acknowledgement.
var ack = []byte("+ACK")

// confirm acknowledges with a reply subject, to which the server sends its confirmation.
func (r *running) confirm(m jetstream.Msg, d *driver.Delivery) error {
	reply, ticket, err := r.confirms.Take(r.life, *d, r.x.Epoch())
	if err != nil {
		// Run is ending, and there is no room to wait for a confirmation.
		r.confirmed(*d, nil, err)
		return m.Ack()
	}
	err = r.x.PublishRequest(m.Reply(), reply, ack)
	if err != nil && r.confirms.Drop(ticket) {
		r.sink.Settled([]driver.Delivery{*d}, words.Cause(err))
	}
	return err
}

// confirmed reports a settlement.
func (r *running) confirmed(d driver.Delivery, m *nats.Msg, err error) {
	if err == nil {
		err = refused(m)
	}
	r.sink.Settled([]driver.Delivery{d}, err)
}

// redelivered reads from an acknowledgement subject whether the message was delivered before:
//
//	$JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>
//	$JS.ACK.<domain>.<account>.<stream>.<consumer>.<delivered>. ... .<random>
//
// (ADR-15 of nats-architecture-and-design). jetstream.Msg.Metadata parses all of it, but allocates.
func redelivered(reply string) bool {
	at := 4
	if strings.Count(reply, ".") > 8 {
		at = 6
	}
	for range at {
		_, reply, _ = strings.Cut(reply, ".")
	}
	n, _, _ := strings.Cut(reply, ".")
	return n != "1" && n != ""
}
