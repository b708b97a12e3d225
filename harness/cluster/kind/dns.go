package kind

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// coreDNS is what kubeadm's addon/coredns phase leaves running.
const coreDNS = "/apis/apps/v1/namespaces/kube-system/deployments/coredns"

// leaveOutDNS removes CoreDNS where kubeadm could not be told to leave it out: for versions before v1.23, kind names the phases to skip in a
// flag, beside which kubeadm doesn't look at those in its configuration. Its pods would wait for an image for ever.
func (c *Cluster) leaveOutDNS(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, strings.TrimSuffix(c.rest.Host, "/")+coreDNS, nil)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("leaving out CoreDNS: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusNotFound {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 1024))
		return fmt.Errorf("leaving out CoreDNS: DELETE %s: %s: %s", coreDNS, resp.Status, strings.TrimSpace(string(said)))
	}
	return nil
}
