// Package protocheck detects which protocol a server speaks. Use it after a client has failed, to
// explain what is wrong with an address: a Kafka client at a NATS server, or a client without TLS at a
// TLS port.
package protocheck

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"time"
)

const (
	// limit bounds each exchange with a server: connecting, and its first answer.
	limit = time.Second
	// most is how many bytes of an answer are read.
	most = 512
)

// None stands for a server that accepts connections but sends no known answer.
const None = ""

// TLS stands for a server that expects TLS.
const TLS = "TLS"

// A question is the first message of one kind of client, and how its servers answer.
type question struct {
	protocol string
	say      []byte // nil: the server speaks first
	answered func([]byte) bool
}

// At returns the protocol of the server at address, host:port: TLS, a name such as "NATS" or "AMQP
// 0.9.1", or None. If no server accepts connections it returns the connection error. It tries all
// protocols in parallel, on separate connections, and takes at most two seconds.
func At(ctx context.Context, address string) (string, error) {
	first, err := answer(ctx, address, nil)
	if err != nil {
		return None, err
	}
	for _, q := range greetings() {
		if q.answered(first) {
			return q.protocol, nil
		}
	}
	qs := questions()
	answered := make([]chan bool, len(qs))
	for i, q := range qs {
		answered[i] = make(chan bool, 1)
		go func() {
			got, err := answer(ctx, address, q.say)
			answered[i] <- err == nil && q.answered(got)
		}()
	}
	found := None
	if wantsTLS(ctx, address) {
		found = TLS // even if it answers in plain text that it expects TLS, as HTTPS does
	}
	for i, q := range qs {
		if <-answered[i] && found == None {
			found = q.protocol
		}
	}
	return found, nil
}

// answer connects, sends a message, and returns the first bytes received; none from a silent server.
// The error is that of connecting.
func answer(ctx context.Context, address string, say []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	wait := limit
	if say == nil {
		wait = limit / 4 // a server that speaks first does so at once
	}
	_ = conn.SetDeadline(time.Now().Add(wait))
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if _, err := conn.Write(say); err != nil {
		return nil, nil
	}
	got := make([]byte, most)
	n, _ := conn.Read(got)
	return got[:n], nil
}

// wantsTLS reports whether the server answers a TLS client with a handshake or an alert.
func wantsTLS(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	host, _, _ := net.SplitHostPort(address)
	// Nothing is sent after the handshake, so the server's identity does not matter.
	err = tls.Client(conn, &tls.Config{ServerName: host, InsecureSkipVerify: true}).HandshakeContext(ctx)
	var alert tls.AlertError
	return err == nil || errors.As(err, &alert) || strings.Contains(err.Error(), "remote error: tls:")
}

func begins(with string) func([]byte) bool {
	return func(b []byte) bool { return bytes.HasPrefix(b, []byte(with)) }
}

// refusesPlainText reports whether an answer in HTTP says that the server expects TLS, as Go, nginx and Apache do.
func refusesPlainText(b []byte) bool {
	return begins("HTTP/1.")(b) && bytes.Contains(b, []byte(" 400 ")) && (bytes.Contains(b, []byte("HTTPS")) || bytes.Contains(b, []byte("SSL-enabled")))
}

// at matches bytes at an offset of the answer.
func at(offset int, want string) func([]byte) bool {
	return func(b []byte) bool { return len(b) >= offset && bytes.HasPrefix(b[offset:], []byte(want)) }
}

// greetings lists the servers that speak first.
func greetings() []question {
	return []question{
		{"NATS", nil, begins("INFO {")},
		{"OpenWire (ActiveMQ)", nil, at(5, "ActiveMQ")},
		{"ZeroMQ", nil, func(b []byte) bool { return len(b) >= 10 && b[0] == 0xff && b[9] == 0x7f }},
		{"a protocol of nanomsg", nil, begins("\x00SP\x00")},
		{"MySQL", nil, at(3, "\x00\x0a")},
		{"SSH", nil, begins("SSH-")},
		{"SMTP or FTP", nil, begins("220")},
	}
}

// questions lists the servers that answer, in order of precedence.
func questions() []question {
	text := []byte("GET / HTTP/1.0\r\n\r\n")
	return []question{
		{"MongoDB", mongoHello(), at(12, "\xdd\x07\x00\x00")}, // it also answers browsers in HTTP
		{TLS, text, refusesPlainText},                         // also where the host was too busy for a handshake
		{"HTTP", text, begins("HTTP/")},
		{"Redis", text, begins("-")},
		{"beanstalkd", text, begins("UNKNOWN_COMMAND")},
		{"memcache", text, begins("ERROR\r\n")},
		{"AMQP 0.9.1", []byte("AMQP\x00\x00\x09\x01"), at(7, "\x00\x0a\x00\x0a")},
		{"AMQP 0.9.1", []byte("AMQP\x03\x01\x00\x00"), begins("AMQP\x00\x00\x09\x01")},
		{"AMQP 1.0", []byte("AMQP\x00\x01\x00\x00"), begins("AMQP\x00\x01")},
		{"AMQP 1.0", []byte("AMQP\x00\x01\x00\x00"), begins("AMQP\x03\x01")},
		// ApiVersions, version 0: https://kafka.apache.org/protocol
		{"Kafka", framed("\x00\x12\x00\x00weir\x00\x04weir"), at(4, "weir")},
		// SSLRequest: https://www.postgresql.org/docs/current/protocol-message-formats.html
		{"PostgreSQL", []byte("\x00\x00\x00\x08\x04\xd2\x16\x2f"), func(b []byte) bool { return string(b) == "S" || string(b) == "N" }},
		// CONNECT of MQTT 3.1.1, section 3.1, and CONNACK, section 3.2.
		{"MQTT", []byte("\x10\x0c\x00\x04MQTT\x04\x02\x00\x0a\x00\x00"), begins("\x20\x02")},
		// An unknown command: https://nsq.io/clients/tcp_protocol_spec.html
		{"NSQ", []byte("  V2WEIR\n"), at(4, "\x00\x00\x00\x01E_")},
		// CommandConnect: https://pulsar.apache.org/docs/next/developing-binary-protocol
		{"Pulsar", framed(string(framed("\x08\x02\x12\x08\x0a\x04weir\x20\x06"))), at(8, "\x08\x03")},
		// PeerProperties: RabbitMQ's deps/rabbitmq_stream/docs/PROTOCOL.adoc
		{"the stream protocol of RabbitMQ", framed("\x00\x11\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00"), at(4, "\x80\x11")},
	}
}

// framed prefixes a body with its length, as four bytes, big-endian.
func framed(body string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// mongoHello returns the command hello as an OP_MSG:
// https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/
func mongoHello() []byte {
	doc := "\x10hello\x00\x01\x00\x00\x00" + "\x02$db\x00\x06\x00\x00\x00admin\x00" + "\x00"
	body := binary.LittleEndian.AppendUint32([]byte("\x00\x00\x00\x00\x00"), uint32(len(doc)+4))
	body = append(body, doc...)
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(body)+16))
	head = append(head, "weir\x00\x00\x00\x00\xdd\x07\x00\x00"...)
	return append(head, body...)
}
