package verdict

import (
	"fmt"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// stretches are the parts of a trial in which an arm was to run one of its builds each.
type stretches struct {
	digests []string              // of the builds, in order
	ends    []bundle.EndedByFault // the planned ends, each of which put another build in place
	samples []int                 // with a digest, of each build
	paths   []string              // where the ends were recorded
	doubt   error                 // why not all ends are known
}

func stretchesOf(v bundle.View, arm string, digests []string) *stretches {
	s := &stretches{digests: digests, samples: make([]int, len(digests))}
	if len(digests) == 1 {
		return s
	}
	var ends []bundle.EndedByFault
	ends, s.paths, s.doubt = question.Ends(v, arm)
	for _, e := range ends {
		if e.Build > 0 {
			s.ends = append(s.ends, e)
		}
	}
	return s
}

// take counts a sample, and returns the digest of the build that it should be of. A process that a fault has yet to end
// is of the build before.
func (s *stretches) take(one bundle.IdentitySample) string {
	n := 0
	for _, e := range s.ends {
		if one.Time.Before(e.Time) || one.PID == e.PID && one.StartTicks == e.StartTicks || n == len(s.digests)-1 {
			break
		}
		n++
	}
	s.samples[n]++
	return s.digests[n]
}

// wrong says why the arm can't be said to have run each of its builds in its stretch. It returns nil if it has.
func (s *stretches) wrong() error {
	if s.doubt != nil {
		return s.doubt
	}
	for i, e := range s.ends {
		if e.Build != i+2 {
			return check.Doubt(
				check.OtherProcess,
				"%s put build %d in place of build %d",
				e.Fault,
				e.Build,
				i+1,
			)
		}
	}
	if n := len(s.ends) + 1; n < len(s.digests) {
		return check.Doubt(
			check.TooFew,
			"build %d of %d was never put in place",
			n+1,
			len(s.digests),
		)
	}
	for i, n := range s.samples {
		if n == 0 {
			return check.Doubt(check.TooFew, "there is no sample of build %d", i+1)
		}
	}
	return nil
}

func (s *stretches) wanted() string {
	var all []string
	for _, d := range s.digests {
		all = append(all, short(d))
	}
	return strings.Join(all, ", then ")
}

func (s *stretches) seen() string {
	var all []string
	for i, d := range s.digests {
		all = append(all, fmt.Sprintf("%s in %d samples", short(d), s.samples[i]))
	}
	return strings.Join(all, ", then ")
}
