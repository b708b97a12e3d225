package kubernetes

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
)

// Exec runs a command in the container of a pod, and writes to out what the command prints. An error of the command has
// what it printed on stderr.
type Exec func(ctx context.Context, namespace, pod string, command []string, out io.Writer) error

// NewExec returns the Exec of a cluster, by its API's pods/exec.
func NewExec(config *rest.Config, client kubernetes.Interface) Exec {
	return func(ctx context.Context, namespace, pod string, command []string, out io.Writer) error {
		url := client.CoreV1().
			RESTClient().
			Post().
			Resource("pods").
			Namespace(namespace).
			Name(pod).
			SubResource("exec").
			VersionedParams(&corev1.PodExecOptions{Container: recorderName, Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec).
			URL()
		socket, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, url.String())
		if err != nil {
			return err
		}
		spdy, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, url)
		if err != nil {
			return err
		}
		executor, err := remotecommand.NewFallbackExecutor(socket, spdy, func(err error) bool {
			return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
		})
		if err != nil {
			return err
		}
		var said bytes.Buffer
		if err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: out, Stderr: &said}); err != nil {
			return fmt.Errorf("running %.40q in the pod %s: %w %s", strings.Join(command, " "), pod, err, bytes.TrimSpace(said.Bytes()))
		}
		return nil
	}
}
