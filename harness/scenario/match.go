package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
)

// Match says how to recognise the incident in evidence from elsewhere: a production bundle, a dump, a log.
type Match struct {
	// Packages identify the subject's process where nothing else does: a dump is the subject's if one of its functions
	// is in these packages.
	Packages []string `json:"packages,omitempty" jsonschema:"prefixes of function names that only stacks of the subject's own process have: k8s.io/kubernetes/cmd/kubelet"`
	Module   string   `json:"module,omitempty" jsonschema:"the module that has the bug, for a bug in a library; affected is then a range of the module's versions, which file names on the stacks show"`
	Affected string   `json:"affected,omitempty" jsonschema:"semver range of the subject's versions that have the bug, without the versions that got the fix as a backport: <1.14.0"`
	Fixed    string   `json:"fixed,omitempty" jsonschema:"the versions with the fix, in words: v1.23.0 and later, which is the default where affected is <1.23.0"`
	Signs    []Sign   `json:"signs" jsonschema:"signs of the incident that evidence from elsewhere can show; at least one must be decisive"`
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
	Is       string  `json:"is" jsonschema:"what the sign means if all its checks are met: decisive, this is the incident; suspicious, this may be the incident; the default is suspicious"`
	RulesOut bool    `json:"rulesOut,omitempty" jsonschema:"true if a process that is known not to show the sign doesn't have the incident; the default is false"`
	Ground   string  `json:"ground" jsonschema:"why the sign is decisive or suspicious, in one sentence"`
	Settle   string  `json:"settle" jsonschema:"the command that gets the evidence for the sign; the default is that of the sign above"`
	Checks   []Check `json:"checks" jsonschema:"checks of the evidence; the sign is met if all of them are met"`
}

// match checks the section that describes how to recognise the incident elsewhere.
func (r *rules) match() {
	m := r.s.Spec.Match
	if m == nil {
		return
	}
	n := len(r.out)
	if in, err := semver.ParseRange(m.Affected); m.Affected != "" && err == nil && !someIn(in, m.Affected) {
		r.add("spec.match.affected", "%q has no version in it (want for example >=1.30.0 <1.33.13 || >=1.34.0 <1.34.9)", m.Affected)
	} else if m.Affected != "" && err != nil {
		r.add(
			"spec.match.affected",
			"%q is not a range of versions: %s (want for example <1.14.0, without a v)",
			m.Affected,
			lower(err),
		)
	}
	if len(r.out) == n && (m.Affected == "") != (m.Fixed == "") {
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

// someIn reports whether a range that was read from text has a version: one that the text names, or one right beside it.
func someIn(in semver.Range, text string) bool {
	for _, name := range append(inRange.FindAllString(text, -1), "0.0.0") {
		v, err := semver.ParseTolerant(name)
		if err != nil {
			continue // x stands for any number: some version fits
		}
		next, before := v, v
		next.Patch++
		next.Pre = nil
		switch {
		case v.Patch > 0:
			before.Patch--
		case v.Minor > 0:
			before.Minor--
		case v.Major > 0:
			before.Major--
		}
		if in(v) || in(next) || in(before) {
			return true
		}
	}
	return strings.Contains(text, "x")
}

// inRange matches a version in a range of versions.
var inRange = regexp.MustCompile(`\d[^\s<>=!|]*`)

// Range reads a semver range of releases. A version in it may go without its last parts: >=1.30 <1.34.
func Range(text string) (semver.Range, error) {
	in, err := semver.ParseRange(inRange.ReplaceAllStringFunc(text, func(v string) string {
		for strings.Count(v, ".") < 2 && !strings.ContainsAny(v, "-+x") {
			v += ".0"
		}
		return v
	}))
	if err == nil && !someIn(in, text) {
		return nil, fmt.Errorf("%q has no version in it (want for example >=1.30 <1.34)", text)
	}
	if err != nil {
		return nil, fmt.Errorf(
			"%q is not a range of versions: %s (want for example >=1.30 <1.34)",
			text,
			lower(err),
		)
	}
	return in, nil
}

// survey checks the section that says which releases to ask about.
func (r *rules) survey() {
	o := r.s.Spec.Survey
	if o == nil {
		return
	}
	if _, err := Range(o.Versions); err != nil {
		r.add("spec.survey.versions", "%s", err)
	}
}
