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

	"github.com/weirmq/weir/drivers/internal/trial"
)

// A fakeServer simulates a Kestrel server in memory, according to Kestrel's guide. It proves nothing
// about Kestrel itself.
type fakeServer struct {
	*trial.Proxy

	mu      sync.Mutex
	changed *sync.Cond
	queues  map[string][][]byte
	open    map[string]int
}

func newFakeServer(t *testing.T) *fakeServer {
	s := &fakeServer{queues: map[string][][]byte{}, open: map[string]int{}}
	s.changed = sync.NewCond(&s.mu)
	s.Proxy = trial.NewProxy(t, trial.Serve(t, s.serve))
	return s
}

// held is an item that is open on a connection.
type held struct {
	queue string
	item  []byte
}

func (s *fakeServer) serve(c net.Conn) {
	var h *held
	defer func() { s.abort(h) }()
	r := bufio.NewReader(c)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
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
	for len(s.queues[queue]) == 0 && opens && !over {
		s.changed.Wait()
	}
	if len(s.queues[queue]) == 0 {
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
