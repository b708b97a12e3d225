package bundle_test

import (
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// TestCovers asks about the seconds 100 to 200 with a slack of 5 s.
func TestCovers(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	type gaps [][2]int
	for _, c := range []struct {
		name        string
		first, last int
		gaps        gaps
		want        bool
	}{
		{"whole", 90, 210, nil, true},
		{"begins and ends within the slack", 105, 195, nil, true},
		{"begins too late", 106, 210, nil, false},
		{"ends too early", 90, 194, nil, false},
		{"a gap before", 90, 210, gaps{{91, 100}}, true},
		{"a gap after", 90, 210, gaps{{200, 209}}, true},
		{"a gap that reaches in at the start by the slack", 90, 210, gaps{{91, 105}}, true},
		{"a gap that reaches in at the start by more", 90, 210, gaps{{91, 106}}, false},
		{"a gap that reaches in at the end by the slack", 90, 240, gaps{{195, 235}}, true},
		{"a gap that reaches in at the end by more", 90, 240, gaps{{194, 235}}, false},
		{"a short gap inside, near the start", 90, 210, gaps{{101, 103}}, false},
		{"a short gap inside, near the end", 90, 210, gaps{{197, 199}}, false},
		{"a gap over all of it", 90, 210, gaps{{91, 209}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cov := &bundle.Coverage{First: at(c.first), Last: at(c.last)}
			for _, g := range c.gaps {
				cov.Gaps = append(cov.Gaps, bundle.Gap{From: at(g[0]), To: at(g[1])})
			}
			if got := cov.Covers(at(100), at(200), 5*time.Second); got != c.want {
				t.Errorf("covers: %v, want %v", got, c.want)
			}
		})
	}
	if (*bundle.Coverage)(nil).Covers(at(100), at(200), 5*time.Second) {
		t.Error("no coverage covers something")
	}
}
