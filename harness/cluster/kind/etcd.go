package kind

import (
	"bytes"
	"context"
	"errors"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// pki is where kubeadm keeps the certificates of a control plane.
const pki = "/etc/kubernetes/pki/"

// askEtcd posts to the etcd of the first control plane, by curl on the node: from outside, a node's address can't be
// reached on every host.
func (c *Cluster) askEtcd(ctx context.Context, path string, body []byte) ([]byte, error) {
	for _, n := range c.Machines {
		if n.role == cluster.ControlPlane {
			return n.Exec(ctx, bytes.NewReader(body), "curl", "--silent", "--show-error", "--fail-with-body",
				"--cacert", pki+"etcd/ca.crt", "--cert", pki+"apiserver-etcd-client.crt", "--key", pki+"apiserver-etcd-client.key",
				"--data-binary", "@-", "https://127.0.0.1:2379"+path)
		}
	}
	return nil, errors.New("there is no control plane, and so no etcd")
}
