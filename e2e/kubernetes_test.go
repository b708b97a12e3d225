//go:build cluster

package e2e_test

import (
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/e2e-framework/klient"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/kind"
	"github.com/kube-relapse/relapse/harness/judge"
)

// plainHTTP lets containerd look for registries without TLS, as kind's manual says.
const plainHTTP = `
containerdConfigPatches:
- |-
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "/etc/containerd/certs.d"
`

// far is a cluster that is there, with a registry that its nodes and this host reach.
type far struct {
	name                 string // of the cluster
	kubeconfig, registry string
	client               kubernetes.Interface
	worker               cluster.Node
}

// newFar makes the cluster and its registry, which are removed when the container of specs is done.
func newFar(ctx SpecContext) far {
	GinkgoHelper()
	name := "relapse-far-" + draw()
	dir := filepath.Join(scratch, name)
	Expect(os.MkdirAll(dir, 0o700)).To(Succeed())
	prov, err := kind.New(kind.Options{Dir: dir, Events: events})
	Expect(err).NotTo(HaveOccurred())
	base, err := os.ReadFile(filepath.Join(root, "kind-config.yaml"))
	Expect(err).NotTo(HaveOccurred())
	topology := cluster.Topology{Version: smoke.Version, Base: append(base, plainHTTP...), Network: name}
	for _, node := range []string{"control-plane", "worker", "worker2", "worker3"} {
		topology.Nodes = append(topology.Nodes, cluster.NodeSpec{Name: node, Role: strings.TrimRight(node, "23"), Image: image})
	}
	DeferCleanup(func(ctx SpecContext) {
		_, _ = docker(ctx, "rm", "--force", name+"-registry") // on the network that goes with the cluster
		Expect(prov.Delete(ctx, name)).To(Succeed())
		_, err := docker(ctx, "image", "rm", name+"-registry")
		Expect(err).NotTo(HaveOccurred())
	}, NodeTimeout(6*time.Minute))
	c, err := prov.Create(ctx, name, topology)
	Expect(err).NotTo(HaveOccurred(), "creating the cluster")
	client, err := klient.New(c.RESTConfig())
	Expect(err).NotTo(HaveOccurred())
	var nodes []string
	for _, n := range c.Nodes() {
		nodes = append(nodes, n.Name())
	}
	Expect(cluster.WaitReady(ctx, client, nodes, readyTime)).To(Succeed())
	address := startRegistry(ctx, name)
	for _, n := range c.Nodes() {
		file := "/etc/containerd/certs.d/" + address + "/hosts.toml"
		exec(ctx, n, "sh", "-c", fmt.Sprintf("mkdir -p $(dirname %[1]s) && echo '[host.\"http://%[2]s\"]' >%[1]s", file, address))
	}
	typed, err := kubernetes.NewForConfig(c.RESTConfig())
	Expect(err).NotTo(HaveOccurred())
	_, err = typed.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "relapse",
		Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return far{name, prov.KubeconfigPath(name), address + "/relapse", typed, c.Nodes()[slices.IndexFunc(nodes, func(name string) bool { return strings.Contains(name, "worker") })]}
}

// volume makes a claim of a volume on one node's disk, in a folder of that node. All pods that use it run there.
func (f far) volume(ctx SpecContext, claim string) (folder string) {
	GinkgoHelper()
	folder = "/var/" + claim
	exec(ctx, f.worker, "mkdir", "-p", folder)
	node, class, size := f.worker.Name(), "relapse-e2e", corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	_, err := f.client.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim},
		Spec: corev1.PersistentVolumeSpec{Capacity: size, AccessModes: modes, StorageClassName: class,
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: folder}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}}}},
		metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = f.client.CoreV1().PersistentVolumeClaims("relapse").Create(ctx, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: claim},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: modes, StorageClassName: &class, VolumeName: claim,
			Resources: corev1.VolumeResourceRequirements{Requests: size}}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return folder
}

// startRegistry starts a registry of images on a cluster's network, and returns its address there.
func startRegistry(ctx SpecContext, network string) string {
	GinkgoHelper()
	name := network + "-registry"
	goBuild(ctx, "crane", "github.com/google/go-containerregistry/cmd/crane")
	shell := osexec.CommandContext(ctx, "sh", "-c", "tar -C "+scratch+" -c crane | docker import - "+name)
	said, err := shell.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "importing the registry's image: %s", said)
	_, err = docker(ctx, "run", "--detach", "--name", name, "--network", network, name, "/crane", "registry", "serve", "--address", ":5000")
	Expect(err).NotTo(HaveOccurred())
	lines, err := docker(ctx, "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", name)
	Expect(err).NotTo(HaveOccurred())
	return lines[0] + ":5000"
}

// baseImage saves the image that node images are assembled on, which has a shell, and returns the file.
func baseImage(ctx context.Context) string {
	GinkgoHelper()
	refs, err := docker(ctx, "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", "relapse/node-base")
	Expect(err).NotTo(HaveOccurred())
	Expect(refs).NotTo(BeEmpty())
	file := filepath.Join(scratch, "base.tar")
	_, err = docker(ctx, "save", "--output", file, refs[0])
	Expect(err).NotTo(HaveOccurred())
	return file
}

var attaches = regexp.MustCompile(`relapse attach (relapse-[0-9a-f]{8})`)

var _ = Describe("A cluster that is there", Label("nightly"), Ordered, func() {
	var there far
	var dir string
	BeforeAll(func(ctx SpecContext) {
		there = newFar(ctx)
		dir = filepath.Join(scratch, "far-"+draw())
		Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
	}, NodeTimeout(20*time.Minute))

	It("makes the trials of a run, which are judged here", func(ctx SpecContext) {
		began := relapse(ctx, dir, "run", "watch-loses-delete", "--repeat", "4", "--on", "kubernetes", "--kubeconfig", there.kubeconfig, "-n", "relapse",
			"--parallelism", "2", "--registry", there.registry, "--insecure-registry", "--base", baseImage(ctx), "--wait=false")
		Expect(began.code).To(Equal(0), began.said())
		run := attaches.FindStringSubmatch(began.errs)[1]
		ran := relapse(ctx, dir, "attach", run)
		Expect(ran.code).To(Equal(0), ran.said())
		Expect(lastLine(ran.out)).To(Equal("relapse: Validated (exit 0)"))
		written, err := os.ReadFile(filepath.Join(dir, "runs", "latest", judge.VerdictFile))
		Expect(err).NotTo(HaveOccurred())
		v, err := judge.Run(filepath.Join(dir, "runs", "latest"))
		Expect(err).NotTo(HaveOccurred())
		again, err := v.JSON()
		Expect(err).NotTo(HaveOccurred())
		Expect(v.Trials).To(HaveLen(4))
		Expect(string(again)).To(Equal(string(written)), "judged again from the bundles that were fetched")
		cleaned := relapse(ctx, dir, "clean", run)
		Expect(cleaned.code).To(Equal(0), cleaned.said())
	}, SpecTimeout(60*time.Minute))

	run := func(ctx SpecContext, way ...string) {
		GinkgoHelper()
		ran := relapse(ctx, dir, append([]string{"run", "watch-loses-delete", "--repeat", "2", "--on", "kubernetes", "--kubeconfig", there.kubeconfig, "-n", "relapse",
			"--registry", there.registry, "--insecure-registry", "--base", baseImage(ctx)}, way...)...)
		Expect(ran.code).To(Equal(0), ran.said())
		Expect(lastLine(ran.out)).To(Equal("relapse: Validated (exit 0)"))
		name := attaches.FindStringSubmatch(ran.errs)[1]
		cleaned := relapse(ctx, dir, "clean", name)
		Expect(cleaned.code).To(Equal(0), cleaned.said())
		pods, err := there.client.CoreV1().Pods("relapse").List(ctx, metav1.ListOptions{LabelSelector: "relapse.dev/reader"})
		Expect(err).NotTo(HaveOccurred())
		Expect(pods.Items).To(BeEmpty())
	}

	It("brings bundles by commands in the pods", func(ctx SpecContext) { run(ctx, "--exec") }, SpecTimeout(40*time.Minute))

	It("brings bundles by a volume, and leaves nothing there", func(ctx SpecContext) {
		folder := there.volume(ctx, "bundles")
		run(ctx, "--storage", "bundles")
		Expect(exec(ctx, there.worker, "ls", "-A", folder)).To(BeEmpty())
	}, SpecTimeout(40*time.Minute))

	It("has a component killed in a container of its own, and notes that down", func(ctx SpecContext) {
		ran := relapse(ctx, dir, "run", "apiserver-goroutine-leak", "--set", "apiserver.memory=512Mi",
			"--on", "kubernetes", "--kubeconfig", there.kubeconfig, "-n", "relapse", "--registry", there.registry, "--insecure-registry", "--base", baseImage(ctx))
		Expect(ran.code).To(Equal(0), ran.said())
		Expect(lastLine(ran.out)).To(Equal("relapse: Validated (exit 0)"))
		v, err := judge.Run(filepath.Join(dir, "runs", "latest"))
		Expect(err).NotTo(HaveOccurred())
		Expect(v.Trials).To(HaveLen(1))
		ways := v.Arms[0].Signature[0].AnyOf
		killed := slices.IndexFunc(ways, func(f check.Finding) bool { return f.Name == "killed-for-it" })
		Expect(killed).To(BeNumerically(">=", 0), "the ways are %v", ways)
		Expect(ways[killed].Met).To(Equal(check.True), ways[killed].Seen)
		cleaned := relapse(ctx, dir, "clean", attaches.FindStringSubmatch(ran.errs)[1])
		Expect(cleaned.code).To(Equal(0), cleaned.said())
	}, SpecTimeout(40*time.Minute))

	// It is the last spec, as it leaves the cluster without one of its nodes.
	It("loses no trial and counts none twice, whatever comes from outside", func(ctx SpecContext) { there.disturb(ctx, dir) },
		SpecTimeout(70*time.Minute))
})
