package loads

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// patience is how long a request to etcd waits for its answer.
const patience = 30 * time.Second

// etcdClient sends requests to one cluster's etcd. It speaks gRPC itself: etcd's own client reads every stream all the
// time, and repeats what failed.
type etcdClient struct {
	load.Target
	conn    *grpc.ClientConn
	connect func() (*grpc.ClientConn, error)
}

func newEtcdClient(t load.Target) (*etcdClient, error) {
	ask := t.Cluster.Abilities().EtcdClient
	if ask == nil {
		return nil, fmt.Errorf(
			"load %s: etcd of cluster %s has no clients of their own",
			t.Name,
			t.Cluster.Name(),
		)
	}
	address, as, err := ask()
	if err != nil {
		return nil, fmt.Errorf("making a client for load %s: %w", t.Name, err)
	}
	c := &etcdClient{Target: t, connect: func() (*grpc.ClientConn, error) {
		return grpc.NewClient(
			"passthrough:///"+address,
			grpc.WithTransportCredentials(credentials.NewTLS(as.Clone())),
			grpc.WithDisableServiceConfig(),
			grpc.WithDisableRetry(),
			grpc.WithInitialWindowSize(streamWindow),
		)
	}}
	c.conn, err = c.connect()
	return c, err
}

// streamWindow is how many bytes etcd may send of a stream that nobody reads: the least that gRPC has. With a fixed size
// it doesn't grow.
const streamWindow = 64 << 10

// etcdRound is one round: what was answered so far, and the streams that are open, by the names of their steps.
type etcdRound struct {
	*etcdClient
	n       int
	answers map[string]bundle.EtcdAnswer
	streams map[string]*watchStream
	members map[string]uint64 // the ids of those that were added
}

// end closes what is still open.
func (r *etcdRound) end() {
	for _, s := range r.streams {
		s.close()
	}
}

// errNotSent says that a step lacks what an earlier one should have given.
var errNotSent = errors.New("not sent")

// take takes a step, and returns the record of its answer and that of the call.
func (r *etcdRound) take(ctx context.Context, s EtcdStep) (bundle.EtcdAnswer, bundle.Call) {
	limited, cancel := context.WithTimeoutCause(ctx, patience, errTimeUp)
	defer cancel()
	verb, _ := s.verb()
	a := bundle.EtcdAnswer{
		Load:  r.Name,
		Round: r.n,
		Step:  s.name(),
		Verb:  verb,
		Time:  time.Now().UTC(),
	}
	if key := s.key(); key != "" {
		a.Key = r.path(key)
	}
	err := r.ask(limited, s, &a)
	a.Done = time.Now().UTC()
	one := bundle.Call{
		Load:  a.Load,
		Round: a.Round,
		Time:  a.Time,
		Done:  a.Done,
		Verb:  verb,
		Path:  cmp.Or(a.Key, "/"+s.name()),
	}
	a.Code = codeOf(err)
	if err != nil {
		a.Error = err.Error()
		if a.Code == 0 {
			one.GaveUp, one.LoadEnded = limited.Err() != nil ||
				errors.Is(err, errTimeUp), ctx.Err() != nil
			a.LoadEnded = one.LoadEnded
		}
		if said, ok := status.FromError(err); ok && a.Code != 0 {
			one.Reason = said.Code().String()
		}
	}
	one.Code, one.Error = a.Code, a.Error
	r.answers[a.Step] = a
	return a, one
}

// path returns where a key lies in etcd.
func (r *etcdRound) path(key string) string {
	return "/relapse/" + r.Name + "/" + r.Arm + "/" + r.text(key)
}

func (r *etcdRound) text(s string) string {
	return kinds.ExpandText(s, map[string]any{"n": r.n - 1, "arm": r.Arm})
}

// ask sends the request of a step, and fills in what was answered.
func (r *etcdRound) ask(ctx context.Context, s EtcdStep, a *bundle.EtcdAnswer) (err error) {
	revision := func(step string) int64 {
		of := r.answers[step].Revision
		if of == 0 {
			err = cmp.Or(err, fmt.Errorf("%w: step %s gave no revision", errNotSent, step))
		}
		return of
	}
	switch {
	case s.Put != nil:
		value := []byte(r.text(s.Put.Value))
		if s.Put.Bytes > 0 {
			value = []byte(strings.Repeat("x", s.Put.Bytes))
		}
		out, err := pb.NewKVClient(r.conn).
			Put(ctx, &pb.PutRequest{Key: []byte(a.Key), Value: value})
		a.Revision = out.GetHeader().GetRevision()
		return err
	case s.Delete != nil:
		out, err := pb.NewKVClient(r.conn).
			DeleteRange(ctx, &pb.DeleteRangeRequest{Key: []byte(a.Key)})
		if err == nil && out.Deleted != 1 {
			return status.Errorf(codes.NotFound, "%d keys were deleted (want 1)", out.Deleted)
		}
		a.Revision = out.GetHeader().GetRevision()
		return err
	case s.Compact != nil:
		if a.Revision = revision(s.Compact.At); err == nil {
			_, err = pb.NewKVClient(r.conn).
				Compact(ctx, &pb.CompactionRequest{Revision: a.Revision, Physical: true})
		}
		return err
	case s.Watch != nil:
		a.From, a.Until = revision(s.Watch.From), revision(s.Watch.Until)
		if err != nil {
			return err
		}
		return r.watch(ctx, a, s.Watch.Within.Duration)
	case s.Open != nil:
		if s.Open.From != "" {
			a.From = revision(s.Open.From) + int64(s.Open.Ahead)
		}
		if err != nil {
			return err
		}
		stream, err := r.open(a.Key, s.Open.Watches, a.From)
		if err != nil {
			return err
		}
		if err := stream.confirmed(ctx); err != nil {
			stream.close()
			return err
		}
		r.streams[s.name()] = stream
		return nil
	}
	if s.AddMember != nil || s.member() != "" {
		return r.change(ctx, s, a)
	}
	_, of := s.takes()
	stream := r.streams[of]
	switch {
	case stream == nil:
		return fmt.Errorf("%w: stream %s was not opened", errNotSent, of)
	case s.Progress != nil:
		a.Revision, err = stream.progress(ctx, s.Progress.Within.Duration)
		return err
	case s.Cancel != nil:
		return stream.cancelAll(ctx, s.Cancel.Confirmed.Duration)
	}
	stream.close()
	delete(r.streams, of)
	return nil
}

// watch reads a watch, on a connection of its own, until it has shown the change a.Until.
func (r *etcdRound) watch(ctx context.Context, a *bundle.EtcdAnswer, within time.Duration) error {
	s, err := r.open(a.Key, 1, a.From)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.confirmed(ctx); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	defer context.AfterFunc(limited, s.end)()
	for {
		said, err := s.Recv()
		switch {
		case err == nil:
		case ctx.Err() == nil && limited.Err() != nil:
			return nil // what came by then is the answer
		default:
			return err
		}
		for _, e := range said.Events {
			a.Events = append(
				a.Events,
				bundle.EtcdEvent{
					Type:     mvccpb.Event_EventType(e.Type).String(),
					Key:      string(e.Kv.Key),
					Revision: e.Kv.ModRevision,
				},
			)
			if e.Kv.ModRevision >= a.Until {
				return nil
			}
		}
		if said.Canceled {
			a.Canceled, a.Compacted, a.Reason = true, said.CompactRevision, said.CancelReason
			return nil
		}
	}
}

// codeOf returns the HTTP code that etcd's gateway has for an answer; 0 if there was none.
func codeOf(err error) int {
	said, ok := status.FromError(err)
	switch {
	case err == nil:
		return http.StatusOK
	case !ok:
		return 0
	}
	switch said.Code() {
	case codes.InvalidArgument, codes.OutOfRange, codes.FailedPrecondition:
		return http.StatusBadRequest
	case codes.Unauthenticated:
		return http.StatusUnauthorized
	case codes.PermissionDenied:
		return http.StatusForbidden
	case codes.NotFound:
		return http.StatusNotFound
	case codes.AlreadyExists, codes.Aborted:
		return http.StatusConflict
	case codes.ResourceExhausted:
		return http.StatusTooManyRequests
	case codes.Unimplemented:
		return http.StatusNotImplemented
	case codes.Unknown, codes.Internal, codes.DataLoss:
		return http.StatusInternalServerError
	}
	return 0 // etcd can't be reached, or the time was up
}
