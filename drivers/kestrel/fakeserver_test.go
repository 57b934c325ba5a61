package kestrel

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A fakeServer simulates a Kestrel server in memory, according to Kestrel's guide. It proves nothing
// about Kestrel itself.
type fakeServer struct {
	address string

	mu      sync.Mutex
	changed *sync.Cond
	queues  map[string][][]byte
	open    map[string]int
	conns   map[net.Conn]bool
	stalled bool
	closed  bool
	listen  net.Listener
	all     sync.WaitGroup
}

func newFakeServer(t *testing.T) *fakeServer {
	s := &fakeServer{queues: map[string][][]byte{}, open: map[string]int{}, conns: map[net.Conn]bool{}}
	s.changed = sync.NewCond(&s.mu)
	if err := s.start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	return s
}

func (s *fakeServer) start(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	s.address, s.listen, s.closed = l.Addr().String(), l, false
	s.all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns[c] = true
			s.mu.Unlock()
			s.all.Go(func() { s.serve(c) })
		}
	})
	return nil
}

func (s *fakeServer) stop() {
	_ = s.listen.Close()
	s.mu.Lock()
	s.closed, s.stalled = true, false
	for c := range s.conns {
		_ = c.Close()
	}
	s.changed.Broadcast()
	s.mu.Unlock()
	s.all.Wait()
}

// restart breaks all connections; queues are kept.
func (s *fakeServer) restart() error {
	s.stop()
	return s.start(s.address)
}

func (s *fakeServer) stall() (func(), error) {
	set := func(to bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stalled = to
		s.changed.Broadcast()
	}
	set(true)
	return func() { set(false) }, nil
}

// held is an item that is open on a connection.
type held struct {
	queue string
	item  []byte
}

func (s *fakeServer) serve(c net.Conn) {
	var h *held
	defer func() {
		s.abort(h)
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
		_ = c.Close()
	}()
	r := bufio.NewReader(c)
	for {
		line, err := r.ReadString('\n')
		if err != nil || !s.awake() {
			return
		}
		words := strings.Fields(line)
		answer := "ERROR\r\n"
		switch {
		case len(words) == 5 && words[0] == "set":
			n, err := strconv.Atoi(words[4])
			if err != nil {
				return
			}
			item := make([]byte, n+2)
			if _, err := io.ReadFull(r, item); err != nil {
				return
			}
			answer = s.set(words[1], item[:n])
		case len(words) == 2 && words[0] == "get":
			answer = s.get(words[1], &h)
		case len(words) == 2 && words[0] == "delete":
			s.mu.Lock()
			delete(s.queues, words[1])
			s.mu.Unlock()
			answer = "DELETED\r\n"
		case len(words) == 1 && words[0] == "stats":
			answer = s.stats()
		}
		if _, err := io.WriteString(c, answer); err != nil {
			return
		}
	}
}

// awake waits while the server is stalled.
func (s *fakeServer) awake() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.stalled && !s.closed {
		s.changed.Wait()
	}
	return !s.closed
}

func (s *fakeServer) set(queue string, item []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.Contains(queue, "full") {
		return "NOT_STORED\r\n"
	}
	s.queues[queue] = append(s.queues[queue], item)
	for key := range s.queues {
		if strings.HasPrefix(key, queue+"+") {
			s.queues[key] = append(s.queues[key], item)
		}
	}
	s.changed.Broadcast()
	return "STORED\r\n"
}

func (s *fakeServer) get(key string, h **held) string {
	queue, options, _ := strings.Cut(key, "/")
	wait := time.Duration(0)
	opens, peeks := false, false
	for o := range strings.SplitSeq(options, "/") {
		switch {
		case o == "close":
			s.drop(*h)
			*h = nil
		case o == "abort":
			s.abort(*h)
			*h = nil
		case o == "open":
			opens = true
		case o == "peek":
			peeks = true
		case strings.HasPrefix(o, "t="):
			ms, _ := strconv.Atoi(o[2:])
			wait = time.Duration(ms) * time.Millisecond
		}
	}
	if options != "" && !opens && !peeks {
		return "END\r\n"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.queues[queue]; !ok {
		s.queues[queue] = nil
	}
	over := false
	timer := time.AfterFunc(wait, func() { s.mu.Lock(); over = true; s.changed.Broadcast(); s.mu.Unlock() })
	defer timer.Stop()
	for len(s.queues[queue]) == 0 && opens && !over && !s.closed {
		s.changed.Wait()
	}
	if len(s.queues[queue]) == 0 || s.closed {
		return "END\r\n"
	}
	item := s.queues[queue][0]
	if !peeks {
		s.queues[queue] = s.queues[queue][1:]
		s.open[queue]++
		*h = &held{queue, item}
	}
	return fmt.Sprintf("VALUE %s 0 %d\r\n%s\r\nEND\r\n", queue, len(item), item)
}

func (s *fakeServer) drop(h *held) {
	if h == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[h.queue]--
}

func (s *fakeServer) abort(h *held) {
	if h == nil {
		return
	}
	s.drop(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	if q, ok := s.queues[h.queue]; ok {
		s.queues[h.queue] = append([][]byte{h.item}, q...)
		s.changed.Broadcast()
	}
}

func (s *fakeServer) stats() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	b.WriteString("STAT version stand-in\r\n")
	for q, items := range s.queues {
		fmt.Fprintf(&b, "STAT queue_%s_items %d\r\nSTAT queue_%s_open_transactions %d\r\n", q, len(items), q, s.open[q])
	}
	return b.String() + "END\r\n"
}
