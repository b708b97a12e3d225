package artifacts

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/trial/environment"
	"github.com/kube-relapse/relapse/internal/sums"
)

// Carried is what the trials of a plan take from Artifacts, for another machine of the same platform. There it stands in
// for Artifacts, with neither Go nor a network nor the sources of a candidate. It is a cluster.Builder.
type Carried struct {
	Arms     map[string]environment.Build `json:"arms"`     // by armKey
	Fixtures map[string]string            `json:"fixtures"` // paths, by fixture
	Programs map[string]map[string]string `json:"programs"` // what clusters are made of: paths by program, by programsKey
	Parts    string                       `json:"parts"`    // by which way these came
	Mixed    map[string][]string          `json:"mixed"`    // MixedParts, by trial
}

// Carry returns what the trials of a plan take once it is all prepared, with the paths that programs will have in the
// folder to, and the files that belong there: the path of each there, and here.
func (a *Artifacts) Carry(
	p *plan.Plan,
	to string,
) (c *Carried, files map[string]string, err error) {
	c = &Carried{
		Arms:     map[string]environment.Build{},
		Fixtures: map[string]string{},
		Programs: map[string]map[string]string{},
		Parts:    a.Parts(),
		Mixed:    map[string][]string{},
	}
	files = map[string]string{}
	place := func(from string) (string, error) {
		sum, err := sums.File(from)
		if err != nil {
			return "", err
		}
		at := path.Join(to, sum, filepath.Base(from))
		files[at] = from
		return at, nil
	}
	for _, t := range p.Trials {
		c.Mixed[t.ID] = a.MixedParts(t)
		for _, arm := range t.Arms {
			b, err := a.Of(arm.Arm)
			if err != nil {
				return nil, nil, err
			}
			if c.Arms[armKey(arm.Arm)], err = placed(b, place); err != nil {
				return nil, nil, err
			}
		}
	}
	for name, from := range a.fixtures {
		if c.Fixtures[name], err = place(from); err != nil {
			return nil, nil, err
		}
	}
	for key, all := range a.asked {
		c.Programs[key] = map[string]string{}
		for name, from := range all {
			if c.Programs[key][name], err = place(from); err != nil {
				return nil, nil, err
			}
		}
	}
	return c, files, nil
}

// placed returns a build with the paths that place gives to its programs.
func placed(
	b environment.Build,
	place func(string) (string, error),
) (_ environment.Build, err error) {
	before := b.Before
	b.Before = nil
	for _, one := range before {
		if one, err = placed(one, place); err != nil {
			return b, err
		}
		b.Before = append(b.Before, one)
	}
	b.Path, err = place(b.Path)
	return b, err
}

// ReadCarried reads what was carried as JSON.
func ReadCarried(raw []byte) (*Carried, error) {
	c := &Carried{}
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, fmt.Errorf("reading what was carried: %w", err)
	}
	return c, nil
}

// Prepare has the provider get what its clusters are made of, and builds nothing. It returns the versions that verdicts
// name.
func (c *Carried) Prepare(
	ctx context.Context,
	p *plan.Plan,
	on cluster.Provider,
) (versions map[string]string, err error) {
	versions, err = on.Prepare(ctx, p.Needs(c))
	return withParts(versions, c.Parts), err
}

// Of returns the build of an arm.
func (c *Carried) Of(arm scenario.Arm) (environment.Build, error) {
	b, ok := c.Arms[armKey(arm)]
	if !ok {
		return b, fmt.Errorf("the arm %s was not carried here", arm.Name)
	}
	return b, nil
}

// Fixture returns the path of a fixture's program.
func (c *Carried) Fixture(name string) string { return c.Fixtures[name] }

// MixedParts returns what Artifacts.MixedParts returned for a trial.
func (c *Carried) MixedParts(t plan.Trial) []string { return c.Mixed[t.ID] }

// BuildFixture returns the path of a fixture's program, and builds nothing.
func (c *Carried) BuildFixture(_ context.Context, name string) (string, error) {
	if c.Fixtures[name] == "" {
		return "", fmt.Errorf("the fixture %s was not carried here", name)
	}
	return c.Fixtures[name], nil
}

// BuildPrograms returns the paths of programs, and builds nothing.
func (c *Carried) BuildPrograms(
	_ context.Context,
	module, version string,
	packages ...string,
) (map[string]string, error) {
	key := programsKey(module, version, packages)
	if c.Programs[key] == nil {
		return nil, fmt.Errorf("the programs of %s were not carried here", key)
	}
	return c.Programs[key], nil
}

func programsKey(module, version string, packages []string) string {
	return strings.Join(append([]string{module, version}, packages...), " ")
}
