//go:build cluster

package processes_test

import (
	"bufio"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/seams"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// injected injects a fault on a connection, calls while, and lifts the fault.
func injected(t *testing.T, c cluster.Cluster, kind, spec string, while func()) {
	t.Helper()
	f, err := kinds.Decode[fault.Fault](kinds.Fault, kind, []byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	target := fault.Target{Run: "run", Name: "connection", Cluster: c, Nodes: c.Nodes(), Expires: time.Minute,
		Events: event.NewStream()}
	if err := f.Inject(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	while()
	if err := f.Recover(t.Context(), target); err != nil {
		t.Fatal(err)
	}
}

// narrowEtcd limits the bandwidth of etcd's answers: a large object takes as long as its bytes do, a small one doesn't.
func narrowEtcd(t *testing.T, c cluster.Cluster) {
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	maps := client.CoreV1().ConfigMaps("default")
	for name, bytes := range map[string]int{"large": 200_000, "small": 10} {
		one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"a": strings.Repeat("a", bytes)}}
		if _, err := maps.Create(t.Context(), one, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	get := func(name string) time.Duration { // without a resource version, it is read from etcd
		t.Helper()
		began := time.Now()
		if _, err := maps.Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		return time.Since(began)
	}
	const atLeast = 1800 * time.Millisecond // 200 kB at 100 kB/s are 2 s
	injected(t, c, "bandwidth", `{"connection":"etcd","rate":"100k"}`, func() {
		large, small := get("large"), min(get("small"), get("small"), get("small"))
		if small >= atLeast || large < atLeast {
			t.Errorf("the small object took %s, the large one %s", small, large)
		}
	})
	after := get("large")
	for range 3 { // on a busy machine one answer may be late by itself; under the limit all are
		after = min(after, get("large"))
	}
	if after >= atLeast {
		t.Errorf("the large object took %s once the limit was lifted", after)
	}
	injected(t, c, "bandwidth", `{"connection":"scheduler-apiserver","rate":"50k"}`, func() {}) // it is measured, and its end
}

// lateControllers makes the API server slow for the controllers alone: a namespace gets its service account later, and
// the creation of the namespace is as fast as before.
func lateControllers(t *testing.T, c cluster.Cluster) {
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	const latency = 2 * time.Second
	made := func() (creation, account time.Duration) {
		began := time.Now()
		ns, err := client.CoreV1().Namespaces().Create(t.Context(),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "late-"}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		creation = time.Since(began)
		until(t, func() error {
			_, err := client.CoreV1().ServiceAccounts(ns.Name).Get(t.Context(), "default", metav1.GetOptions{})
			return err
		})
		return creation, time.Since(began)
	}
	injected(t, c, "latency", `{"connection":"controller-manager-apiserver","latency":"2s"}`, func() {
		creation, account := made()
		if again, later := made(); again < creation { // one answer may be late by itself on a busy machine
			creation, account = again, later
		}
		if creation >= latency || account < latency {
			t.Errorf("a namespace took %s, and its service account %s", creation, account)
		}
	})
	_, account := made()
	for range 3 {
		_, again := made()
		account = min(account, again)
	}
	if account >= latency {
		t.Errorf("the service account took %s once the latency was lifted", account)
	}
}

// schedulerCutOff cuts the scheduler off from the API server, which the scheduler's own count of failed requests shows,
// and wants it to work again after that.
func schedulerCutOff(t *testing.T, c cluster.Cluster) {
	k := c.Components("kube-scheduler")[0]
	failed := func() (out string, err error) {
		r, err := k.Get(t.Context(), "/metrics")
		if err != nil {
			return "", err
		}
		defer r.Close()
		for lines := bufio.NewScanner(r); lines.Scan(); {
			if l := lines.Text(); strings.HasPrefix(l, "rest_client_requests_total{") && strings.Contains(l, `"<error>"`) {
				out += l + "\n"
			}
		}
		return out, nil
	}
	before, err := failed()
	if err != nil {
		t.Fatal(err)
	}
	injected(t, c, "outage", `{"connection":"scheduler-apiserver","connections":"reset","atMost":"30s"}`, func() {
		until(t, func() error {
			now, err := failed()
			if err == nil && now == before {
				err = errors.New("the scheduler counts no failed request more: " + now)
			}
			return err
		})
	})
	works(t, c)
}

// ledWebhook puts a webhook before the creation of ConfigMaps, and makes the way to it late, narrow and cut: creations take
// the latency, and fail in the outage. Afterwards they are as before.
func ledWebhook(t *testing.T, c cluster.Cluster) {
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	created := func() (time.Duration, error) {
		began := time.Now()
		_, err := client.CoreV1().ConfigMaps("default").Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "led-"}}, metav1.CreateOptions{})
		return time.Since(began), err
	}
	f, err := kinds.Decode[fault.Fault](kinds.Fault, "webhook", []byte(`{"resources":["configmaps"],"operations":["CREATE"],`+
		`"namespaces":["default"],"failurePolicy":"Fail","timeoutSeconds":5,"rules":[{"answer":{"allowed":true}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	target := fault.Target{Run: "run", Name: "review", Cluster: c, Nodes: c.Nodes(), Expires: 3 * time.Minute,
		Events: event.NewStream(), Seams: []string{seams.Webhooks}}
	if err := f.Inject(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	const latency = 1500 * time.Millisecond
	injected(t, c, "latency", `{"connection":"apiserver-webhook","latency":"1500ms"}`, func() {
		if took, err := created(); err != nil || took < latency {
			t.Errorf("with a webhook that is late a ConfigMap took %s, %v", took, err)
		}
	})
	injected(t, c, "outage", `{"connection":"apiserver-webhook","connections":"reset","atMost":"30s"}`, func() {
		if _, err := created(); err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
			t.Errorf("with a webhook that is cut off a ConfigMap was created: %v", err)
		}
	})
	injected(t, c, "bandwidth", `{"connection":"apiserver-webhook","rate":"50k"}`, func() {}) // it is measured, and its end
	took, err := created()
	for range 3 { // one answer may be late by itself on a busy machine
		again, e := created()
		took, err = min(took, again), errors.Join(err, e)
	}
	if err != nil || took >= latency {
		t.Errorf("once all was lifted a ConfigMap took %s, %v", took, err)
	}
	if err := f.Recover(t.Context(), target); err != nil {
		t.Error(err)
	}
}
