package loads

import (
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
	end  context.CancelFunc
	ids  []int64
	n    int

	coming chan received // the answer that is being read; nil if none is
}

// received is what reading a stream gave.
type received struct {
	said *pb.WatchResponse
	err  error
}

// open asks for n watches of a key from a revision on, 0 for now.
func (r *etcdRound) open(key string, n int, from int64) (_ *watchStream, err error) {
	s := &watchStream{n: n}
	if s.conn, err = r.connect(); err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(context.Background()) // it outlives its step
	s.end = end
	if s.Watch_WatchClient, err = pb.NewWatchClient(s.conn).Watch(ctx); err != nil {
		s.close()
		return nil, err
	}
	for range n {
		err = errors.Join(
			err,
			s.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{
				CreateRequest: &pb.WatchCreateRequest{Key: []byte(key), StartRevision: from}}}),
		)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// confirmed reads until etcd has confirmed all watches, or ctx ends.
func (s *watchStream) confirmed(ctx context.Context) error {
	for len(s.ids) < s.n {
		said, err := s.receive(ctx)
		switch {
		case err != nil:
			return err
		case said.Created && said.Canceled:
			return status.Errorf(
				codes.FailedPrecondition,
				"the watch was refused: %s",
				said.CancelReason,
			)
		case said.Created:
			s.ids = append(s.ids, said.WatchId)
		}
	}
	return nil
}

// cancelAll asks for the end of each watch. With a time above 0 it reads until etcd has confirmed them all.
func (s *watchStream) cancelAll(ctx context.Context, within time.Duration) (err error) {
	for _, id := range s.ids {
		err = errors.Join(
			err,
			s.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{
				CancelRequest: &pb.WatchCancelRequest{WatchId: id}}}),
		)
	}
	if within <= 0 || err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, within, errTimeUp)
	defer cancel()
	left := map[int64]bool{}
	for _, id := range s.ids {
		left[id] = true
	}
	for len(left) > 0 {
		said, err := s.receive(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return fmt.Errorf(
				"the end of %d of %d watches is not confirmed: %w",
				len(left),
				len(s.ids),
				err,
			)
		case err != nil:
			return err
		case said.Canceled:
			delete(left, said.WatchId)
		}
	}
	return nil
}

// progress asks up to which revision the watches have shown everything, and reads until etcd says so, for so long at most.
func (s *watchStream) progress(
	ctx context.Context,
	within time.Duration,
) (revision int64, err error) {
	err = s.Send(&pb.WatchRequest{
		RequestUnion: &pb.WatchRequest_ProgressRequest{
			ProgressRequest: &pb.WatchProgressRequest{},
		},
	})
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, within, errTimeUp)
	defer cancel()
	for {
		said, err := s.receive(ctx)
		switch {
		case err != nil:
			return 0, fmt.Errorf("reading up to where the watches are: %w", err)
		case said.Canceled:
			return 0, status.Errorf(
				codes.FailedPrecondition,
				"a watch was ended: %s",
				said.CancelReason,
			)
		case len(said.Events) == 0 && !said.Created:
			return said.Header.GetRevision(), nil
		}
	}
}

// receive returns the next answer. Reading goes on when ctx ends, as it can't be given up without the stream, and what
// comes then is the next answer.
func (s *watchStream) receive(ctx context.Context) (*pb.WatchResponse, error) {
	if s.coming == nil {
		coming := make(chan received, 1)
		s.coming = coming
		go func() {
			said, err := s.Recv()
			coming <- received{said, err}
		}()
	}
	select {
	case one := <-s.coming:
		s.coming = nil
		return one.said, one.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// close ends the stream and its connection.
func (s *watchStream) close() {
	s.end()
	_ = s.conn.Close() // it only lets go
}
