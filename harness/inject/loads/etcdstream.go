package loads

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// watchStream is a stream of watches on a connection of its own.
type watchStream struct {
	pb.Watch_WatchClient
	conn *grpc.ClientConn
	ctx  context.Context
	end  context.CancelFunc
	ids  []int64
	n    int
}

// open asks for n watches of a key from a revision on, 0 for now.
func (r *etcdRound) open(key string, n int, from int64) (_ *watchStream, err error) {
	s := &watchStream{n: n}
	if s.conn, err = r.connect(); err != nil {
		return nil, err
	}
	s.ctx, s.end = context.WithCancel(context.Background()) // it outlives its step
	if s.Watch_WatchClient, err = pb.NewWatchClient(s.conn).Watch(s.ctx); err != nil {
		s.close()
		return nil, err
	}
	for range n {
		err = errors.Join(err, s.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{
			CreateRequest: &pb.WatchCreateRequest{Key: []byte(key), StartRevision: from}}}))
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// confirmed reads until etcd has confirmed all watches. It gives up, and closes the stream, when ctx ends.
func (s *watchStream) confirmed(ctx context.Context) error {
	defer context.AfterFunc(ctx, s.end)()
	for len(s.ids) < s.n {
		said, err := s.Recv()
		switch {
		case err != nil:
			return cmp.Or(context.Cause(ctx), err)
		case said.Created && said.Canceled:
			return status.Errorf(codes.FailedPrecondition, "the watch was refused: %s", said.CancelReason)
		case said.Created:
			s.ids = append(s.ids, said.WatchId)
		}
	}
	return nil
}

// cancelAll asks for the end of each watch. With a time above 0 it reads until etcd has confirmed them all.
func (s *watchStream) cancelAll(ctx context.Context, within time.Duration) (err error) {
	for _, id := range s.ids {
		err = errors.Join(err, s.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{
			CancelRequest: &pb.WatchCancelRequest{WatchId: id}}}))
	}
	if within <= 0 || err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, within, errTimeUp)
	defer cancel()
	defer context.AfterFunc(ctx, s.end)()
	left := map[int64]bool{}
	for _, id := range s.ids {
		left[id] = true
	}
	for len(left) > 0 {
		said, err := s.Recv()
		switch {
		case err != nil && s.ctx.Err() != nil:
			return fmt.Errorf("the end of %d of %d watches is not confirmed: %w", len(left), len(s.ids), context.Cause(ctx))
		case err != nil:
			return err
		case said.Canceled:
			delete(left, said.WatchId)
		}
	}
	return nil
}

// close ends the stream and its connection.
func (s *watchStream) close() {
	s.end()
	_ = s.conn.Close() // it only lets go
}
