package seam

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
)

// Interposer is the client of the CRI interposer on a node, which must be an Execer. Faults drive it, collectors read it.
func Interposer(n cluster.Node) (*control.Client, error) {
	x, ok := n.(cluster.Execer)
	if !ok {
		return nil, fmt.Errorf("node %s can't run commands, which the CRI interposer needs", n.Name())
	}
	return control.NewClient(func(ctx context.Context, args []string, stdin []byte) ([]byte, error) {
		var in io.Reader
		if stdin != nil {
			in = bytes.NewReader(stdin)
		}
		return x.Exec(ctx, in, args...)
	}), nil
}
