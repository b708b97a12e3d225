package processes

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// etcdClientOf returns a client with the certificate that kube-apiserver shows to etcd.
func (c *Cluster) etcdClientOf() (*http.Client, error) {
	return rest.HTTPClientFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: c.path(etcdCAFile),
		CertFile: c.path(etcdClient + ".crt"), KeyFile: c.path(etcdClient + ".key")}})
}

// askEtcd posts to the port that etcd has for its clients.
func (c *Cluster) askEtcd(ctx context.Context, path string, body []byte) ([]byte, error) {
	client, err := c.etcdClientOf()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+loopback(c.ports["etcd"])+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	answer, err := cluster.Body(resp, path)
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	return io.ReadAll(answer)
}
