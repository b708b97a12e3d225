package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/artifacts"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
)

func newImageCmd() *cobra.Command {
	p := plan.Plan{}
	cmd := &cobra.Command{
		Use:   "image [VERSION]",
		Short: "Get the node image that runs use, and print its reference",
		Long: `Image pulls or assembles the node image of a Kubernetes version, as a run would, and prints its reference on standard output: to warm the
cache, or for kind itself (kind create cluster --image …).`,
		Example: "  relapse image\n  relapse image v1.34.4 --node-image assembled",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			p.Version = "v1.34.4"
			if len(args) > 0 {
				p.Version = args[0]
			}
			if !version3.MatchString(p.Version) {
				return usage(fmt.Errorf("%q is no Kubernetes version (want vX.Y.Z)", p.Version), "")
			}
			root, err := moduleRoot(cmd)
			if err != nil {
				return err
			}
			made, err := artifacts.Open(cmd.Context(), root, "", event.NewStream(event.Lines{W: cmd.ErrOrStderr()}))
			if err != nil {
				return hinted(err, "relapse doctor checks the host")
			}
			defer func() {
				if e := made.Close(); err == nil {
					err = e
				}
			}()
			ref, err := made.GetNodeImage(cmd.Context(), p.Version, p.NodeImage)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), ref)
			return err
		},
	}
	cmd.Flags().StringVar(&p.NodeImage, "node-image", "auto", "auto, official, assembled or a reference")
	return cmd
}
