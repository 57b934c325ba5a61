// Package rabbitmq drives RabbitMQ: classic and quorum queues behind exchanges,
// over AMQP 0-9-1.
//
// # What is what here
//
// A destination is an exchange, weir.<run>.<destination>, of the kind that the
// option exchange names. A subscription is a queue for each of its destinations,
// bound to the exchange when its first consumer is opened: it keeps what comes from
// then on, and each subscription gets every message. What nobody has subscribed to
// goes by the exchange's alternate exchange to a queue of the destination's name
// (https://www.rabbitmq.com/docs/ae), so that it is confirmed and kept as the rest
// is. Names are the same in every process, and none has to know of another. With
// exchange: default a destination is that queue alone, and has one subscription.
// The consumers of a subscription compete for its queue's messages. There are no
// partitions. Replicas are the members of a quorum queue's first group; fewer nodes
// than that are refused where the management plugin tells how many there are.
//
// Where destinations exist already a name is a queue's, which is consumed from as
// it is, or with existing: exchange an exchange's, to which subscriptions are bound
// by queues weir.<run>.<destination>.<subscription>, which Conn.Close removes. Of
// what type a queue is tells the management plugin, or the server's refusal to
// declare it anew with a type that cannot be.
//
// # What a confirmation means
//
// A message completes when the server confirms it: when every queue that it was
// routed to has accepted it (https://www.rabbitmq.com/docs/confirms). A transient
// message, or one in a queue that is not durable, is then in memory. A persistent
// one in a durable classic queue is on disk, or was acknowledged by a consumer
// before it came there. Whether it was synced depends: the storage of version 1, up
// to 3.12, syncs in batches before it confirms; version 2 does not, and since 3.13
// neither does the store that both share
// (https://www.rabbitmq.com/blog/2025/01/17/how-are-the-messages-stored,
// https://www.rabbitmq.com/blog/2021/08/21/4.0-deprecation-announcements). A quorum
// queue keeps every message, transient or not, and has it synced on a quorum of its
// members (https://www.rabbitmq.com/blog/2024/09/02/amqp-flow-control). The server's
// version, and where it can be known a queue's type, members and storage, are read
// from the running system; what is not known counts as the lesser.
//
// Messages are sent as mandatory: one that no queue takes comes back before it is
// confirmed, and fails. A basic.nack is ErrOverloaded: a full queue that rejects, or
// one that failed. With confirm: no a message completes when the operating system
// has taken its last byte, and nothing is known of what becomes of it.
//
// A message larger than the server's max_message_size (128 MiB, and 16 MiB from
// 4.0) ends the channel, and all that is under way on it. The server does not tell
// its limit, so that a producer that is told the largest message sends one of that
// size to nowhere when it is opened.
//
// # What the client does, and what is done below it
//
// amqp091-go writes each message and each acknowledgement to the socket by itself,
// within the call, and so waits when the server does not read. Below it lies a wire
// that takes the bytes and has them written by a goroutine of its own: Publish does
// not wait, and under load one write carries many messages. What it holds is bounded
// by the messages in flight, and the deliveries not settled.
//
// The client tells of confirmations in the order of the messages only, which makes
// one wait for those before it, and of returned messages without saying which they
// are. The wire therefore looks at the frames that come in: a confirmation counts
// when its bytes are read.
//
// With client-path: vendor producers have no such wire: Publish writes, and so waits
// when the server does not read, and what the client tells decides. Consumers keep
// theirs.
//
// The client's own recovery of connections is not used: what was under way when a
// connection broke fails with ErrDisconnected, and may have been taken; producers
// and consumers connect again, to the next address, for as long as reconnect-for
// says. A channel may go on refusing what the cluster takes again, after the leader
// of a quorum queue was killed: when it has refused every message of a destination
// for reopen-after, the producer opens another, at the next address, and says so by
// an event (docs/adr/0029-lasting-refusals-open-a-new-channel.md). A consumer gets
// again what it had not settled, flagged as redelivered.
package rabbitmq
