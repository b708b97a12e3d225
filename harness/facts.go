package harness

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// single is the plan with this one trial in it.
func (w *World) single(t plan.Trial) plan.Plan {
	p := *w.plan
	p.Trials = []plan.Trial{t}
	return p
}

// facts is what a trial's bundle records of the world.
func (w *World) facts(t plan.Trial) bundle.World {
	out := bundle.World{
		StartedAt: w.started, Versions: w.versions, Computed: map[string]string{},
		Modelled: slices.Clone(t.Modelled), Deviates: slices.Clone(t.Deviates),
	}
	for _, c := range t.Cells {
		b := w.cells[c.Name]
		out.Cells = append(out.Cells, bundle.CellWorld{
			Cell: c.Name, Arm: c.Arm.Name, Node: w.nodeOf(c.Name), Namespace: c.Namespace, Digest: b.digest, Graph: b.graph, Flags: b.flags, GoVersion: b.goVersion,
			Changes: b.changes, Constants: b.constants,
		})
		for _, m := range b.modelled {
			if !slices.Contains(out.Modelled, m) {
				out.Modelled = append(out.Modelled, m)
			}
		}
	}
	return out
}

// digests are the SHA-256 of the binaries that a trial's arms were built to.
func (w *World) digests(t plan.Trial) map[string]string {
	out := map[string]string{}
	for _, c := range t.Cells {
		out[c.Arm.Name] = w.cells[c.Name].digest
	}
	return out
}

// nodeOf is the name of a cell's node, which is known before it exists.
func (w *World) nodeOf(cell string) string {
	for _, c := range w.trial.Cells {
		if in := w.trial.ClusterOf(cell); c.Name == cell && in != nil {
			return w.clusterName(in.Name) + "-" + c.Node
		}
	}
	return ""
}

// armKey addresses an arm by all that it is built from.
func armKey(a scenario.Arm) string {
	raw, err := json.Marshal(a.Source)
	if err != nil { // a Source is plain data
		panic(err)
	}
	return string(raw)
}

func sha256File(path string) (sum string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// cutLast cuts s around its last sep.
func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
