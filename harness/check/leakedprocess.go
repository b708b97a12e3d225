package check

import (
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// standing reads the records of what can't come back once it is gone, such as a container: that it is still there at the end of a window
// shows that it was there all along, so that a gap before is no matter.
func standing[T any](v bundle.View, kind bundle.Kind, cell string, w bundle.Window) stream[T] {
	word := lastWord(v.Artifacts(bundle.Query{Kind: kind, Cell: cell}))
	if !word.Before(w.End.Add(-slack(w))) {
		return read[T](v, kind, cell, bundle.Window{Start: word, End: word})
	}
	return read[T](v, kind, cell, w)
}

// lastWord is the latest moment for which streams speak; zero if there is none.
func lastWord(arts []bundle.Artifact) time.Time {
	var out time.Time
	for _, a := range arts {
		if a.Missing || a.Error != "" || a.Coverage == nil {
			continue
		}
		last := a.Coverage.Last
		for _, g := range a.Coverage.Gaps {
			if !g.To.Before(last) && g.From.Before(last) {
				last = g.From
			}
		}
		out = later(out, last)
	}
	return out
}
