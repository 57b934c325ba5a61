package rabbitmq

import (
	client "github.com/rabbitmq/amqp091-go"
)

// leastRoom is how many of the client's messages about confirmations find room
// where the scenario leaves in-flight open. The client waits for more.
const leastRoom = 1000

// listen has the client tell of confirmations and of returned messages, as a
// program does that knows nothing of a wire.
func (o *outlet) listen(room int) {
	var confirmed chan client.Confirmation
	if o.confirms {
		confirmed = o.channel.NotifyPublish(make(chan client.Confirmation, room))
	}
	returned := o.channel.NotifyReturn(make(chan client.Return, room))
	o.hearing.Go(func() { o.hear(confirmed, returned) })
}

// hear takes what the client tells, until the channel is over.
func (o *outlet) hear(confirmed <-chan client.Confirmation, returned <-chan client.Return) {
	for confirmed != nil || returned != nil {
		select {
		case r, ok := <-returned:
			if !ok {
				returned = nil
				continue
			}
			o.returned(r.ReplyCode, r.Body)
		case c, ok := <-confirmed:
			if !ok {
				confirmed = nil
				continue
			}
			// The client has told of what came back before.
			for len(returned) > 0 {
				r := <-returned
				o.returned(r.ReplyCode, r.Body)
			}
			o.confirmed(c.DeliveryTag, false, c.Ack)
		}
	}
}
