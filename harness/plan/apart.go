package plan

import (
	"fmt"
	"strings"
)

// Apart returns what makes a trial other than the one that its scenario describes, one phrase each. The outcomes of
// such a trial say nothing about how often the scenario brings its incident back. Settings of declared parameters don't
// set a trial apart, and neither does a candidate beside the scenario's own arms.
func (p *Plan) Apart(t *Trial) (out []string) {
	meant := map[string]bool{}
	for name := range p.Values {
		meant[setTo(name, p.Params[name])] = true
	}
	for _, d := range t.Deviates {
		if !meant[d] && !strings.HasPrefix(d, doubtsVersion) && !strings.HasPrefix(d, doubtsStamp) {
			out = append(out, d)
		}
	}
	return out
}

// setTo says that a setting was made.
func setTo(name, value string) string { return fmt.Sprintf("%s is set to %s", name, value) }
