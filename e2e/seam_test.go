//go:build cluster

package e2e_test

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/client-go/util/exec"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// proberImage is the image's name inside the node. Nobody can own its domain, so the image is never pulled.
const proberImage = "relapse.invalid/prober:e2e"

// seamSpecs use all functions of a worker's container runtime through the interposer.
func seamSpecs(bench func() *bench) {
	It("passes a pod's whole life through the cri seam: init container, probes, exec, logs, port-forward", func(ctx SpecContext) {
		b := bench()
		b.settle(ctx, smoke, smoke.Trials[0])
		n := b.node("fixed")
		importProber(ctx, n)
		DeferCleanup(func(ctx SpecContext) {
			exec(ctx, n, "ctr", "--namespace", "k8s.io", "images", "remove", proberImage)
		}, NodeTimeout(time.Minute))
		before := counts(ctx, n)

		cfg := b.env.Cluster().RESTConfig()
		client, err := kubernetes.NewForConfig(cfg)
		Expect(err).NotTo(HaveOccurred())
		pods := client.CoreV1().Pods(metav1.NamespaceDefault)
		Eventually(ctx, func(ctx context.Context) error { // the namespace's service account may still be on its way
			_, err := pods.Create(ctx, proberPod(n.Name()), metav1.CreateOptions{})
			return err
		}).WithTimeout(3 * time.Minute).Should(Succeed())

		var pod *corev1.Pod
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			var err error
			pod, err = pods.Get(ctx, "prober", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pod.Status.ContainerStatuses).To(HaveLen(1))
			g.Expect(pod.Status.ContainerStatuses[0].Ready).To(BeTrue(), "the status is %+v", pod.Status)
		}).WithTimeout(readyTime).Should(Succeed())
		Expect(pod.Status.InitContainerStatuses[0].State.Terminated).NotTo(BeNil(), "the init container has ended")
		Expect(pod.Status.InitContainerStatuses[0].State.Terminated.ExitCode).To(BeZero())

		Expect(execInPod(ctx, cfg, client, "a word\nand another\n", "/prober", "echo", "heard:")).To(Equal("heard:\na word\nand another\n"))
		_, err = execInPod(ctx, cfg, client, "", "/prober", "exit", "7")
		var code utilexec.CodeExitError
		Expect(err).To(BeAssignableToTypeOf(code))
		Expect(err.(utilexec.CodeExitError).Code).To(Equal(7), "an exit code comes through")

		Expect(forwarded(ctx, cfg, client, "/through-the-seam")).To(Equal("written by the init container\n"))
		Eventually(ctx, func(ctx context.Context) (string, error) {
			out, err := pods.GetLogs("prober", &corev1.PodLogOptions{}).DoRaw(ctx)
			return string(out), err
		}).WithTimeout(2 * time.Minute).Should(And(HavePrefix("serving on :8080\n"), ContainSubstring("GET /through-the-seam\n"), ContainSubstring("GET /alive\n")))

		Expect(pods.Delete(ctx, "prober", metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))})).To(Succeed())
		Eventually(ctx, func(ctx context.Context) (string, error) {
			out, err := n.Abilities().Commands.Exec(ctx, nil, "ctr", "--namespace", "k8s.io", "containers", "list")
			return string(out), err
		}).WithTimeout(readyTime).ShouldNot(ContainSubstring(proberImage), "it is really gone")

		after := counts(ctx, n)
		Expect(after.PID).To(Equal(before.PID), "one interposer all along")
		for _, method := range []string{"RunPodSandbox", "CreateContainer", "StartContainer", "ExecSync", "Exec", "PortForward", "StopPodSandbox"} {
			Expect(after.Forwarded[method]).To(BeNumerically(">", before.Forwarded[method]), "%s went through the interposer", method)
		}
	}, SpecTimeout(18*time.Minute))
}

// importProber builds the fixture, makes an image of it and loads the image into the node's containerd.
func importProber(ctx SpecContext, n cluster.Node) {
	GinkgoHelper()
	program := content(goBuild(ctx, "prober", "./fixtures/prober"))
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		if err := w.WriteHeader(&tar.Header{Name: "prober", Mode: 0o755, Size: int64(len(program)), Typeflag: tar.TypeReg}); err != nil {
			return nil, err
		}
		if _, err := w.Write(program); err != nil {
			return nil, err
		}
		return io.NopCloser(&b), w.Close()
	})
	Expect(err).NotTo(HaveOccurred())
	image, err := mutate.AppendLayers(empty.Image, layer)
	Expect(err).NotTo(HaveOccurred())
	file, err := image.ConfigFile()
	Expect(err).NotTo(HaveOccurred())
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", goarch(ctx, n), v1.Config{Entrypoint: []string{"/prober"}}
	image, err = mutate.ConfigFile(image, file)
	Expect(err).NotTo(HaveOccurred())
	ref, err := name.NewTag(proberImage)
	Expect(err).NotTo(HaveOccurred())
	var archive bytes.Buffer
	Expect(tarball.Write(ref, image, &archive)).To(Succeed())
	_, err = n.Abilities().Commands.Exec(ctx, &archive, "ctr", "--namespace", "k8s.io", "images", "import", "--no-unpack", "-")
	Expect(err).NotTo(HaveOccurred())
}

// goarch returns the architecture of a node under Go's name.
func goarch(ctx context.Context, n cluster.Node) string {
	GinkgoHelper()
	machine := strings.TrimSpace(exec(ctx, n, "uname", "-m"))
	arch, ok := map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[machine]
	Expect(ok).To(BeTrue(), "the architecture %s is not known", machine)
	return arch
}

func proberPod(node string) *corev1.Pod {
	const shared = "/shared/file"
	mount := []corev1.VolumeMount{{Name: "shared", MountPath: "/shared"}}
	get := func(path string) corev1.ProbeHandler {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(8080)}}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "prober"},
		Spec: corev1.PodSpec{
			NodeName: node, AutomountServiceAccountToken: new(false), RestartPolicy: corev1.RestartPolicyNever,
			Volumes: []corev1.Volume{{Name: "shared", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
			InitContainers: []corev1.Container{{
				Name: "init", Image: proberImage, ImagePullPolicy: corev1.PullNever, Command: []string{"/prober", "init", shared}, VolumeMounts: mount,
			}},
			Containers: []corev1.Container{{
				Name: "serve", Image: proberImage, ImagePullPolicy: corev1.PullNever, Command: []string{"/prober", "serve", ":8080", shared}, VolumeMounts: mount,
				StartupProbe:   &corev1.Probe{ProbeHandler: get("/started"), PeriodSeconds: 1, FailureThreshold: 60},
				LivenessProbe:  &corev1.Probe{ProbeHandler: get("/alive"), PeriodSeconds: 2, TimeoutSeconds: 10, FailureThreshold: 5},
				ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/prober", "echo"}}}, PeriodSeconds: 2, TimeoutSeconds: 10},
			}},
		},
	}
}

// execInPod runs a command in the prober's container and returns its standard output.
func execInPod(ctx context.Context, cfg *rest.Config, client kubernetes.Interface, stdin string, command ...string) (string, error) {
	GinkgoHelper()
	url := client.CoreV1().RESTClient().Post().Resource("pods").Namespace(metav1.NamespaceDefault).Name("prober").SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: "serve", Command: command, Stdin: stdin != "", Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
	executor, err := remotecommand.NewSPDYExecutor(cfg, http.MethodPost, url)
	Expect(err).NotTo(HaveOccurred())
	var out, errs bytes.Buffer
	o := remotecommand.StreamOptions{Stdout: &out, Stderr: &errs}
	if stdin != "" {
		o.Stdin = strings.NewReader(stdin)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err = executor.StreamWithContext(ctx, o)
	return out.String(), err
}

// forwarded gets a path from the prober through a forwarded port.
func forwarded(ctx context.Context, cfg *rest.Config, client kubernetes.Interface, path string) (string, error) {
	GinkgoHelper()
	url := client.CoreV1().RESTClient().Post().Resource("pods").Namespace(metav1.NamespaceDefault).Name("prober").SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(cfg)
	Expect(err).NotTo(HaveOccurred())
	stop, ready, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{"0:8080"}, stop, ready, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	go func() { done <- forwarder.ForwardPorts() }()
	defer func() {
		close(stop)
		<-done
	}()
	select {
	case <-ready:
	case err := <-done:
		done <- err
		return "", err
	case <-time.After(time.Minute):
		return "", os.ErrDeadlineExceeded
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", ports[0].Local, path), nil)
	if err != nil {
		return "", err
	}
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}).Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return string(body), err
}
