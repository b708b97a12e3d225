package loads

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EtcdStep is one request, or a pause. Exactly one of its fields beside the name is set.
type EtcdStep struct {
	Name     string           `json:"name,omitempty" jsonschema:"what later steps of the round and checks call the step. Default: its verb"`
	Put      *EtcdPut         `json:"put,omitempty" jsonschema:"gives a key a value"`
	Delete   *EtcdKey         `json:"delete,omitempty" jsonschema:"deletes a key"`
	Compact  *EtcdCompact     `json:"compact,omitempty" jsonschema:"compacts the history, and waits until that is done on disk"`
	Watch    *EtcdWatch       `json:"watch,omitempty" jsonschema:"watches a key on a connection of its own, and reads what it shows"`
	Open     *EtcdOpen        `json:"open,omitempty" jsonschema:"opens a stream of watches on a connection of its own"`
	Progress *EtcdProgress    `json:"progress,omitempty" jsonschema:"asks etcd up to where the watches of a stream have shown everything, and reads what it says"`
	Cancel   *EtcdCancel      `json:"cancel,omitempty" jsonschema:"asks etcd to cancel each watch of a stream"`
	Close    *EtcdStream      `json:"close,omitempty" jsonschema:"ends a stream and its connection, as a client that goes"`
	Pause    *metav1.Duration `json:"pause,omitempty" jsonschema:"waits for so long"`

	AddMember    *EtcdNewMember  `json:"addMember,omitempty" jsonschema:"adds a member to the cluster, of which there is no process"`
	UpdateMember *EtcdMemberPeer `json:"updateMember,omitempty" jsonschema:"gives a member another address"`
	RemoveMember *EtcdMember     `json:"removeMember,omitempty" jsonschema:"removes a member"`
	Members      *EtcdMember     `json:"members,omitempty" jsonschema:"lists the members, and records what one of them is"`
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
	Within metav1.Duration `json:"within" refers:"stretch" jsonschema:"how long the watch is read at most, above 0 and below 30s"`
}

// EtcdOpen says how many watches of a key a stream has.
type EtcdOpen struct {
	EtcdKey
	Watches int    `json:"watches" jsonschema:"number of watches, at least 1"`
	From    string `json:"from,omitempty" jsonschema:"earlier step of the round: the watches begin at the revision of its change. Default: they begin now"`
	Ahead   int    `json:"ahead,omitzero" jsonschema:"with from: they begin so many revisions later; default: 0"`
}

// EtcdProgress names a stream whose progress is asked for.
type EtcdProgress struct {
	EtcdStream
	Within metav1.Duration `json:"within" refers:"stretch" jsonschema:"how long the stream is read for the answer at most, above 0 and below 30s. Without one the request has no answer"`
}

// EtcdCancel names a stream whose watches are to end.
type EtcdCancel struct {
	EtcdStream
	Confirmed metav1.Duration `json:"confirmed,omitzero" refers:"stretch" jsonschema:"reads the stream until etcd has confirmed the end of each watch, for so long at most. Default: nothing is read"`
}

// EtcdNewMember is a member that is added.
type EtcdNewMember struct {
	Peer    string `json:"peer" jsonschema:"the URL at which the other members would reach it"`
	Learner bool   `json:"learner,omitempty" jsonschema:"whether it is added as one that learns, and doesn't vote; default: false. A voter of which there is no process may cost the cluster its quorum"`
}

// EtcdMember names a member.
type EtcdMember struct {
	Of string `json:"of" jsonschema:"earlier step of the round, which added the member"`
}

// EtcdMemberPeer is a member with its new address.
type EtcdMemberPeer struct {
	EtcdMember
	Peer string `json:"peer" jsonschema:"the URL at which the other members would reach it from now on"`
}

// EtcdStream names a stream.
type EtcdStream struct {
	Of string `json:"of" jsonschema:"earlier step of the round, which opened the stream"`
}

// verb returns the name of what the step does, and how many things that would be.
func (s *EtcdStep) verb() (verb string, n int) {
	for name, set := range map[string]bool{"put": s.Put != nil, "delete": s.Delete != nil, "compact": s.Compact != nil,
		"watch": s.Watch != nil, "open": s.Open != nil, "progress": s.Progress != nil, "cancel": s.Cancel != nil, "close": s.Close != nil, "pause": s.Pause != nil,
		"addMember": s.AddMember != nil, "updateMember": s.UpdateMember != nil, "removeMember": s.RemoveMember != nil, "members": s.Members != nil} {
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
	case s.Open != nil && s.Open.From != "":
		return []string{s.Open.From}, ""
	case s.Progress != nil:
		return nil, s.Progress.Of
	case s.Cancel != nil:
		return nil, s.Cancel.Of
	case s.Close != nil:
		return nil, s.Close.Of
	}
	return nil, ""
}

// member returns the step that added the member which s is about, "" if s is about none.
func (s *EtcdStep) member() string {
	switch {
	case s.UpdateMember != nil:
		return s.UpdateMember.Of
	case s.RemoveMember != nil:
		return s.RemoveMember.Of
	case s.Members != nil:
		return s.Members.Of
	}
	return ""
}

// peer returns the address that s gives to a member, "" if it gives none.
func (s *EtcdStep) peer() string {
	switch {
	case s.AddMember != nil:
		return s.AddMember.Peer
	case s.UpdateMember != nil:
		return s.UpdateMember.Peer
	}
	return ""
}

// readable reports whether a stream can be read for so long: no request takes longer than patience, and one that was cut off
// would pass for one that showed less.
func readable(d metav1.Duration) bool { return d.Duration > 0 && d.Duration < patience }

// validate refuses what etcd can't be asked for, whatever the steps before it are.
func (s *EtcdStep) validate(at string) error {
	_, n := s.verb()
	keyed := s.Put != nil || s.Delete != nil || s.Watch != nil || s.Open != nil
	switch {
	case n != 1:
		return fmt.Errorf(
			"%s does %d things (want one of put, delete, compact, watch, open, progress, cancel, close, "+
				"addMember, updateMember, removeMember, members and pause)",
			at,
			n,
		)
	case s.Put != nil && s.Put.Value != "" && s.Put.Bytes != 0 || s.Put != nil && s.Put.Bytes < 0:
		return fmt.Errorf("%s has a value and %d bytes (want one of them)", at, s.Put.Bytes)
	case keyed && s.key() == "":
		return fmt.Errorf("%s has no key", at)
	case s.Watch != nil && !readable(s.Watch.Within):
		return fmt.Errorf(
			"%s is read within %s (want above 0 and below %s)",
			at,
			s.Watch.Within.Duration,
			patience,
		)
	case s.Open != nil && s.Open.Watches < 1:
		return fmt.Errorf("%s has %d watches (want at least 1)", at, s.Open.Watches)
	case s.Open != nil && (s.Open.Ahead < 0 || s.Open.Ahead > 0 && s.Open.From == ""):
		return fmt.Errorf(
			"%s is %d revisions ahead of %q (want 0 or more, with from)",
			at,
			s.Open.Ahead,
			s.Open.From,
		)
	case s.Progress != nil && !readable(s.Progress.Within):
		return fmt.Errorf(
			"%s is read within %s (want above 0 and below %s)",
			at,
			s.Progress.Within.Duration,
			patience,
		)
	case s.Cancel != nil && s.Cancel.Confirmed.Duration != 0 && !readable(s.Cancel.Confirmed):
		return fmt.Errorf(
			"%s is confirmed within %s (want above 0 and below %s)",
			at,
			s.Cancel.Confirmed.Duration,
			patience,
		)
	case s.Pause != nil && s.Pause.Duration <= 0:
		return fmt.Errorf("%s is a pause of %s (want above 0)", at, s.Pause.Duration)
	case (s.AddMember != nil || s.UpdateMember != nil) && s.peer() == "":
		return fmt.Errorf("%s has no peer (want a URL)", at)
	}
	if _, stream := s.takes(); (s.Progress != nil || s.Cancel != nil || s.Close != nil) && stream == "" {
		return fmt.Errorf("%s: %q is no stream that is open by then", at, stream)
	}
	if (s.UpdateMember != nil || s.RemoveMember != nil || s.Members != nil) && s.member() == "" {
		return fmt.Errorf("%s: %q is no member by then", at, s.member())
	}
	return nil
}
