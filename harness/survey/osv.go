package survey

import (
	"path"
	"strings"
	"time"
)

// home is where the scenarios are, which detect what a record is about.
const home = "https://github.com/kube-relapse/relapse"

// OSV is a record in the Open Source Vulnerability format, https://ossf.github.io/osv-schema/.
type OSV struct {
	SchemaVersion    string         `json:"schema_version"`
	ID               string         `json:"id"`
	Modified         time.Time      `json:"modified"`
	Summary          string         `json:"summary"`
	Details          string         `json:"details"`
	Affected         []OSVAffected  `json:"affected"`
	References       []OSVReference `json:"references"`
	DatabaseSpecific map[string]any `json:"database_specific"`
}

// OSVAffected is a package with the ranges of versions that have the bug.
type OSVAffected struct {
	Package  OSVPackage `json:"package"`
	Ranges   []OSVRange `json:"ranges,omitempty"`
	Versions []string   `json:"versions,omitempty"`
}

// OSVPackage names what is affected.
type OSVPackage struct {
	Ecosystem string `json:"ecosystem"`
	Name      string `json:"name"`
}

// OSVRange is a list of events in the order of versions.
type OSVRange struct {
	Type   string     `json:"type"`
	Events []OSVEvent `json:"events"`
}

// OSVEvent is a version from which on the bug is there, or isn't, or the last one of which it is known to be there. Exactly
// one field is set.
type OSVEvent struct {
	Introduced   string `json:"introduced,omitempty"`
	Fixed        string `json:"fixed,omitempty"`
	LastAffected string `json:"last_affected,omitempty"`
}

// OSVReference is a link with its kind.
type OSVReference struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

// osvVersion is the version of the format that is written.
const osvVersion = "1.7.5"

// OSV returns the answers as a record for a feed of one's own. Each branch has a range for each stretch of bad releases,
// from the first to the last that is known to be bad. It ends with the release that has the fix if there is none in between
// of which nothing is known. What is not known is in no range, unless there are bad releases on both sides;
// database_specific names it. Without a bad release nothing is affected.
func (r *Record) OSV(title string, references []string) OSV {
	rows := r.Rows()
	of := OSVAffected{Package: OSVPackage{Ecosystem: "Go", Name: r.Module}}
	if strings.HasPrefix(r.Module, "k8s.io/") {
		of.Package.Ecosystem = "Kubernetes"
	}
	unknown, unavailable := []string{}, []string{}
	for _, row := range rows {
		of.Ranges = append(of.Ranges, row.osvRanges()...)
		for _, c := range row.Cells {
			switch {
			case c.State == IsUnavailable:
				unavailable = append(unavailable, c.Version)
			case !c.known():
				unknown = append(unknown, c.Version)
			case c.State == IsBad:
				of.Versions = append(of.Versions, bare(c.Version))
			}
		}
	}
	out := OSV{
		SchemaVersion: osvVersion,
		ID:            "x_RELAPSE-" + r.Scenario,
		Modified:      r.Updated,
		Summary:       title,
		Details: strings.Join(
			Sentences(rows),
			"\n",
		),
		Affected:   []OSVAffected{},
		References: osvReferences(references),
		DatabaseSpecific: map[string]any{
			"scenario":    r.Scenario,
			"pair":        r.Pair,
			"relapse":     r.Relapse,
			"seed":        r.Seed,
			"runs":        r.Runs,
			"unknown":     unknown,
			"unavailable": unavailable,
		},
	}
	if len(of.Versions) > 0 {
		out.Affected = append(out.Affected, of)
	}
	return out
}

// osvRanges returns the stretches of bad releases.
func (r Row) osvRanges() (out []OSVRange) {
	from := ""
	if first := r.first(); first != nil && first.State == IsBad {
		from = first.Version
	}
	until := func(end OSVEvent) {
		out = append(
			out,
			OSVRange{Type: "SEMVER", Events: []OSVEvent{{Introduced: bare(from)}, end}},
		)
		from = ""
	}
	for _, c := range r.Changes {
		switch {
		case c.To == IsBad:
			from = c.By
		case c.Between == 0:
			until(OSVEvent{Fixed: bare(c.By)})
		default:
			until(OSVEvent{LastAffected: bare(c.After)})
		}
	}
	if from != "" {
		until(OSVEvent{LastAffected: bare(r.last().Version)})
	}
	return out
}

// bare returns a version as a semver range has it.
func bare(version string) string { return strings.TrimPrefix(version, "v") }

// osvReferences tells reports and fixes by their addresses.
func osvReferences(links []string) []OSVReference {
	out := []OSVReference{}
	for _, l := range links {
		kind := "WEB"
		switch path.Base(path.Dir(l)) {
		case "issues":
			kind = "REPORT"
		case "pull", "commit":
			kind = "FIX"
		}
		out = append(out, OSVReference{kind, l})
	}
	return append(out, OSVReference{"DETECTION", home})
}
