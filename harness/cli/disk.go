package cli

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kube-relapse/relapse/harness/artifacts"
	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/harness/build/release"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
)

// diskFlags say how much disk the cache may take up. Every command that builds has them.
type diskFlags struct {
	max int64 // 0 until fits was called, unless the flag is set
}

func (f *diskFlags) register(fl *pflag.FlagSet) {
	sizeVar(
		fl,
		&f.max,
		"max-disk",
		"the most disk that the cache may take up once a build is done, such as 15GiB; "+
			"what was not used for longest goes first, Go's cache before programs (default: $"+cache.EnvMaxDisk+", else 20GiB)",
	)
}

// fits refuses a value of the environment variable that is no size.
func (f *diskFlags) fits() (err error) {
	if f.max == 0 {
		f.max, err = cache.MaxDisk()
	}
	return usage(err, "--max-disk 15GiB")
}

// room says how much disk the builds of several plans need, and refuses them if they can't fit. What from may have
// published is not counted; nil has nothing.
func (f *diskFlags) room(
	cmd *cobra.Command,
	root string,
	plans []*plan.Plan,
	from *release.Publisher,
) (err error) {
	events := event.NewStream(&event.Lines{W: cmd.ErrOrStderr()})
	made, err := artifacts.Open(
		artifacts.Options{Root: root, MaxDisk: f.max, Events: events, Publisher: from},
	)
	if err != nil {
		return failed(err)
	}
	defer func() { err = failed(errors.Join(err, made.Close())) }()
	return made.FitAll(
		cmd.Context(),
		plans,
		func(p *plan.Plan) (cluster.Provider, error) { return newProvider(p.Provider, nil, false) },
	)
}

// sizeVar adds a flag for a size on disk.
func sizeVar(fl *pflag.FlagSet, to *int64, name, usage string) { fl.Var((*size)(to), name, usage) }

// size is the value of a flag for a size on disk. It is a pflag.Value.
type size int64

// Set reads a size.
func (s *size) Set(text string) error {
	n, err := cache.ParseSize(text)
	*s = size(n)
	return err
}

// String returns the size, "" for none.
func (s *size) String() string {
	if *s == 0 {
		return ""
	}
	return cache.FormatSize(int64(*s))
}

// Type returns what the flag's value is called in a command's help.
func (s *size) Type() string { return "size" }
