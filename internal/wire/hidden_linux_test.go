package wire

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weirmq/weir/internal/must"
)

// certificate returns one that nobody has to trust.
func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	c := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}
	der := must.Get(x509.CreateCertificate(rand.Reader, &c, &c, &key.PublicKey, key))(t)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// cookie returns the kernel's number of a socket.
func cookie(t *testing.T, c net.Conn) (n uint64) {
	t.Helper()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { n, err = unix.GetsockoptUint64(int(fd), unix.SOL_SOCKET, unix.SO_COOKIE) })
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestHiddenMessagesOverTLS sends messages over real TLS connections, up to four in flight, one or two at a
// time. The server knows when it had each and when it answered. What is said to be exact must lie between these
// instants and the client's own.
func TestHiddenMessagesOverTLS(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for depth := 1; depth <= 4; depth++ {
			t.Run(tls.VersionName(version)+", "+string(rune('0'+depth))+" in flight", func(t *testing.T) { overTLS(t, version, depth) })
		}
	}
}

func overTLS(t *testing.T, version uint16, depth int) {
	const bytes, messages, answer = 200, 150, 20
	p := open(t)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer func() { _ = l.Close() }()
	plain := must.Get(net.Dial("tcp", l.Addr().String()))(t)
	far := must.Get(l.Accept())(t)
	p.ignore(Sockets{cookie(t, far)})
	client := tls.Client(plain, &tls.Config{InsecureSkipVerify: true, MaxVersion: version}) //nolint:gosec // the server is this test
	server := tls.Server(far, &tls.Config{Certificates: []tls.Certificate{certificate(t)}, MinVersion: tls.VersionTLS12})
	defer func() { _ = client.Close() }()
	type truth struct{ start, had, answered, end int64 }
	var all [messages]truth // each field is written by one goroutine
	var both sync.WaitGroup
	both.Go(func() {
		b := make([]byte, bytes)
		for i := range all {
			if _, err := io.ReadFull(server, b); err != nil {
				return
			}
			all[i].had = monotonic()
			if i%3 == 0 {
				time.Sleep(time.Duration(i%7) * 100 * time.Microsecond)
			}
			all[i].answered = monotonic()
			_, _ = server.Write(b[:answer])
		}
		_ = server.Close()
	})
	must.Do(t, client.Handshake())
	if p.scan() != 1 {
		t.Fatalf("%d connections", p.scan())
	}
	must.Do(t, p.enable(true))
	free := make(chan struct{}, depth)
	for range depth {
		free <- struct{}{}
	}
	both.Go(func() {
		b := make([]byte, answer)
		for i := range all {
			if _, err := io.ReadFull(client, b); err != nil {
				t.Error(err)
				return
			}
			all[i].end = monotonic()
			free <- struct{}{}
		}
	})
	body := make([]byte, 2*bytes)
	for i := 0; i < messages; {
		n := 1
		<-free
		if depth > 1 && i+1 < messages && mathrand.IntN(3) == 0 {
			<-free
			n = 2
		}
		for range n {
			all[i].start = monotonic()
			i++
		}
		must.Get(client.Write(body[:n*bytes]))(t)
	}
	both.Wait()
	w := newWindow(testRun, 0)
	w.hidden, w.sized, w.answered, w.until = true, true, true, never
	must.Do(t, p.read(w.add))
	w.order()
	known := 0
	for i, x := range all {
		var parts Parts
		w.confirmed(&Message{Bytes: bytes, Due: x.start, Start: x.start, End: x.end}, &parts)
		if parts.Sampled() != 1 {
			t.Fatalf("%+v", parts)
		}
		if parts.Exact == 0 {
			continue
		}
		known++
		came := x.end - parts.Levels[0].HostIn
		left := came - parts.Levels[0].System
		if left < x.start || left > x.had || came < x.answered || came > x.end {
			t.Errorf("message %d: begun, had, answered, end %v; left at %d, answer came at %d", i, x, left-x.start, came-x.start)
		}
	}
	if depth == 1 && known < messages*9/10 {
		t.Errorf("%d of %d messages are known, one in flight", known, messages)
	}
	t.Logf("%d of %d messages are known", known, messages)
}
