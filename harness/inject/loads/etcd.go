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
			"delete, compact, watch, or open, cancel and close of a stream of watches; or it is a pause. $(n) is the " +
			"number of the round, from 0, and $(arm) the arm's name. A step without a name is called by its verb. " +
			"Later steps of the round name an earlier one, whose revision or stream they take.\n\n" +
			"A watch is read until it has shown the change that the step `until` made, until etcd ends it, or until " +
			"`within` is over. A stream that was opened is one connection with a number of watches; once etcd has " +
			"confirmed them nothing more is read from it, as by a client that hangs, unless the step cancel says so.\n\n" +
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

// EtcdStep is one request, or a pause. Exactly one of its fields beside the name is set.
type EtcdStep struct {
	Name    string           `json:"name,omitempty" jsonschema:"what later steps of the round and checks call the step. Default: its verb"`
	Put     *EtcdPut         `json:"put,omitempty" jsonschema:"gives a key a value"`
	Delete  *EtcdKey         `json:"delete,omitempty" jsonschema:"deletes a key"`
	Compact *EtcdCompact     `json:"compact,omitempty" jsonschema:"compacts the history, and waits until that is done on disk"`
	Watch   *EtcdWatch       `json:"watch,omitempty" jsonschema:"watches a key on a connection of its own, and reads what it shows"`
	Open    *EtcdOpen        `json:"open,omitempty" jsonschema:"opens a stream of watches on a connection of its own"`
	Cancel  *EtcdCancel      `json:"cancel,omitempty" jsonschema:"asks etcd to cancel each watch of a stream"`
	Close   *EtcdStream      `json:"close,omitempty" jsonschema:"ends a stream and its connection, as a client that goes"`
	Pause   *metav1.Duration `json:"pause,omitempty" jsonschema:"waits for so long"`
}

// EtcdKey names a key.
type EtcdKey struct {
	Key string `json:"key" placeholders:"n,arm" jsonschema:"the key; it gets the prefix /relapse/<load>/<arm>/, where the API server keeps nothing"`
}

// EtcdPut is a key with its value.
type EtcdPut struct {
	EtcdKey
	Value string `json:"value,omitempty" placeholders:"n,arm" jsonschema:"the value"`
	Bytes int    `json:"bytes,omitempty" jsonschema:"in place of a value: as many bytes"`
}

// EtcdCompact says up to where the history is compacted.
type EtcdCompact struct {
	At string `json:"at" jsonschema:"earlier step of the round, whose change is the oldest that is left"`
}

// EtcdWatch says what is watched and for how long.
type EtcdWatch struct {
	EtcdKey
	From   string          `json:"from" jsonschema:"earlier step of the round: the watch begins at the revision of its change"`
	Until  string          `json:"until" jsonschema:"earlier step of the round: the watch is read until it has shown its change"`
	Within metav1.Duration `json:"within" refers:"stretch" jsonschema:"how long the watch is read at most, above 0"`
}

// EtcdOpen says how many watches of a key a stream has.
type EtcdOpen struct {
	EtcdKey
	Watches int `json:"watches" jsonschema:"number of watches, at least 1"`
}

// EtcdCancel names a stream whose watches are to end.
type EtcdCancel struct {
	EtcdStream
	Confirmed metav1.Duration `json:"confirmed,omitzero" refers:"stretch" jsonschema:"reads the stream until etcd has confirmed the end of each watch, for so long at most. Default: nothing is read"`
}

// EtcdStream names a stream.
type EtcdStream struct {
	Of string `json:"of" jsonschema:"earlier step of the round, which opened the stream"`
}

// Makes returns the kinds of artifacts that the load records: the calls, their summary, and what etcd answered.
func (*Etcd) Makes() []bundle.Kind {
	return []bundle.Kind{bundle.Calls, bundle.LoadSummary, bundle.EtcdAnswers}
}

// verb returns the name of what the step does, and how many things that would be.
func (s *EtcdStep) verb() (verb string, n int) {
	for name, set := range map[string]bool{"put": s.Put != nil, "delete": s.Delete != nil, "compact": s.Compact != nil,
		"watch": s.Watch != nil, "open": s.Open != nil, "cancel": s.Cancel != nil, "close": s.Close != nil, "pause": s.Pause != nil} {
		if set {
			verb, n = name, n+1
		}
	}
	return verb, n
}

// name returns what the step is called.
func (s *EtcdStep) name() string {
	if s.Name != "" {
		return s.Name
	}
	verb, _ := s.verb()
	return verb
}

// key returns the step's key, as the file has it.
func (s *EtcdStep) key() string {
	switch {
	case s.Put != nil:
		return s.Put.Key
	case s.Delete != nil:
		return s.Delete.Key
	case s.Watch != nil:
		return s.Watch.Key
	case s.Open != nil:
		return s.Open.Key
	}
	return ""
}

// takes returns the steps that s takes something of: changes, and a stream.
func (s *EtcdStep) takes() (changes []string, stream string) {
	switch {
	case s.Compact != nil:
		return []string{s.Compact.At}, ""
	case s.Watch != nil:
		return []string{s.Watch.From, s.Watch.Until}, ""
	case s.Cancel != nil:
		return nil, s.Cancel.Of
	case s.Close != nil:
		return nil, s.Close.Of
	}
	return nil, ""
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

// Validate refuses steps that etcd can't be asked for, and a stream that would stay open.
func (l *Etcd) Validate() error {
	changes, streams, open := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i, s := range l.Steps {
		at := fmt.Sprintf("steps[%d]", i)
		verb, n := s.verb()
		of, stream := s.takes()
		switch {
		case n != 1:
			return fmt.Errorf("%s does %d things (want one of put, delete, compact, watch, open, cancel, close and pause)", at, n)
		case changes[s.name()] || streams[s.name()]:
			return fmt.Errorf("%s is called %s, as an earlier one is (want another name)", at, s.name())
		case s.Put != nil && s.Put.Value != "" && s.Put.Bytes != 0 || s.Put != nil && s.Put.Bytes < 0:
			return fmt.Errorf("%s has a value and %d bytes (want one of them)", at, s.Put.Bytes)
		case s.key() == "" && len(of) == 0 && stream == "" && s.Pause == nil || s.Watch != nil && s.Watch.Key == "":
			return fmt.Errorf("%s has no key", at)
		case s.Watch != nil && s.Watch.Within.Duration <= 0:
			return fmt.Errorf("%s is read within %s (want above 0)", at, s.Watch.Within.Duration)
		case s.Open != nil && s.Open.Watches < 1:
			return fmt.Errorf("%s has %d watches (want at least 1)", at, s.Open.Watches)
		case s.Cancel != nil && s.Cancel.Confirmed.Duration < 0:
			return fmt.Errorf("%s is confirmed within %s (want above 0)", at, s.Cancel.Confirmed.Duration)
		case s.Pause != nil && s.Pause.Duration <= 0:
			return fmt.Errorf("%s is a pause of %s (want above 0)", at, s.Pause.Duration)
		case (s.Cancel != nil || s.Close != nil) && !open[stream]:
			return fmt.Errorf("%s: %q is no stream that is open by then", at, stream)
		}
		for _, name := range of {
			if !changes[name] {
				return fmt.Errorf("%s: %q is no put or delete before it", at, name)
			}
		}
		switch verb {
		case "put", "delete":
			changes[s.name()] = true
		case "open":
			streams[s.name()], open[s.name()] = true, true
		case "close":
			delete(open, stream)
		}
	}
	for name := range open {
		return fmt.Errorf("the stream %s is never closed (want a step close: {of: %s})", name, name)
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
	return fmt.Sprintf("%d rounds of %d requests to etcd: %s", l.Rounds, l.requests(), strings.Join(steps, ", "))
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
				r := &etcdRound{etcdClient: c, n: n, answers: map[string]bundle.EtcdAnswer{}, streams: map[string]*watchStream{}}
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
