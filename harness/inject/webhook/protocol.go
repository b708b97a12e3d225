package webhook

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// Protocol is what an endpoint is asked, and what its answers look like.
type Protocol interface {
	// read reads the body of a request.
	read(body []byte) (question, error)
	// valid refuses what has no meaning in this protocol's answers. Each error is one of a rule's field, or of the rule.
	valid(Rule) error
}

// question is a request.
type question struct {
	request json.RawMessage // what rules see as the variable request
	words   map[string]any  // what the texts of an answer may refer to, besides arm and n
	review  bundle.Review   // what the record says of the request
	shows   bool            // where the hook shows that the endpoint is asked, this request does

	// answer returns the body of a rule's answer with a response, or with the usual one if response is nil. words has all
	// words.
	answer func(r *compiled, response json.RawMessage, words map[string]any) ([]byte, error)
	// told completes the record by what an answer says.
	told func(body []byte, into *bundle.Review)
}

// object reads a response, and gives it the request's uid unless it has one. A nil one is empty.
func object(raw json.RawMessage, uid string) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	if raw != nil {
		if err := json.Unmarshal(raw, &out); err != nil || out == nil {
			return nil, fmt.Errorf("%s is no JSON object", raw)
		}
	}
	if _, ok := out["uid"]; !ok {
		out["uid"], _ = json.Marshal(uid)
	}
	return out, nil
}

// refers returns an error if a text refers to a word that isn't one of those that have a value there.
func refers(raw json.RawMessage, known ...string) error {
	for _, m := range kinds.Placeholder.FindAllStringSubmatch(string(raw), -1) {
		if !strings.HasPrefix(m[0], "$$") && !slices.Contains(known, m[1]) {
			return fmt.Errorf(
				"it refers to $(%s), which has no value here (want one of %s)",
				m[1],
				strings.Join(known, ", "),
			)
		}
	}
	return nil
}
