package eventstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kurrent-io/KurrentDB-Client-Go/protos/gossip"
	"github.com/kurrent-io/KurrentDB-Client-Go/protos/persistent"
	"github.com/kurrent-io/KurrentDB-Client-Go/protos/serverfeatures"
	"github.com/kurrent-io/KurrentDB-Client-Go/protos/shared"
	"github.com/kurrent-io/KurrentDB-Client-Go/protos/streams"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// A fakeServer simulates the server, using stubs from the client's module. It follows the
// documentation as far as a run needs, and proves nothing about EventStoreDB itself.
type fakeServer struct {
	*trial.Proxy

	mu      sync.Mutex
	streams map[string][]*event
	groups  map[string]*group // by stream and group
}

type event struct {
	id     *shared.UUID
	number uint64
	meta   map[string]string
	data   []byte
	tried  int32
}

type group struct {
	stream  string
	next    uint64 // number of the next event to deliver
	retry   []*event
	members []*member
	turn    int
}

type member struct {
	room int
	open map[string]*event // by ID
	send chan *event
}

func newFakeServer(t *testing.T) *fakeServer {
	s := &fakeServer{streams: map[string][]*event{}, groups: map[string]*group{}}
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	server := grpc.NewServer(grpc.MaxRecvMsgSize(32 << 20))
	streams.RegisterStreamsServer(server, streamsServer{s: s})
	persistent.RegisterPersistentSubscriptionsServer(server, groupsServer{s: s})
	serverfeatures.RegisterServerFeaturesServer(server, featuresServer{})
	gossip.RegisterGossipServer(server, gossipServer{})
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() { server.Stop(); serving.Wait() })
	s.Proxy = trial.NewProxy(t, l.Addr().String())
	return s
}

func key(stream []byte, name string) string { return string(stream) + " :: " + name }

func idOf(u *shared.UUID) string {
	return fmt.Sprint(u.GetStructured().GetMostSignificantBits(), u.GetStructured().GetLeastSignificantBits())
}

// hand delivers as much as the members have room for. s.mu is held.
func (s *fakeServer) hand(g *group) {
	for {
		var e *event
		of := s.streams[g.stream]
		switch {
		case len(g.retry) > 0:
			e = g.retry[0]
		case g.next < uint64(len(of)):
			e = of[g.next]
		default:
			return
		}
		var to *member
		for range g.members {
			g.turn++
			if m := g.members[g.turn%len(g.members)]; len(m.open) < m.room {
				to = m
				break
			}
		}
		if to == nil {
			return
		}
		if len(g.retry) > 0 {
			g.retry = g.retry[1:]
		} else {
			g.next++
			e = &event{e.id, e.number, e.meta, e.data, 0}
		}
		to.open[idOf(e.id)] = e
		to.send <- e // never blocks: it has room for all of a member's open events
	}
}

type streamsServer struct {
	streams.UnimplementedStreamsServer
	s *fakeServer
}

func (x streamsServer) Append(calls grpc.ClientStreamingServer[streams.AppendReq, streams.AppendResp]) error {
	var stream string
	var es []*event
	for {
		q, err := calls.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if o := q.GetOptions(); o != nil {
			stream = string(o.StreamIdentifier.StreamName)
			continue
		}
		p := q.GetProposedMessage()
		if len(p.Data) > 1<<20 {
			return status.Error(codes.InvalidArgument, "Maximum Append Size of 1048576 Exceeded.")
		}
		meta := map[string]string{"created": "17000000000000000", "type": p.Metadata["type"], "content-type": p.Metadata["content-type"]}
		es = append(es, &event{id: p.Id, meta: meta, data: p.Data})
	}
	if strings.Contains(stream, "denied") {
		return status.Error(codes.PermissionDenied, "Access Denied")
	}
	x.s.mu.Lock()
	for _, e := range es {
		e.number = uint64(len(x.s.streams[stream]))
		x.s.streams[stream] = append(x.s.streams[stream], e)
	}
	last := uint64(len(x.s.streams[stream]) - 1)
	for _, g := range x.s.groups {
		if g.stream == stream {
			x.s.hand(g)
		}
	}
	x.s.mu.Unlock()
	return calls.SendAndClose(&streams.AppendResp{Result: &streams.AppendResp_Success_{Success: &streams.AppendResp_Success{
		CurrentRevisionOption: &streams.AppendResp_Success_CurrentRevision{CurrentRevision: last},
		PositionOption:        &streams.AppendResp_Success_Position{Position: &streams.AppendResp_Position{CommitPosition: last, PreparePosition: last}},
	}}})
}

func (x streamsServer) Delete(_ context.Context, q *streams.DeleteReq) (*streams.DeleteResp, error) {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	delete(x.s.streams, string(q.Options.StreamIdentifier.StreamName))
	return &streams.DeleteResp{PositionOption: &streams.DeleteResp_Position_{Position: &streams.DeleteResp_Position{}}}, nil
}

// Read returns the last event, which is all that the driver reads.
func (x streamsServer) Read(q *streams.ReadReq, out grpc.ServerStreamingServer[streams.ReadResp]) error {
	id := q.Options.GetStream().StreamIdentifier
	x.s.mu.Lock()
	of := x.s.streams[string(id.StreamName)]
	x.s.mu.Unlock()
	if len(of) == 0 {
		return out.Send(&streams.ReadResp{Content: &streams.ReadResp_StreamNotFound_{StreamNotFound: &streams.ReadResp_StreamNotFound{StreamIdentifier: id}}})
	}
	e := of[len(of)-1]
	return out.Send(&streams.ReadResp{Content: &streams.ReadResp_Event{Event: &streams.ReadResp_ReadEvent{Event: &streams.ReadResp_ReadEvent_RecordedEvent{
		Id: e.id, StreamIdentifier: id, StreamRevision: e.number, Metadata: e.meta, Data: e.data,
	}}}})
}

type groupsServer struct {
	persistent.UnimplementedPersistentSubscriptionsServer
	s *fakeServer
}

func (x groupsServer) Create(_ context.Context, q *persistent.CreateReq) (*persistent.CreateResp, error) {
	stream := q.Options.GetStream().StreamIdentifier.StreamName
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	k := key(stream, q.Options.GroupName)
	if x.s.groups[k] != nil {
		return nil, status.Error(codes.AlreadyExists, "it exists")
	}
	x.s.groups[k] = &group{stream: string(stream), next: uint64(len(x.s.streams[string(stream)]))}
	return &persistent.CreateResp{}, nil
}

func (x groupsServer) Delete(_ context.Context, q *persistent.DeleteReq) (*persistent.DeleteResp, error) {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	k := key(q.Options.GetStreamIdentifier().StreamName, q.Options.GroupName)
	g := x.s.groups[k]
	if g == nil {
		return nil, status.Error(codes.NotFound, "it does not exist")
	}
	delete(x.s.groups, k)
	for _, m := range g.members {
		close(m.send)
	}
	g.members = nil
	return &persistent.DeleteResp{}, nil
}

func (x groupsServer) GetInfo(_ context.Context, q *persistent.GetInfoReq) (*persistent.GetInfoResp, error) {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	g := x.s.groups[key(q.Options.GetStreamIdentifier().StreamName, q.Options.GroupName)]
	if g == nil {
		return nil, status.Error(codes.NotFound, "it does not exist")
	}
	i := &persistent.SubscriptionInfo{EventSource: g.stream, GroupName: q.Options.GroupName, StartFrom: "0", RetryBufferCount: int32(len(g.retry))}
	if g.next > 0 {
		i.LastKnownEventPosition = fmt.Sprint(g.next - 1)
	} else {
		i.ReadBufferCount = int32(len(x.s.streams[g.stream]))
	}
	for _, m := range g.members {
		i.TotalInFlightMessages += int32(len(m.open))
	}
	return &persistent.GetInfoResp{SubscriptionInfo: i}, nil
}

func (x groupsServer) Read(calls grpc.BidiStreamingServer[persistent.ReadReq, persistent.ReadResp]) error {
	q, err := calls.Recv()
	if err != nil {
		return err
	}
	o := q.GetOptions()
	m := &member{room: int(o.BufferSize), open: map[string]*event{}, send: make(chan *event, o.BufferSize)}
	x.s.mu.Lock()
	g := x.s.groups[key(o.GetStreamIdentifier().StreamName, o.GroupName)]
	if g != nil {
		g.members = append(g.members, m)
		x.s.hand(g)
	}
	x.s.mu.Unlock()
	if g == nil {
		return status.Error(codes.NotFound, "it does not exist")
	}
	defer x.leave(g, m)
	if err := calls.Send(&persistent.ReadResp{Content: &persistent.ReadResp_SubscriptionConfirmation_{
		SubscriptionConfirmation: &persistent.ReadResp_SubscriptionConfirmation{SubscriptionId: g.stream},
	}}); err != nil {
		return err
	}
	var reading sync.WaitGroup
	defer reading.Wait()
	gone := make(chan struct{})
	reading.Go(func() {
		defer close(gone)
		for {
			q, err := calls.Recv()
			if err != nil {
				return
			}
			x.settle(g, m, q)
		}
	})
	for {
		select {
		case e, ok := <-m.send:
			if !ok {
				return status.Error(codes.Aborted, "the group was deleted")
			}
			if err := calls.Send(said(g.stream, e)); err != nil {
				return err
			}
		case <-gone:
			return nil
		}
	}
}

func said(stream string, e *event) *persistent.ReadResp {
	r := &persistent.ReadResp_ReadEvent{Event: &persistent.ReadResp_ReadEvent_RecordedEvent{
		Id: e.id, StreamIdentifier: &shared.StreamIdentifier{StreamName: []byte(stream)}, StreamRevision: e.number, Metadata: e.meta, Data: e.data,
	}, Count: &persistent.ReadResp_ReadEvent_NoRetryCount{}}
	if e.tried > 0 {
		r.Count = &persistent.ReadResp_ReadEvent_RetryCount{RetryCount: e.tried}
	}
	return &persistent.ReadResp{Content: &persistent.ReadResp_Event{Event: r}}
}

func (x groupsServer) settle(g *group, m *member, q *persistent.ReadReq) {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	for _, id := range q.GetAck().GetIds() {
		delete(m.open, idOf(id))
	}
	for _, id := range q.GetNack().GetIds() {
		x.back(g, m, idOf(id))
	}
	x.s.hand(g)
}

// back makes an event available to other members. x.s.mu is held.
func (x groupsServer) back(g *group, m *member, id string) {
	if e := m.open[id]; e != nil {
		delete(m.open, id)
		g.retry = append(g.retry, &event{e.id, e.number, e.meta, e.data, e.tried + 1})
	}
}

func (x groupsServer) leave(g *group, m *member) {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	g.members = slices.DeleteFunc(g.members, func(o *member) bool { return o == m })
	for id := range m.open {
		x.back(g, m, id)
	}
	x.s.hand(g)
}

type featuresServer struct {
	serverfeatures.UnimplementedServerFeaturesServer
}

func (featuresServer) GetSupportedMethods(context.Context, *shared.Empty) (*serverfeatures.SupportedMethods, error) {
	m := &serverfeatures.SupportedMethods{EventStoreServerVersion: "0.0.0"}
	for _, name := range []string{"create", "getinfo", "replayparked", "list", "restartsubsystem"} {
		m.Methods = append(m.Methods, &serverfeatures.SupportedMethod{MethodName: name, ServiceName: "event_store.client.persistent_subscriptions.persistentsubscriptions"})
	}
	return m, nil
}

type gossipServer struct {
	gossip.UnimplementedGossipServer
}

func (gossipServer) Read(context.Context, *shared.Empty) (*gossip.ClusterInfo, error) {
	return &gossip.ClusterInfo{Members: []*gossip.MemberInfo{{State: gossip.MemberInfo_Leader, IsAlive: true}}}, nil
}
