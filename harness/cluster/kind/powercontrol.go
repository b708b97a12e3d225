package kind

import (
	"context"
	"fmt"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/internal/docker"
)

// balancerImage is the load balancer that kind puts before several control planes. kind has the name as a constant,
// which it doesn't export.
const balancerImage = "docker.io/envoyproxy/envoy:v1.36.2"

// registryTime is how long a registry may take to say whether it has the image.
const registryTime = 5 * time.Second

// oneControlPlane returns why a cluster can't have several control planes, or "" if it can. kind pulls the load
// balancer's image when it makes a cluster with several, unless the engine has it. Most clusters don't need the image,
// so oneControlPlane only asks the registry whether it has it, and doesn't pull it.
func oneControlPlane(ctx context.Context, client *docker.Client) string {
	if _, err := client.Output(ctx, "image", "inspect", "--format", "{{.Id}}", balancerImage); err == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, registryTime)
	defer cancel()
	_, err := client.Output(ctx, "manifest", "inspect", balancerImage)
	if err == nil {
		return ""
	}
	return fmt.Sprintf(
		"kind puts the load balancer %s before several, the engine doesn't have that image, and its "+
			"registry doesn't give it (%v)",
		balancerImage,
		err,
	)
}

func controlPlanes(t cluster.Topology) (n int) {
	for _, node := range t.Nodes {
		if node.Role == cluster.ControlPlane {
			n++
		}
	}
	return n
}
