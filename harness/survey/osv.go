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

// OSVEvent is a version from which on the bug is there, or isn't. Exactly one field is set.
type OSVEvent struct {
	Introduced string `json:"introduced,omitempty"`
	Fixed      string `json:"fixed,omitempty"`
}

// OSVReference is a link with its kind.
type OSVReference struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

// osvVersion is the version of the format that is written.
const osvVersion = "1.7.5"

// OSV returns the answers as a record for a feed of one's own. A range begins with the first release that is known to be
// bad and ends with the next one that is known to be good, so that what is unknown after a bad release counts as bad, and
// what is unknown after a good one as good; database_specific names both. Without a bad release nothing is affected.
func (r *Record) OSV(title string, references []string) OSV {
	rows := r.Rows()
	of := OSVAffected{Package: OSVPackage{Ecosystem: "Go", Name: r.Module}}
	if strings.HasPrefix(r.Module, "k8s.io/") {
		of.Package.Ecosystem = "Kubernetes"
	}
	events, state := []OSVEvent{}, IsGood
	unknown, unavailable := []string{}, []string{}
	for _, row := range rows {
		for _, c := range row.Cells {
			version := strings.TrimPrefix(c.Version, "v")
			switch {
			case c.State == IsUnavailable:
				unavailable = append(unavailable, c.Version)
			case !c.known():
				unknown = append(unknown, c.Version)
			case c.State == IsBad:
				of.Versions = append(of.Versions, version)
			}
			switch {
			case !c.known() || c.State == state:
				continue
			case c.State == IsBad:
				events = append(events, OSVEvent{Introduced: version})
			default:
				events = append(events, OSVEvent{Fixed: version})
			}
			state = c.State
		}
	}
	out := OSV{SchemaVersion: osvVersion, ID: "x_RELAPSE-" + r.Scenario, Modified: r.Updated, Summary: title,
		Details: strings.Join(Sentences(rows), "\n"), Affected: []OSVAffected{}, References: osvReferences(references),
		DatabaseSpecific: map[string]any{"scenario": r.Scenario, "pair": r.Pair, "relapse": r.Relapse, "seed": r.Seed,
			"runs": r.Runs, "unknown": unknown, "unavailable": unavailable}}
	if len(events) > 0 {
		of.Ranges = []OSVRange{{Type: "SEMVER", Events: events}}
		out.Affected = append(out.Affected, of)
	}
	return out
}

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
