package kind

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// coreDNS is what kubeadm's addon/coredns phase leaves running.
const coreDNS = "/apis/apps/v1/namespaces/kube-system/deployments/coredns"

// leaveOutDNS removes CoreDNS where kubeadm could not be told to leave it out. Before v1.23, kind passes --skip-phases,
// which makes kubeadm ignore skipPhases in its configuration. CoreDNS's pods would wait for an image for ever.
func (c *Cluster) leaveOutDNS(ctx context.Context) error {
	a, err := c.do(ctx, http.MethodDelete, coreDNS)
	var said *cluster.StatusError
	switch {
	case err == nil:
		return a.Close()
	case errors.As(err, &said) && said.Code == http.StatusNotFound:
		return nil
	}
	return fmt.Errorf("leaving out CoreDNS: %w", err)
}
