package processes

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// validFor is how long certificates are valid: longer than any cluster lives.
const validFor = 365 * 24 * time.Hour

// authority signs the certificates of one cluster's components.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

func newAuthority(name string) (*authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	c, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	if err != nil {
		return nil, fmt.Errorf("making the authority %s: %w", name, err)
	}
	return &authority{c, key}, nil
}

func newKey() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

// pair is a certificate and its key, in PEM.
type pair struct{ cert, key []byte }

// sign returns a certificate and its key. The certificate is good both for a server on loopback and for a client with
// that name and those groups.
func (a *authority) sign(name string, groups ...string) (p pair, err error) {
	key, err := newKey()
	if err != nil {
		return p, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return p, err
	}
	template := x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name, Organization: groups},
		NotBefore: a.cert.NotBefore, NotAfter: time.Now().Add(validFor),
		KeyUsage:    x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, a.cert, key.Public(), a.key)
	if err != nil {
		return p, fmt.Errorf("signing a certificate for %s: %w", name, err)
	}
	p.cert = encodeCert(der)
	p.key, err = keyutil.MarshalPrivateKeyToPEM(key)
	return p, err
}

func (a *authority) pem() []byte { return encodeCert(a.cert.Raw) }

func encodeCert(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
}

// The files below a cluster's folder that hold certificates and keys, named as kubeadm does.
const (
	caFile         = "pki/ca.crt"
	etcdCAFile     = "pki/etcd/ca.crt"
	etcdServer     = "pki/etcd/server" // .crt and .key
	etcdClient     = "pki/apiserver-etcd-client"
	apiServer      = "pki/apiserver"
	controllers    = "pki/controller-manager"
	scheduler      = "pki/scheduler"
	clouds         = "pki/cloud-controller-manager"
	kwokClient     = "pki/kwok"
	prober         = "pki/apiserver-kubelet-client" // for the probes of proxies before the API server
	serviceAccount = "pki/sa.key"
)

// writeCredentials makes the cluster's authorities. It writes the certificates and kubeconfigs that each component
// needs, and a kubeconfig for the user.
func writeCredentials(home, name, server string) error {
	ca, err := newAuthority("kubernetes")
	if err != nil {
		return err
	}
	etcdCA, err := newAuthority("etcd-ca")
	if err != nil {
		return err
	}
	files := map[string][]byte{caFile: ca.pem(), etcdCAFile: etcdCA.pem()}
	for _, c := range []struct {
		at     string
		by     *authority
		name   string
		groups []string
	}{
		{etcdServer, etcdCA, "etcd", nil}, {etcdClient, etcdCA, "kube-apiserver-etcd-client", nil}, {apiServer, ca,
			"kube-apiserver", nil},
		{controllers, ca, "kube-controller-manager", nil}, {scheduler, ca, "kube-scheduler", nil},
		{clouds, ca, cloudControllerManager, nil},
		{kwokClient, ca, "kwok", nil},
		{prober, ca, "kube-apiserver-kubelet-client", []string{"system:masters"}},
	} {
		p, err := c.by.sign(c.name, c.groups...)
		if err != nil {
			return err
		}
		files[c.at+".crt"], files[c.at+".key"] = p.cert, p.key
	}
	key, err := newKey()
	if err != nil {
		return err
	}
	if files[serviceAccount], err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		return err
	}
	for at, user := range map[string][]string{
		adminConfig: {"kubernetes-admin", "system:masters"}, controllersConfig: {"system:kube-controller-manager"},
		schedulerConfig: {"system:kube-scheduler"},
		// Kubernetes has no role for this component, because its distributions bring their own. So it may do
		// everything.
		cloudsConfig: {"system:cloud-controller-manager", "system:masters"},
		kwokConfig:   {"kwok", "system:masters"}, // it acts for all kubelets
	} {
		p, err := ca.sign(user[0], user[1:]...)
		if err != nil {
			return err
		}
		as := clientcmdapi.AuthInfo{ClientCertificateData: p.cert, ClientKeyData: p.key}
		if files[at], err = kubeconfig(name, server, user[0], ca.pem(), as); err != nil {
			return err
		}
	}
	for at, text := range files {
		path := filepath.Join(home, at)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

const cloudControllerManager = "cloud-controller-manager"

// The kubeconfigs of components.
const (
	controllersConfig = "controller-manager.conf"
	schedulerConfig   = "scheduler.conf"
	cloudsConfig      = "cloud-controller-manager.conf"
	kwokConfig        = "kwok.conf"
)

func kubeconfig(name, server, user string, ca []byte, as clientcmdapi.AuthInfo) ([]byte, error) {
	return clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{
			name: {Server: server, CertificateAuthorityData: ca},
		},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{user: &as},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: user}},
		CurrentContext: name,
	})
}
