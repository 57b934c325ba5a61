package series

import (
	"fmt"

	"github.com/weirmq/weir/result"
)

// efficiency relates the messages of the measured window to the servers' resources and to money; nil if
// neither is known. price is per hour, 0: not given.
func efficiency(r *result.Result, price float64) *result.Efficiency {
	if r.Servers == nil && price == 0 {
		return nil
	}
	t := r.Throughput
	x := &result.Efficiency{Messages: result.CountConfirmed}
	rate, bytes := t.ConfirmedPerS, t.SentBytesPerS
	if r.Consuming() {
		x.Messages, rate, bytes = result.CountReceived, 0, 0
		if t.ReceivedPerS != nil {
			rate, bytes = *t.ReceivedPerS, *t.ReceivedBytesPerS
		}
	}
	unknown := func(figure, why string) { x.Unknown = append(x.Unknown, result.Unknown{Figure: figure, Why: why}) }
	if rate <= 0 {
		why := "no message was " + x.Messages + " in the measured window"
		unknown("messages_per_cpu_s", why)
		unknown("written_per_message_byte", why)
		if price > 0 {
			unknown("cost_per_million", why)
		}
		return x
	}
	if price > 0 {
		x.PricePerHour, x.CostPerMillion = &price, new(price/3600/rate*1e6)
	}
	if r.Servers == nil {
		const why = "weir did not start the servers, and was not told which processes they are (watch_pid)"
		unknown("messages_per_cpu_s", why)
		unknown("written_per_message_byte", why)
		return x
	}
	cores, written := 0.0, 0.0
	coresOf, writtenOf := "", "" // a server without data
	for _, p := range r.Servers.Processes {
		if p.Cores == nil {
			coresOf = p.Name
		} else {
			cores += *p.Cores
		}
		if p.WrittenBytes == nil {
			writtenOf = p.Name
		} else {
			written += float64(*p.WrittenBytes)
		}
	}
	switch {
	case coresOf != "":
		unknown("messages_per_cpu_s", fmt.Sprintf("the processor time of %s is not known", coresOf))
	case cores == 0:
		unknown("messages_per_cpu_s", "the servers used less processor time than the kernel counts, which is in ticks of 10 ms")
	default:
		x.MessagesPerCPUS = new(rate / cores)
	}
	switch {
	case writtenOf != "":
		unknown("written_per_message_byte", fmt.Sprintf("what %s wrote is not known: the kernel shows it only to the user of the process and to root", writtenOf))
	case bytes == 0 || r.Servers.SpanS == 0:
		unknown("written_per_message_byte", "messages without payload")
	default:
		x.WrittenPerMessageByte = new(written / r.Servers.SpanS / bytes)
	}
	return x
}
