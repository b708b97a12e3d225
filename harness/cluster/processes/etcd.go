package processes

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"os"

	"k8s.io/client-go/rest"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// etcdClient returns where etcd listens for its clients, and how kube-apiserver connects to it.
func (c *Cluster) etcdClient() (address string, as *tls.Config, err error) {
	config, err := c.etcdConfig()
	if err != nil {
		return "", nil, err
	}
	as, err = rest.TLSConfigFor(config)
	return loopback(c.ports["etcd"]), as, err
}

// etcdClientOf returns an HTTP client with the certificate that kube-apiserver shows to etcd.
func (c *Cluster) etcdClientOf() (*http.Client, error) {
	config, err := c.etcdConfig()
	if err != nil {
		return nil, err
	}
	return rest.HTTPClientFor(config)
}

// etcdConfig has the certificate that kube-apiserver shows to etcd. It has the files' content: a client with their names
// would look for them for ever, and say so once the cluster is gone.
func (c *Cluster) etcdConfig() (_ *rest.Config, err error) {
	content := func(name string) []byte {
		text, why := os.ReadFile(c.path(name))
		err = cmp.Or(err, why)
		return text
	}
	config := &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: content(etcdCAFile),
		CertData: content(etcdClient + ".crt"), KeyData: content(etcdClient + ".key")}}
	return config, err
}

// askEtcd posts to the port that etcd has for its clients.
func (c *Cluster) askEtcd(ctx context.Context, path string, body []byte) ([]byte, error) {
	client, err := c.etcdClientOf()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(
		ctx,
		http.MethodPost,
		"https://"+loopback(c.ports["etcd"])+path,
		bytes.NewReader(body),
	)
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
