package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/artifacts"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
)

func newImageCmd() *cobra.Command {
	needs, version := cluster.Needs{}, cluster.DefaultVersion
	var disk diskFlags
	cmd := &cobra.Command{
		Use:   "image [VERSION]",
		Short: "Get the node image that runs use, and print its reference",
		Long: `Image pulls or assembles the node image of a Kubernetes version, as a run would, and prints the
reference of the image. Use the command to fill the cache beforehand, or to get an image for kind itself (kind create
cluster --image …).`,
		Example: "  relapse image\n  relapse image " + cluster.DefaultVersion + " --node-image assembled",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) > 0 {
				version = args[0]
			}
			if !version3.MatchString(version) {
				return usage(
					fmt.Errorf("%q is no Kubernetes version (want vX.Y.Z)", version),
					"relapse image "+cluster.DefaultVersion,
				)
			}
			if err := disk.fits(); err != nil {
				return err
			}
			root, err := moduleRoot(cmd)
			if err != nil {
				return err
			}
			events := event.NewStream(&event.Lines{W: cmd.ErrOrStderr()})
			made, err := artifacts.Open(artifacts.Options{Root: root, MaxDisk: disk.max, Events: events})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, made.Close()) }()
			provider, err := newKind(events, false)
			if err != nil {
				return err
			}
			needs.Topologies, needs.Builder = []cluster.Topology{{Version: version}}, made
			if err := made.Fit(cmd.Context(), made.Forecast(cmd.Context(), nil, provider, needs)); err != nil {
				return failed(err)
			}
			if _, err := provider.Prepare(cmd.Context(), needs); err != nil {
				return failed(err)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), provider.NodeImage(version))
			return err
		},
	}
	cmd.Flags().
		StringVar(&needs.NodeImage, "node-image", "auto", "the node image: auto (official if there is one, else assembled), official, assembled or a reference")
	disk.register(cmd.Flags())
	return cmd
}
