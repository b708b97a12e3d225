package loads

import (
	"context"
	"fmt"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// change sends the request of a step about members, and fills in what etcd says of the member.
func (r *etcdRound) change(ctx context.Context, s EtcdStep, a *bundle.EtcdAnswer) error {
	client := pb.NewClusterClient(r.conn)
	if s.AddMember != nil {
		out, err := client.MemberAdd(
			ctx,
			&pb.MemberAddRequest{
				PeerURLs:  []string{s.AddMember.Peer},
				IsLearner: s.AddMember.Learner,
			},
		)
		if err != nil {
			return err
		}
		r.members[s.name()] = out.Member.ID
		a.Member = memberOf(out.Member.ID, out.Members)
		return nil
	}
	id, ok := r.members[s.member()]
	if !ok {
		return fmt.Errorf("%w: step %s added no member", errNotSent, s.member())
	}
	var all []*pb.Member
	switch {
	case s.UpdateMember != nil:
		out, err := client.MemberUpdate(
			ctx,
			&pb.MemberUpdateRequest{ID: id, PeerURLs: []string{s.UpdateMember.Peer}},
		)
		if err != nil {
			return err
		}
		all = out.Members
	case s.RemoveMember != nil:
		out, err := client.MemberRemove(ctx, &pb.MemberRemoveRequest{ID: id})
		if err != nil {
			return err
		}
		all = out.Members
	default:
		out, err := client.MemberList(ctx, &pb.MemberListRequest{Linearizable: true})
		if err != nil {
			return err
		}
		all = out.Members
	}
	a.Member = memberOf(id, all)
	return nil
}

// memberOf returns what a list says of a member.
func memberOf(id uint64, all []*pb.Member) *bundle.EtcdMember {
	out := &bundle.EtcdMember{ID: fmt.Sprintf("%x", id), Is: bundle.EtcdMissing}
	i := slices.IndexFunc(all, func(m *pb.Member) bool { return m.ID == id })
	if i < 0 {
		return out
	}
	out.Peers, out.Is = all[i].PeerURLs, bundle.EtcdVoter
	if all[i].IsLearner {
		out.Is = bundle.EtcdLearner
	}
	return out
}
