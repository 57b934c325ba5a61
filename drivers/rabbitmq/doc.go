// Package rabbitmq drives RabbitMQ: classic and quorum queues behind exchanges,
// over AMQP 0-9-1. The driver's page, page.md, says what weir's terms mean there.
//
// # Names
//
// Names are the same in every process, so that no process needs to know another. A
// destination is an exchange, weir.<run>.<destination>. A message without a subscription
// goes by the exchange's alternate exchange to a queue of the destination's name
// (https://www.rabbitmq.com/docs/ae), so that it is confirmed and kept as the rest is. A
// destination that exists already is not changed. Behind an existing exchange weir makes
// queues weir.<run>.<destination>.<subscription>, which Conn.Close removes. The management
// plugin reports the type of an existing queue. Without it, the driver declares the queue
// again with an impossible type, and reads the server's refusal.
//
// # What a confirmation means
//
// A message completes when every queue that it was routed to has accepted it
// (https://www.rabbitmq.com/docs/confirms). A transient message, or one in a queue that is
// not durable, is then in memory. A persistent one in a durable classic queue is on disk,
// or a consumer acknowledged it before. Version 1 of the storage, up to 3.12, syncs in
// batches before it confirms. Version 2 does not, and since 3.13 neither does version 1
// (https://www.rabbitmq.com/blog/2025/01/17/how-are-the-messages-stored,
// https://www.rabbitmq.com/blog/2021/08/21/4.0-deprecation-announcements). A quorum queue
// keeps every message, transient or not, and syncs it on a quorum of its members
// (https://www.rabbitmq.com/blog/2024/09/02/amqp-flow-control). What is not known of a
// queue counts as the lesser.
//
// Messages are sent as mandatory: one that no queue takes comes back before it is
// confirmed, and fails. With confirm: no a message completes when the operating system
// has taken its last byte.
//
// A message larger than the server's max_message_size ends the channel, and all that is
// in flight on it. The server does not report its limit. A producer that knows its largest
// message therefore sends one of that size to nowhere when it is opened.
//
// # What the client does, and what is done below it
//
// amqp091-go writes each message and each acknowledgement to the socket by itself, within
// the call, and so waits when the server does not read.
//
// The client reports confirmations only in the order of the messages, which makes one wait
// for those before it. It reports returned messages without saying which they are. A wire
// below the client therefore reads the frames that come in: a confirmation counts when its
// bytes are read.
//
// The client's own recovery of connections is not used: it does not say what became of
// messages in flight. Package retry connects again, to the next address. After the leader
// of a quorum queue was killed, a channel may keep refusing what the cluster takes again.
// When a channel has refused every message of a destination for reopen-after, the producer
// opens another (docs/adr/0031-the-label-says-what-publishes.md).
package rabbitmq
