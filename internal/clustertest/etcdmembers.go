package clustertest

import (
	"context"
	"slices"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// etcdMembers are the members that clients have added to the cluster of an etcd in memory.
type etcdMembers struct {
	pb.UnimplementedClusterServer

	mu  sync.Mutex
	all []*pb.Member
	id  uint64
}

// MemberAdd adds a member.
func (e *etcdMembers) MemberAdd(
	_ context.Context,
	r *pb.MemberAddRequest,
) (*pb.MemberAddResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.id++
	one := &pb.Member{ID: e.id, PeerURLs: r.PeerURLs, IsLearner: r.IsLearner}
	e.all = append(slices.Clone(e.all), one)
	return &pb.MemberAddResponse{Member: one, Members: e.all}, nil
}

// MemberUpdate gives a member other addresses.
func (e *etcdMembers) MemberUpdate(
	_ context.Context,
	r *pb.MemberUpdateRequest,
) (*pb.MemberUpdateResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := e.find(r.ID)
	if i < 0 {
		return nil, status.Error(codes.NotFound, "member not found")
	}
	e.all = slices.Clone(e.all)
	e.all[i] = &pb.Member{ID: r.ID, PeerURLs: r.PeerURLs, IsLearner: e.all[i].IsLearner}
	return &pb.MemberUpdateResponse{Members: e.all}, nil
}

// MemberRemove removes a member.
func (e *etcdMembers) MemberRemove(
	_ context.Context,
	r *pb.MemberRemoveRequest,
) (*pb.MemberRemoveResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := e.find(r.ID)
	if i < 0 {
		return nil, status.Error(codes.NotFound, "member not found")
	}
	e.all = slices.Delete(slices.Clone(e.all), i, i+1)
	return &pb.MemberRemoveResponse{Members: e.all}, nil
}

// MemberList lists the members.
func (e *etcdMembers) MemberList(
	context.Context,
	*pb.MemberListRequest,
) (*pb.MemberListResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return &pb.MemberListResponse{Members: e.all}, nil
}

// find returns where a member is in the list, -1 if it isn't; the caller holds mu.
func (e *etcdMembers) find(id uint64) int {
	return slices.IndexFunc(e.all, func(m *pb.Member) bool { return m.ID == id })
}
