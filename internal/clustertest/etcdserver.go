package clustertest

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// etcdServer is an etcd in memory, as its clients see it: put, deletion of one key, compaction, watches of one key, and
// members of its cluster.
// What is written here doesn't appear in the API, and its history has nothing of what askEtcd writes.
type etcdServer struct {
	pb.UnimplementedKVServer
	pb.UnimplementedWatchServer

	members etcdMembers

	mu        sync.Mutex
	changed   chan struct{} // closed at the next change
	history   []*mvccpb.Event
	compacted int64
	revision  int64
}

// serveEtcd starts an etcd. Requests go to first, as those to the API server do.
func serveEtcd(first func(http.ResponseWriter, *http.Request) bool) *httptest.Server {
	e := &etcdServer{changed: make(chan struct{}), revision: 1}
	server := grpc.NewServer()
	pb.RegisterKVServer(server, e)
	pb.RegisterWatchServer(server, e)
	pb.RegisterClusterServer(server, &e.members)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said := httptest.NewRecorder()
		if !first(said, r) {
			server.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Grpc-Status", fmt.Sprint(int(codes.Internal)))
		w.Header().Set("Grpc-Message", strings.TrimSpace(said.Body.String()))
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	return s
}

// lazyEtcd is an etcd that is started for its first client.
type lazyEtcd struct {
	mu     sync.Mutex
	server *httptest.Server
}

// etcdClient returns where the etcd in memory listens, and how a client connects to it.
func (c *Cluster) etcdClient() (address string, as *tls.Config, err error) {
	c.etcd.mu.Lock()
	defer c.etcd.mu.Unlock()
	if c.etcd.server == nil {
		c.etcd.server = serveEtcd(func(w http.ResponseWriter, r *http.Request) bool {
			c.api.mu.Lock()
			first := c.api.intercept
			c.api.mu.Unlock()
			return first != nil && first(w, r)
		})
	}
	as = c.etcd.server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	as.ServerName = "example.com" // it is in the certificate of every test server
	return c.etcd.server.Listener.Addr().String(), as, nil
}

func (l *lazyEtcd) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.server != nil {
		l.server.CloseClientConnections()
		l.server.Close()
	}
}

// change adds to the history; the caller holds mu.
func (e *etcdServer) change(typ mvccpb.Event_EventType, key, value []byte) *pb.ResponseHeader {
	e.revision++
	e.history = append(
		e.history,
		&mvccpb.Event{
			Type: typ,
			Kv:   &mvccpb.KeyValue{Key: key, Value: value, ModRevision: e.revision},
		},
	)
	close(e.changed)
	e.changed = make(chan struct{})
	return &pb.ResponseHeader{Revision: e.revision}
}

// Put adds a change.
func (e *etcdServer) Put(_ context.Context, r *pb.PutRequest) (*pb.PutResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return &pb.PutResponse{Header: e.change(mvccpb.PUT, r.Key, r.Value)}, nil
}

// DeleteRange deletes one key, if it is there.
func (e *etcdServer) DeleteRange(
	_ context.Context,
	r *pb.DeleteRangeRequest,
) (*pb.DeleteRangeResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, last := range slices.Backward(e.history) {
		if bytes.Equal(last.Kv.Key, r.Key) && last.Type == mvccpb.PUT {
			return &pb.DeleteRangeResponse{
				Header:  e.change(mvccpb.DELETE, r.Key, nil),
				Deleted: 1,
			}, nil
		} else if bytes.Equal(last.Kv.Key, r.Key) {
			break
		}
	}
	return &pb.DeleteRangeResponse{Header: &pb.ResponseHeader{Revision: e.revision}}, nil
}

// Compact notes down the revision. Nothing is removed.
func (e *etcdServer) Compact(
	_ context.Context,
	r *pb.CompactionRequest,
) (*pb.CompactionResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.Revision <= e.compacted || r.Revision > e.revision {
		return nil, status.Error(
			codes.OutOfRange,
			"the required revision has been compacted, or is a future one",
		)
	}
	e.compacted = r.Revision
	return &pb.CompactionResponse{Header: &pb.ResponseHeader{Revision: e.revision}}, nil
}

// Watch serves a stream. It shows the changes of the key of the last watch that was created.
func (e *etcdServer) Watch(stream pb.Watch_WatchServer) error {
	asked, id := make(chan *pb.WatchRequest), int64(0)
	go func() {
		defer close(asked)
		for r, err := stream.Recv(); err == nil; r, err = stream.Recv() {
			select {
			case asked <- r:
			case <-stream.Context().Done():
				return
			}
		}
	}()
	var key []byte
	var next, start int64
	for {
		e.mu.Lock()
		header, changed, compacted := &pb.ResponseHeader{
			Revision: e.revision,
		}, e.changed, e.compacted
		var events []*mvccpb.Event
		for _, one := range e.history {
			if key != nil && bytes.Equal(one.Kv.Key, key) && one.Kv.ModRevision >= next {
				events = append(events, one)
			}
		}
		e.mu.Unlock()
		out := &pb.WatchResponse{Header: header, WatchId: id, Events: events}
		if key != nil && next < compacted {
			out.Events, out.Canceled, out.CompactRevision, key = nil, true, compacted, nil
		}
		if len(out.Events) > 0 || out.Canceled {
			if err := stream.Send(out); err != nil {
				return err
			}
			next = header.Revision + 1
		}
		select {
		case <-changed:
		case r, open := <-asked:
			if !open {
				return nil
			}
			if r.GetProgressRequest() != nil {
				if err := e.progress(stream, start); err != nil {
					return err
				}
				continue
			}
			said := &pb.WatchResponse{Header: header}
			if create := r.GetCreateRequest(); create != nil {
				id++
				key, next = create.Key, create.StartRevision
				if next == 0 {
					next = header.Revision + 1
				}
				said.WatchId, said.Created, start = id, true, next
			} else {
				said.WatchId, said.Canceled = r.GetCancelRequest().GetWatchId(), true
			}
			if err := stream.Send(said); err != nil {
				return err
			}
		}
	}
}

// progress says up to where a watch has shown everything, unless that lies before its start.
func (e *etcdServer) progress(stream pb.Watch_WatchServer, start int64) error {
	e.mu.Lock()
	revision := e.revision
	e.mu.Unlock()
	if revision < start {
		return nil
	}
	return stream.Send(&pb.WatchResponse{Header: &pb.ResponseHeader{Revision: revision}, WatchId: -1})
}
