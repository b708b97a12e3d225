package kubernetes

import (
	"fmt"
	"path"
	"runtime"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// RunLabel is the label with a run's name on its Job and on the Job's pods.
const RunLabel = "relapse.dev/run"

// queueLabel names the queue in which Kueue admits a Job. Kueue needs such a Job to be created suspended.
const queueLabel = "kueue.x-k8s.io/queue-name"

// retries is how often a trial whose recorder failed by its own fault begins again. Disruptions don't count.
const retries = 3

// JobSpec says how the Job of a run differs from that of another.
type JobSpec struct {
	Run         string // the run's name, and the Job's
	Namespace   string
	Image       string // by digest
	Programs    string // by digest, an image with the run's programs that is mounted; "" if Image has them
	Trials      int
	Parallelism int
	Memory      resource.Quantity   // of a trial: requested, and the limit
	CPU         *resource.Quantity  // of a trial: requested, and the limit; nil for neither
	Limited     []resource.Quantity // the limits of components whose memory a trial limits, each in a container of its own
	Queue       string              // of Kueue; "" for none
	Suspend     bool                // the Job is created suspended
	Secret      string              // of type kubernetes.io/dockerconfigjson, to pull the image and push bundles; "" for none
	Registry    Registry            // has the image, and the bundles unless they go another way
	Storage     string              // the claim of the volume for the bundles; "" for none
	Hold        time.Duration       // how long a pod waits for its bundle to be fetched from it; 0 if it goes another way
}

// recorderName is the name of the container in each pod.
const recorderName = "recorder"

// Job returns the Indexed Job of a run. Each index is one trial.
//
// A recorder that exits with 0 has delivered a complete bundle, whatever its verdict. A disruption isn't counted, and a
// failure that is no doing of the trial is retried. After anything else the index fails at once: a trial that ended
// without evidence isn't repeated until it comes out well.
func Job(s JobSpec) *batchv1.Job {
	labels := map[string]string{"app.kubernetes.io/name": "relapse", RunLabel: s.Run}
	job := &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: s.Run, Namespace: s.Namespace, Labels: labels},
		Spec: batchv1.JobSpec{
			CompletionMode:       ptr.To(batchv1.IndexedCompletion),
			Completions:          ptr.To(int32(s.Trials)),
			Parallelism:          ptr.To(int32(s.Parallelism)),
			BackoffLimitPerIndex: ptr.To(int32(retries)),
			PodReplacementPolicy: ptr.To(batchv1.Failed), // never two pods of one trial
			Suspend:              ptr.To(s.Suspend || s.Queue != ""),
			PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
				{Action: batchv1.PodFailurePolicyActionIgnore, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
					{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}},
				{Action: batchv1.PodFailurePolicyActionFailIndex, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
					ContainerName: ptr.To(recorderName), // how components end is none of the Job's business
					Operator:      batchv1.PodFailurePolicyOnExitCodesOpNotIn, Values: repeated}},
			}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec(s)},
		},
	}
	if s.Queue != "" {
		job.Labels = map[string]string{queueLabel: s.Queue}
		for k, v := range labels {
			job.Labels[k] = v
		}
	}
	return job
}

func podSpec(s JobSpec) corev1.PodSpec {
	amounts := corev1.ResourceList{corev1.ResourceMemory: s.Memory}
	if s.CPU != nil {
		amounts[corev1.ResourceCPU] = *s.CPU
	}
	recorder := corev1.Container{
		Name: recorderName, Image: s.Image,
		Args: []string{RecorderCommand, "--run", s.Run},
		Env: []corev1.EnvVar{{Name: "HOME", Value: workDir}, {Name: "TMPDIR", Value: workDir},
			{Name: "XDG_STATE_HOME", Value: path.Join(workDir, "state")},
			{Name: DisruptedEnv, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
				FieldPath: "metadata.annotations['" + batchv1.JobIndexIgnoredFailureCountAnnotation + "']"}}},
			{Name: PodEnv, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}},
		Resources:                corev1.ResourceRequirements{Requests: amounts, Limits: amounts},
		VolumeMounts:             []corev1.VolumeMount{{Name: "work", MountPath: workDir}},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
	s.mountPrograms(&recorder)
	if len(s.Limited) > 0 {
		recorder.Args = append(recorder.Args, "--containers", containersDir)
	}
	if folder := keptIn(s.Run, s.Storage, s.Hold > 0); folder != "" {
		recorder.Args = append(recorder.Args, "--folder", folder)
	} else {
		recorder.Args = append(recorder.Args, "--registry", s.Registry.Repository)
		if s.Registry.Insecure {
			recorder.Args = append(recorder.Args, "--insecure-registry")
		}
	}
	if s.Hold > 0 {
		recorder.Args = append(recorder.Args, "--hold", s.Hold.String())
		recorder.ReadinessProbe = &corev1.Probe{PeriodSeconds: 5, FailureThreshold: 1, ProbeHandler: corev1.ProbeHandler{
			Exec: &corev1.ExecAction{Command: []string{"sh", "-c", "test -e " + heldDir + "/*.json"}}}}
	}
	pod := corev1.PodSpec{
		RestartPolicy:                corev1.RestartPolicyNever,
		AutomountServiceAccountToken: ptr.To(false),
		EnableServiceLinks:           ptr.To(false),
		NodeSelector:                 map[string]string{corev1.LabelOSStable: runtime.GOOS, corev1.LabelArchStable: runtime.GOARCH},
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To(int64(user)), RunAsGroup: ptr.To(int64(user)), FSGroup: ptr.To(int64(user)),
			FSGroupChangePolicy: ptr.To(corev1.FSGroupChangeOnRootMismatch), // a volume may have the bundles of many runs
			SeccompProfile:      &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Volumes: []corev1.Volume{{Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
	}
	if s.Programs != "" {
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "programs", VolumeSource: corev1.VolumeSource{
			Image: &corev1.ImageVolumeSource{Reference: s.Programs, PullPolicy: corev1.PullIfNotPresent}}})
	}
	if s.Storage != "" {
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "bundles", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: s.Storage}}})
		recorder.VolumeMounts = append(recorder.VolumeMounts, corev1.VolumeMount{Name: "bundles", MountPath: storageDir})
	}
	if s.Secret != "" {
		pod.ImagePullSecrets = []corev1.LocalObjectReference{{Name: s.Secret}}
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "registry", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: s.Secret, Items: []corev1.KeyToPath{{Key: corev1.DockerConfigJsonKey, Path: "config.json"}}}}})
		recorder.VolumeMounts = append(recorder.VolumeMounts, corev1.VolumeMount{Name: "registry", MountPath: registryAuth, ReadOnly: true})
		recorder.Env = append(recorder.Env, corev1.EnvVar{Name: "DOCKER_CONFIG", Value: registryAuth})
	}
	pod.Containers, pod.InitContainers = []corev1.Container{recorder}, s.limited(recorder)
	if len(s.Limited) > 0 { // a process is told by its number, and looked at by it
		pod.ShareProcessNamespace = ptr.To(true)
	}
	return pod
}

// mountPrograms has a container run this program from the image volume, if there is one. Some runtimes mount it so that
// nothing can be executed from there.
func (s JobSpec) mountPrograms(c *corev1.Container) {
	if s.Programs == "" {
		return
	}
	own := path.Join(workDir, "relapse-"+c.Name) // each has its own: one that runs can't be written
	c.Command = []string{"sh", "-c", "cp " + programFile + " " + own + " && exec " + own + ` "$@"`, "relapse"}
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "programs", MountPath: runDir, ReadOnly: true})
}

// ContainCommand is the command of this program that runs in a container of a component's own.
const ContainCommand = "contain"

// containersDir is the folder with the sockets of the containers of components.
const containersDir = workDir + "/containers"

// limited returns the containers of components whose memory is limited. They are as restricted as the recorder and see
// the same work folder. They run from before the recorder begins until it has ended, and a kubelet starts them again.
func (s JobSpec) limited(recorder corev1.Container) (out []corev1.Container) {
	for i, limit := range s.Limited {
		amounts := corev1.ResourceList{corev1.ResourceMemory: limit}
		c := corev1.Container{
			Name: fmt.Sprintf("component-%d", i+1), Image: s.Image, RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
			Args:            []string{ContainCommand, path.Join(containersDir, fmt.Sprintf("%d.sock", i+1))},
			Env:             []corev1.EnvVar{{Name: "HOME", Value: workDir}, {Name: "TMPDIR", Value: workDir}},
			Resources:       corev1.ResourceRequirements{Requests: amounts, Limits: amounts},
			VolumeMounts:    []corev1.VolumeMount{{Name: "work", MountPath: workDir}},
			SecurityContext: recorder.SecurityContext,
		}
		s.mountPrograms(&c)
		out = append(out, c)
	}
	return out
}

// indexOf returns which trial of its plan a pod makes, from 0; -1 for a pod of no Indexed Job.
func indexOf(p *corev1.Pod) int {
	i, err := strconv.Atoi(p.Annotations[batchv1.JobCompletionIndexAnnotation])
	if err != nil {
		return -1
	}
	return i
}
