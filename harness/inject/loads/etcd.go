package loads

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Load, kinds.Kind[load.Load]{
		Name: "etcd",
		Doc: "Requests to etcd as a client of its own, past the API server and past the seam etcd.\n\n" +
			"Each round takes the steps in order, each after the answer to the one before. A step is one request: put, " +
			"delete, compact, watch; open, progress, cancel and close of a stream of watches; addMember, updateMember, " +
			"removeMember and members of the cluster; or it is a pause. $(n) is the " +
			"number of the round, from 0, and $(arm) the arm's name. A step without a name is called by its verb. " +
			"Later steps of the round name an earlier one, whose revision or stream they take.\n\n" +
			"A watch is read until it has shown the change that the step `until` made, until etcd ends it, or until " +
			"`within` is over. A stream that was opened is one connection with a number of watches; once etcd has " +
			"confirmed them nothing more is read from it, as by a client that hangs, unless the steps progress and cancel " +
			"say so. Members that are added have no process. What members says of one is asked by the check etcdMembers. Progress asks etcd up to which revision the watches of a stream have shown everything, and reads the " +
			"stream until etcd says so.\n\n" +
			"A round has begun with the first answer of success. Each request is recorded with its answer: the HTTP code " +
			"that etcd's gateway has for it, the revision, and what a watch showed. None fails the load. A cancel whose " +
			"answers nobody reads, and a close, have 200 once they were sent. A step that needs what an earlier one failed to " +
			"give is recorded as without an answer. A request is given up after 30s.",
		Example: "name: history\nkind: etcd\ntarget: {mode: all, selector: {component: etcd}}\nspec:\n  rounds: 20\n" +
			"  pause: 1s\n  steps:\n    - put: {key: a-$(n), value: one}\n    - delete: {key: a-$(n)}\n" +
			"    - {name: again, put: {key: a-$(n), value: two}}\n    - compact: {at: delete}\n" +
			"    - watch: {key: a-$(n), from: delete, until: again, within: 5s}\n",
		New: func() load.Load { return &Etcd{Rounds: 1} },
	})
}

// Etcd sends requests to etcd.
type Etcd struct {
	Steps  []EtcdStep      `json:"steps" jsonschema:"what each round does, in order"`
	Rounds int             `json:"rounds,omitzero" jsonschema:"number of rounds, one after another; at least 1"`
	Pause  metav1.Duration `json:"pause,omitzero" jsonschema:"time from the end of a round to the next; default: 0s"`
}

// Makes returns the kinds of artifacts that the load records: the calls, their summary, and what etcd answered.
func (*Etcd) Makes() []bundle.Kind {
	return []bundle.Kind{bundle.Calls, bundle.LoadSummary, bundle.EtcdAnswers}
}

// requests returns how many requests a round has.
func (l *Etcd) requests() (n int) {
	for _, s := range l.Steps {
		if s.Pause == nil {
			n++
		}
	}
	return n
}

// Validate refuses steps that etcd can't be asked for, and a stream or a member that would stay.
func (l *Etcd) Validate() error {
	changes, streams, left := map[string]bool{}, map[string]bool{}, map[string]string{}
	for i, s := range l.Steps {
		at := fmt.Sprintf("steps[%d]", i)
		if err := s.validate(at); err != nil {
			return err
		}
		of, stream := s.takes()
		switch member := s.member(); {
		case changes[s.name()] || streams[s.name()]:
			return fmt.Errorf(
				"%s is called %s, as an earlier one is (want another name)",
				at,
				s.name(),
			)
		case stream != "" && left[stream] != "close":
			return fmt.Errorf("%s: %q is no stream that is open by then", at, stream)
		case member != "" && left[member] != "removeMember" && (s.Members == nil || !streams[member]):
			return fmt.Errorf("%s: %q is no member by then", at, member)
		}
		for _, name := range of {
			if !changes[name] {
				return fmt.Errorf("%s: %q is no put or delete before it", at, name)
			}
		}
		switch {
		case s.Put != nil, s.Delete != nil:
			changes[s.name()] = true
		case s.Open != nil:
			streams[s.name()], left[s.name()] = true, "close"
		case s.AddMember != nil:
			streams[s.name()], left[s.name()] = true, "removeMember"
		case s.Close != nil:
			delete(left, stream)
		case s.RemoveMember != nil:
			delete(left, s.RemoveMember.Of)
		}
	}
	for name, end := range left {
		return fmt.Errorf("what %s made stays (want a step %s: {of: %s})", name, end, name)
	}
	switch {
	case l.requests() == 0:
		return errors.New("steps has no request")
	case l.Rounds < 1:
		return fmt.Errorf("rounds is %d (want at least 1)", l.Rounds)
	case l.Pause.Duration < 0:
		return fmt.Errorf("pause is %s (want 0 or more)", l.Pause.Duration)
	}
	return nil
}

// Describe returns in words what the load asks for.
func (l *Etcd) Describe() string {
	var steps []string
	for _, s := range l.Steps {
		verb, _ := s.verb()
		if key := s.key(); key != "" {
			verb += " " + key
		}
		if s.Pause == nil {
			steps = append(steps, verb)
		}
	}
	return fmt.Sprintf(
		"%d rounds of %d requests to etcd: %s",
		l.Rounds,
		l.requests(),
		strings.Join(steps, ", "),
	)
}

// Prepare makes nothing: a key needs nothing around it.
func (*Etcd) Prepare(context.Context, load.Target) error { return nil }

// Run takes the steps, round after round. An error means that evidence could not be written, or that etcd of this cluster
// has no clients of its own.
func (l *Etcd) Run(ctx context.Context, t load.Target, w *bundle.Writer) error {
	c, err := newEtcdClient(t)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	answers, err := w.Stream(bundle.Meta{Kind: bundle.EtcdAnswers, Arm: t.Arm}, "jsonl")
	if err != nil {
		return err
	}
	answers.Alive(time.Now())
	var lost error
	sum := bundle.Load{Name: t.Name, Way: l.Describe(), Bytes: l.bytes()}
	err = inRounds(ctx, t, w, sum, schedule{rounds: l.Rounds, calls: l.requests(),
		round: func(n int, began func()) <-chan bundle.Call {
			out := make(chan bundle.Call)
			go func() {
				defer close(out)
				if n > 1 {
					_ = wait(ctx, l.Pause.Duration) // the end of ctx is seen next
				}
				r := &etcdRound{
					etcdClient: c,
					n:          n,
					answers:    map[string]bundle.EtcdAnswer{},
					streams:    map[string]*watchStream{},
					members:    map[string]uint64{},
				}
				defer r.end()
				for _, s := range l.Steps {
					if ctx.Err() != nil {
						return
					}
					if s.Pause != nil {
						_ = wait(ctx, s.Pause.Duration)
						continue
					}
					a, one := r.take(ctx, s)
					if bundle.Success(a.Code) && s.Close == nil && s.Cancel == nil { // those are the client's alone
						began()
					}
					lost = errors.Join(lost, answers.JSON(a))
					out <- one
				}
			}()
			return out
		}})
	answers.Alive(time.Now())
	return errors.Join(err, lost, answers.Close())
}

// bytes returns how many bytes of values a round puts.
func (l *Etcd) bytes() (n int64) {
	for _, s := range l.Steps {
		if s.Put != nil {
			n += int64(len(s.Put.Value) + s.Put.Bytes)
		}
	}
	return n
}
