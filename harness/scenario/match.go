package scenario

import (
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
)

// Match says how to recognise the incident in evidence from elsewhere: a production bundle, a dump, a log.
type Match struct {
	// Packages identify the subject's process where nothing else does: a dump is the subject's if one of its functions
	// is in these packages.
	Packages []string `json:"packages,omitempty" jsonschema:"beginnings of functions' names that only the subject's own process has on a stack: k8s.io/kubernetes/cmd/kubelet"`
	Module   string   `json:"module,omitempty" jsonschema:"the module that has the bug, if any program may be linked with it: affected then is about its version, which the stacks name"`
	Affected string   `json:"affected,omitempty" jsonschema:"range of the subject's versions that have the bug, backports left out: <1.14.0"`
	Fixed    string   `json:"fixed,omitempty" jsonschema:"the versions with the fix, in words: v1.23.0 and later"`
	Signs    []Sign   `json:"signs" jsonschema:"what can be seen from outside"`
}

// The weights of signs. A decisive sign that is met is the incident; a suspicious one may be.
const (
	Decisive   = "decisive"
	Suspicious = "suspicious"
)

// Sign is something of the incident that evidence from elsewhere may show. All of its checks have to be met. Each check
// reads all of the evidence as one phase; only relapse's own bundles have the phases that a check may name.
type Sign struct {
	Name     string  `json:"name"`
	Is       string  `json:"is" jsonschema:"what it says if it is met: decisive, this is the incident; suspicious, it may be"`
	RulesOut bool    `json:"rulesOut,omitempty" jsonschema:"if it is known not to be met, that process doesn't have the incident"`
	Ground   string  `json:"ground" jsonschema:"why it is that, in one sentence"`
	Settle   string  `json:"settle" jsonschema:"the command that gets the evidence for it"`
	Checks   []Check `json:"checks" jsonschema:"what is asked of the evidence; all have to be met"`
}

// match checks the section that describes how to recognise the incident elsewhere.
func (r *rules) match() {
	m := r.s.Spec.Match
	if m == nil {
		return
	}
	if _, err := semver.ParseRange(m.Affected); m.Affected != "" && err != nil {
		r.add("spec.match.affected", "%q is not a range of versions: %s (want for example <1.14.0)", m.Affected, lower(err))
	}
	if (m.Affected == "") != (m.Fixed == "") {
		r.add("spec.match", "has one of affected and fixed (want both, or neither)")
	}
	r.unique("spec.match.signs", "sign", each(m.Signs, func(s Sign) string { return s.Name }))
	if len(m.Signs) > 0 && !slices.ContainsFunc(m.Signs, func(s Sign) bool { return s.Is == Decisive }) {
		r.add("spec.match.signs", "has no decisive sign, so that the incident would never be met")
	}
	for i, s := range m.Signs {
		r.checks(fmt.Sprintf("spec.match.signs.%d.checks", i), "fault", s.Checks)
	}
}
