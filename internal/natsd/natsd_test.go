package natsd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weirmq/weir/internal/must"
)

// run starts servers for the duration of a test and returns their addresses.
func run(t *testing.T, o Options) []string {
	t.Helper()
	o.Dir = t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	address, ended := make(chan []string, 1), make(chan error, 1)
	go func() {
		ended <- Run(ctx, o, func(a []string) { address <- a }, slog.New(slog.DiscardHandler))
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Run returned %v after its context ended; want nil", err)
			}
		case <-time.After(stopLimit + time.Minute):
			t.Error("Run has not returned")
		}
	})
	select {
	case a := <-address:
		return a
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	case <-time.After(2 * time.Minute):
		t.Fatal("not ready")
	}
	return nil
}

func connect(t *testing.T, address []string) *nats.Conn {
	t.Helper()
	nc := must.Get(nats.Connect(strings.Join(address, ",")))(t)
	t.Cleanup(nc.Close)
	return nc
}

// settings requests the servers' settings, repeatedly: while a cluster establishes routes, an answer
// may be lost.
func settings(t *testing.T, nc *nats.Conn, n int) map[string]*server.Varz {
	t.Helper()
	sub := must.Get(nc.SubscribeSync(nc.NewInbox()))(t)
	defer func() { _ = sub.Unsubscribe() }()
	all := map[string]*server.Varz{}
	for range 60 {
		must.Do(t, nc.PublishRequest(VarzSubject, sub.Subject, nil))
		for len(all) < n {
			m, err := sub.NextMsg(time.Second)
			if err != nil {
				break
			}
			r := server.ServerAPIResponse{Data: &server.Varz{}}
			must.Do(t, json.Unmarshal(m.Data, &r))
			v := r.Data.(*server.Varz)
			all[v.Name] = v
		}
		if len(all) == n {
			return all
		}
	}
	t.Fatalf("%d of %d answers", len(all), n)
	return nil
}

// again repeats a question until it succeeds, a second each and a minute in total: while a cluster
// establishes routes, it may be lost or find nobody.
func again(t *testing.T, question func(context.Context) error) {
	t.Helper()
	var err error
	for range 60 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if err = question(ctx); err != nil {
			<-ctx.Done()
		}
		cancel()
		if err == nil {
			return
		}
	}
	t.Fatal(err)
}

func TestServerTakesLargeMessagesOnLoopbackOnly(t *testing.T) {
	address := run(t, Options{})
	if len(address) != 1 {
		t.Fatalf("addresses %q; want one", address)
	}
	u, err := url.Parse(address[0])
	if err != nil || u.Hostname() != loopback || u.Scheme != "nats" {
		t.Fatalf("address %q; want nats://%s:port", address[0], loopback)
	}
	js := must.Get(jetstream.New(connect(t, address)))(t)
	must.Get(js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "s", Subjects: []string{"s"}}))(t)
	m := &nats.Msg{Subject: "s", Header: nats.Header{"k": {"v"}}, Data: make([]byte, 1<<20)}
	if _, err := js.PublishMsg(t.Context(), m); err != nil {
		t.Errorf("1 MiB and a header: %v", err)
	}
}

func TestServerShowsItsSyncSettingsToClients(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Options
		want server.JetStreamConfig
	}{
		{"default", Options{}, server.JetStreamConfig{SyncInterval: 2 * time.Minute}},
		{"an interval", Options{SyncInterval: time.Second}, server.JetStreamConfig{SyncInterval: time.Second}},
		{"always", Options{SyncAlways: true}, server.JetStreamConfig{SyncAlways: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := settings(t, connect(t, run(t, c.o)), 1)["weir-1"].JetStream.Config
			if got == nil || got.SyncAlways != c.want.SyncAlways || !got.SyncAlways && got.SyncInterval != c.want.SyncInterval {
				t.Errorf("settings %+v; want %+v", got, c.want)
			}
		})
	}
}

func TestThreeNodesReplicate(t *testing.T) {
	address := run(t, Options{Nodes: 3, SyncAlways: true})
	if len(address) != 3 {
		t.Fatalf("addresses %q; want three", address)
	}
	nc := connect(t, address)
	js := must.Get(jetstream.New(nc))(t)
	var s jetstream.Stream
	again(t, func(ctx context.Context) (err error) {
		s, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: "s", Subjects: []string{"s"}, Replicas: 3})
		return err
	})
	again(t, func(ctx context.Context) error {
		_, err := js.Publish(ctx, "s", []byte("x"))
		return err
	})
	again(t, func(ctx context.Context) error {
		info, err := s.Info(ctx)
		if err == nil && (info.Cluster == nil || len(info.Cluster.Replicas) != 2) {
			err = fmt.Errorf("stream info %+v; want two replicas beside the leader", info)
		}
		return err
	})
	for _, v := range settings(t, nc, 3) {
		if v.JetStream.Config == nil || !v.JetStream.Config.SyncAlways {
			t.Errorf("%s: %+v; want sync always", v.Name, v.JetStream.Config)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	l := must.Get(net.Listen("tcp", loopback+":0"))(t)
	defer l.Close()
	for _, c := range []struct {
		name, want string
		o          Options
		is         error
	}{
		{"a port that is taken", "address already in use", Options{Dir: t.TempDir(), Port: l.Addr().(*net.TCPAddr).Port}, ErrPortTaken},
		{"no folder", "no folder", Options{}, nil},
		{"two nodes", "two have no majority", Options{Dir: "d", Nodes: 2}, nil},
		{"a negative interval", "negative", Options{Dir: "d", SyncInterval: -1}, nil},
		{"a port out of range", "70000", Options{Dir: "d", Port: 70000}, nil},
		{"always and an interval", "exclude", Options{Dir: "d", SyncInterval: 1, SyncAlways: true}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Run(t.Context(), c.o, func([]string) { t.Error("ready") }, slog.New(slog.DiscardHandler))
			if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("Run: %v; want %q", err, c.want)
			}
		})
	}
}

func TestServerLogLevelFollowsReadiness(t *testing.T) {
	var log strings.Builder
	said := &verbosity{}
	l := &logger{slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), said, nil}
	for _, c := range []struct {
		name string
		do   func()
		want string
	}{
		{"before it is ready", func() {}, "level=DEBUG"},
		{"ready", said.raise, "level=ERROR"},
		{"ending", said.lower, "level=DEBUG"},
		{"ready after its end", said.raise, "level=DEBUG"},
	} {
		log.Reset()
		c.do()
		l.Errorf("no route to %d", 1)
		if got := log.String(); !strings.Contains(got, c.want) || !strings.Contains(got, `msg="no route to 1"`) {
			t.Errorf("%s: %s; want %s", c.name, got, c.want)
		}
	}
}

// A route's port is chosen before the server binds it, and may be taken in between.
func TestPortTakenBeforeBindIsReplaced(t *testing.T) {
	thief, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer thief.Close()
	taken := func(n int) ([]int, error) {
		ports, err := freePorts(loopback, n)
		if err == nil {
			ports[1] = thief.Addr().(*net.TCPAddr).Port
		}
		return ports, err
	}
	choices := 0
	once := func(n int) ([]int, error) {
		if choices++; choices == 1 {
			return taken(n)
		}
		return freePorts(loopback, n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	up := 0
	log := slog.New(slog.DiscardHandler)
	err = retry(ctx, Options{Nodes: 3, Dir: t.TempDir()}, once, func(address []string) { up = len(address); cancel() }, log)
	if err != nil || up != 3 || choices != 2 {
		t.Errorf("%d servers are up after %d choices of ports: %v", up, choices, err)
	}
	choices = 0
	always := func(n int) ([]int, error) { choices++; return taken(n) }
	err = retry(t.Context(), Options{Nodes: 3, Dir: t.TempDir()}, always, func([]string) { t.Error("they are up") }, log)
	if !errors.Is(err, syscall.EADDRINUSE) || choices != startAttempts {
		t.Errorf("after %d choices: %v", choices, err)
	}
}
