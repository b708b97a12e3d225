package kubernetes

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/kube-relapse/relapse/harness/ledger"
	"github.com/kube-relapse/relapse/harness/plan"
)

func spec() JobSpec {
	return JobSpec{Run: "relapse-1a2b3c4d", Namespace: "relapse", Image: "registry.test/relapse@sha256:aa", Trials: 200, Parallelism: 20,
		Memory: resource.MustParse("4Gi"), Registry: Registry{Repository: "registry.test/relapse"}}
}

func TestEachIndexOfTheJobIsATrial(t *testing.T) {
	j := Job(spec())
	if *j.Spec.CompletionMode != batchv1.IndexedCompletion || *j.Spec.Completions != 200 || *j.Spec.Parallelism != 20 {
		t.Errorf("the Job is %s with %d completions, %d at once", *j.Spec.CompletionMode, *j.Spec.Completions, *j.Spec.Parallelism)
	}
	if j.Name != "relapse-1a2b3c4d" || j.Namespace != "relapse" || j.Labels[RunLabel] != j.Name || j.Spec.Template.Labels[RunLabel] != j.Name {
		t.Errorf("the Job %s/%s and its pods have the labels %v, %v", j.Namespace, j.Name, j.Labels, j.Spec.Template.Labels)
	}
	if j.Spec.TTLSecondsAfterFinished != nil || *j.Spec.Suspend {
		t.Error("the Job ends with a TTL, or is suspended")
	}
}

// A trial that ended without evidence must not be repeated until it comes out well.
func TestWhatTheJobRepeats(t *testing.T) {
	j := Job(spec())
	want := []batchv1.PodFailurePolicyRule{
		{Action: batchv1.PodFailurePolicyActionIgnore, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: "DisruptionTarget", Status: "True"}}},
		{Action: batchv1.PodFailurePolicyActionFailIndex, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{ContainerName: ptr.To("recorder"), Operator: "NotIn", Values: []int32{4, 130}}},
	}
	if diff := cmp.Diff(want, j.Spec.PodFailurePolicy.Rules); diff != "" {
		t.Error("the pod failure policy differs (-want +got):\n", diff)
	}
	known := slices.ContainsFunc(j.Spec.Template.Spec.Containers[0].Env, func(e corev1.EnvVar) bool {
		return e.Name == DisruptedEnv && e.ValueFrom.FieldRef.FieldPath == "metadata.annotations['batch.kubernetes.io/job-index-ignored-failure-count']"
	})
	if !known {
		t.Error("a recorder doesn't get to know that its trial is made again")
	}
	if *j.Spec.BackoffLimitPerIndex != 3 || j.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyNever || *j.Spec.PodReplacementPolicy != batchv1.Failed {
		t.Errorf("an index begins again %d times, with the restart policy %s and the replacement policy %s",
			*j.Spec.BackoffLimitPerIndex, j.Spec.Template.Spec.RestartPolicy, *j.Spec.PodReplacementPolicy)
	}
}

// What the pod security standard "restricted" wants, and more.
func TestPodsAreRestricted(t *testing.T) {
	p := Job(spec()).Spec.Template.Spec
	c := p.Containers[0].SecurityContext
	if !*p.SecurityContext.RunAsNonRoot || *p.SecurityContext.RunAsUser == 0 || p.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the pod's security context is %+v", p.SecurityContext)
	}
	if *c.AllowPrivilegeEscalation || !*c.ReadOnlyRootFilesystem || !slices.Equal(c.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(c.Capabilities.Add) > 0 {
		t.Errorf("the container's security context is %+v", c)
	}
	if *p.AutomountServiceAccountToken || *p.EnableServiceLinks || p.HostNetwork || p.HostPID || p.ServiceAccountName != "" {
		t.Error("the pod gets a token, its service links or something of the host")
	}
	for _, v := range p.Volumes {
		if v.EmptyDir == nil {
			t.Errorf("the volume %s is no emptyDir", v.Name)
		}
	}
}

func TestPodsRequestWhatTheyAreLimitedTo(t *testing.T) {
	r := Job(spec()).Spec.Template.Spec.Containers[0].Resources
	if r.Requests.Memory().String() != "4Gi" || r.Limits.Memory().String() != "4Gi" || len(r.Limits) != 1 || len(r.Requests) != 1 {
		t.Errorf("requests %v, limits %v; want 4Gi of memory and nothing else", r.Requests, r.Limits)
	}
	s, cpu := spec(), resource.MustParse("1500m")
	s.CPU = &cpu
	r = Job(s).Spec.Template.Spec.Containers[0].Resources
	if r.Requests.Cpu().String() != "1500m" || r.Limits.Cpu().String() != "1500m" {
		t.Errorf("with --cpu-limit: requests %v, limits %v", r.Requests, r.Limits)
	}
}

// Kueue admits a Job by its label, and wants it to be created suspended.
func TestJobInAQueue(t *testing.T) {
	s := spec()
	s.Queue = "nightly"
	j := Job(s)
	if j.Labels["kueue.x-k8s.io/queue-name"] != "nightly" || !*j.Spec.Suspend || j.Spec.Template.Labels["kueue.x-k8s.io/queue-name"] != "" {
		t.Errorf("labels %v, suspended %v", j.Labels, *j.Spec.Suspend)
	}
	s.Queue, s.Suspend = "", true
	if !*Job(s).Spec.Suspend {
		t.Error("--suspend didn't suspend the Job")
	}
}

func TestPodsLogInWithTheSecret(t *testing.T) {
	s := spec()
	s.Secret, s.Registry.Insecure = "login", true
	text, err := yaml.Marshal(Job(s))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"imagePullSecrets:\n      - name: login", "secretName: login", "key: .dockerconfigjson", "path: config.json",
		"name: DOCKER_CONFIG\n          value: /registry", "- --insecure-registry"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the Job doesn't have %q:\n%s", want, text)
		}
	}
}

// Each way of the bundles has what it needs in the Job and in the Role, and nothing of the other ways.
func TestTheJobOfEachWay(t *testing.T) {
	pull, held, kept := spec(), spec(), spec()
	held.Hold, kept.Storage = time.Hour, "bundles"
	for _, c := range []struct {
		name       string
		spec       JobSpec
		args       string
		volumes    int
		probed     bool
		pods, exec []string // verbs
		claims     []string
	}{
		{"the registry", pull, "--registry registry.test/relapse", 1, false, []string{"get", "list", "watch"}, nil, nil},
		{"pods/exec", held, "--folder /trial/held --hold 1h0m0s", 1, true, []string{"get", "list", "watch"}, []string{"create", "get"}, nil},
		{"a volume", kept, "--folder /bundles/relapse-1a2b3c4d", 2, false, []string{"get", "list", "watch", "create", "delete"}, []string{"create", "get"}, []string{"get"}},
	} {
		p := Job(c.spec).Spec.Template.Spec
		if got, want := strings.Join(p.Containers[0].Args, " "), "recorder --run relapse-1a2b3c4d "+c.args; got != want {
			t.Errorf("%s: a recorder is started with %q, want %q", c.name, got, want)
		}
		if len(p.Volumes) != c.volumes || holds(p) != c.probed {
			t.Errorf("%s: %d volumes, waits: %v", c.name, len(p.Volumes), holds(p))
		}
		verbs := map[string][]string{}
		for _, r := range Role(c.spec).Rules {
			verbs[r.Resources[0]] = r.Verbs
		}
		if !slices.Equal(verbs["pods"], c.pods) || !slices.Equal(verbs["pods/exec"], c.exec) || !slices.Equal(verbs["persistentvolumeclaims"], c.claims) || len(verbs["jobs"]) == 0 {
			t.Errorf("%s: the Role has %v", c.name, verbs)
		}
	}
}

// What reads a volume is as restricted as a trial's pod, belongs to no Job, and ends by itself.
func TestTheReaderOfAVolume(t *testing.T) {
	p, err := reader("relapse-1a2b3c4d", ledger.Job{Namespace: "relapse", Image: "registry.test/relapse@sha256:aa", Storage: "bundles", CPU: "500m"})
	if err != nil {
		t.Fatal(err)
	}
	c := p.Spec.Containers[0]
	if p.Labels[RunLabel] != "" || p.Labels[readerLabel] == "" || *p.Spec.ActiveDeadlineSeconds != 3600 || *p.Spec.AutomountServiceAccountToken {
		t.Errorf("the pod has the labels %v and the spec %+v", p.Labels, p.Spec)
	}
	if strings.Join(append(c.Command, c.Args...), " ") != "sleep infinity" || !*c.SecurityContext.ReadOnlyRootFilesystem || c.Resources.Limits.Cpu().String() != "500m" {
		t.Errorf("its container is %+v", c)
	}
}

// Where programs are mounted, this program is copied before it runs: some runtimes mount images so that nothing in them
// can be executed. The other programs are copied by the provider, into a folder for each cluster.
func TestTheJobWithAnImageVolume(t *testing.T) {
	s := spec()
	s.Image, s.Programs = "debian@sha256:bb", "registry.test/relapse@sha256:aa"
	p := Job(s).Spec.Template.Spec
	c := p.Containers[0]
	script := `cp /relapse/bin/relapse /trial/relapse-recorder && exec /trial/relapse-recorder "$@"`
	if c.Image != "debian@sha256:bb" || !slices.Equal(c.Command, []string{"sh", "-c", script, "relapse"}) || c.Args[0] != RecorderCommand {
		t.Errorf("%s is started with %q %q", c.Image, c.Command, c.Args)
	}
	want := corev1.Volume{Name: "programs", VolumeSource: corev1.VolumeSource{
		Image: &corev1.ImageVolumeSource{Reference: "registry.test/relapse@sha256:aa", PullPolicy: corev1.PullIfNotPresent}}}
	if i := slices.IndexFunc(p.Volumes, func(v corev1.Volume) bool { return v.Name == "programs" }); i < 0 || cmp.Diff(want, p.Volumes[i]) != "" {
		t.Errorf("the volumes are %+v", p.Volumes)
	}
	if !slices.Contains(c.VolumeMounts, corev1.VolumeMount{Name: "programs", MountPath: "/relapse", ReadOnly: true}) {
		t.Errorf("mounted are %+v", c.VolumeMounts)
	}
}

// Each component whose memory is limited has a container of its own, which is started again when it was killed, and whose
// processes the recorder sees.
func TestTheJobWithLimitedComponents(t *testing.T) {
	s := spec()
	s.Limited = []resource.Quantity{resource.MustParse("512Mi"), resource.MustParse("512Mi")}
	p := Job(s).Spec.Template.Spec
	if !*p.ShareProcessNamespace || len(p.InitContainers) != 2 || len(p.Containers) != 1 {
		t.Fatalf("the pod is %+v", p)
	}
	if got := strings.Join(p.Containers[0].Args, " "); !strings.Contains(got, " --containers /trial/containers ") {
		t.Errorf("the recorder is started with %q", got)
	}
	for i, c := range p.InitContainers {
		if *c.RestartPolicy != corev1.ContainerRestartPolicyAlways || c.Resources.Limits.Memory().String() != "512Mi" || len(c.Resources.Limits) != 1 ||
			c.Resources.Requests.Memory().String() != "512Mi" {
			t.Errorf("a component's container is %+v", c)
		}
		if cmp.Diff(p.Containers[0].SecurityContext, c.SecurityContext) != "" || len(c.VolumeMounts) != 1 || c.VolumeMounts[0].MountPath != "/trial" {
			t.Errorf("it is less restricted than the recorder, or doesn't see its files: %+v", c)
		}
		if want := []string{"contain /trial/containers/1.sock", "contain /trial/containers/2.sock"}[i]; strings.Join(c.Args, " ") != want {
			t.Errorf("it is started with %q, want %q", c.Args, want)
		}
	}
	s.Programs = "registry.test/relapse@sha256:aa"
	if c := Job(s).Spec.Template.Spec.InitContainers[1]; !strings.Contains(c.Command[2], "/trial/relapse-component-2") {
		t.Errorf("with an image volume it is started with %q", c.Command)
	}
	if p := Job(spec()).Spec.Template.Spec; p.ShareProcessNamespace != nil || len(p.InitContainers) > 0 {
		t.Errorf("without limits the pod is %+v", p)
	}
}

func TestLimitedComponentsOfAPlan(t *testing.T) {
	limits := func(all ...string) plan.Trial {
		var one plan.Trial
		for _, limit := range all {
			one.Clusters = append(one.Clusters, plan.Cluster{Memory: map[string]string{"kube-apiserver": limit}})
		}
		return one
	}
	got, err := LimitedIn(&plan.Plan{Trials: []plan.Trial{limits("512Mi", "1Gi"), limits("1Gi", "512Mi")}})
	if err != nil || len(got) != 2 || got[0].String() != "512Mi" || got[1].String() != "1Gi" {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := LimitedIn(&plan.Plan{Trials: []plan.Trial{{Clusters: []plan.Cluster{{}}}}}); err != nil || len(got) > 0 {
		t.Errorf("without limits: %v, %v", got, err)
	}
	_, err = LimitedIn(&plan.Plan{Trials: []plan.Trial{limits("512Mi"), limits("1Gi")}})
	if want := "the trials limit the memory of components in different ways (512Mi, and 1Gi)"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}
