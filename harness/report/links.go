package report

import (
	"fmt"
	"html/template"
	"net/url"
	"regexp"

	"github.com/kube-relapse/relapse/harness/judge"
)

// forge matches the address of a pull request, an issue or a commit.
var forge = regexp.MustCompile(
	`/([^/]+)/(?:-/)?(pull|pulls|merge_requests|issues|commit)/([0-9a-f]+)/?$`,
)

// linkName returns what a reader calls an address: "kubernetes PR 72709".
func linkName(address string) string {
	if m := forge.FindStringSubmatch(address); m != nil {
		switch m[2] {
		case "issues":
			return m[1] + " issue " + m[3]
		case "commit":
			return fmt.Sprintf("%s commit %.12s", m[1], m[3])
		}
		return m[1] + " PR " + m[3]
	}
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host + u.Path
	}
	return address
}

// address makes a link of a scenario's reference, "" if it leads to no web page.
func address(of string) template.URL {
	if u, err := url.Parse(of); err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	return template.URL(of)
}

// about returns what there is to know about an arm of a pair; the zero value if nothing is.
func about(v judge.Verdict, pair, arm string) judge.Built {
	for _, p := range v.Pairs {
		for _, b := range p.Arms {
			if p.Name == pair && b.Arm == arm {
				return b
			}
		}
	}
	return judge.Built{}
}
