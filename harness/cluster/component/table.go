package component

import "slices"

// Families that all components have, as programs in Go with client-go's registry of metrics.
const (
	startTime  = "process_start_time_seconds"
	cpu        = "process_cpu_seconds_total"
	memory     = "process_resident_memory_bytes"
	goroutines = "go_goroutines"
	heap       = "go_memstats_heap_inuse_bytes"
)

// queues are the families of controllers' work queues.
var queues = []string{
	"workqueue_depth",
	"workqueue_work_duration_seconds",
	"workqueue_unfinished_work_seconds",
	"workqueue_longest_running_processor_seconds",
}

var table = []Component{
	{
		Name:       "kubelet",
		Runs:       AsService,
		Executable: "/usr/bin/kubelet",
		Kubernetes: true,
		Kubeadm: Kubeadm{[]string{"InitConfiguration", "JoinConfiguration"},
			[]string{"nodeRegistration", "kubeletExtraArgs"}, true, ""},
		Endpoint: Endpoint{
			Proxied: true,
		},
		Port:       10250,
		Ready:      "/healthz",
		Older:      3,
		OlderUntil: &OlderUntil{28, 2},
		Metrics: []string{
			"kubelet_pleg_last_seen_seconds",
			"kubelet_pleg_relist_duration_seconds",
			"kubelet_pleg_relist_interval_seconds",
			"kubelet_pleg_discard_events",
			"kubelet_running_containers",
			startTime,
			goroutines,
		},
	},
	{
		Name:       "kube-apiserver",
		Runs:       AsStaticPod,
		Executable: "/usr/local/bin/kube-apiserver",
		Kubernetes: true,
		Kubeadm: Kubeadm{
			[]string{"ClusterConfiguration"},
			[]string{"apiServer", "extraArgs"},
			true,
			"",
		},
		Port:     6443,
		Ready:    "/readyz",
		Live:     "/livez",
		Limited:  true,
		Insecure: &Insecure{"insecure-port", 20},
		Metrics: []string{
			"etcd_request_duration_seconds",
			memory,
			cpu,
			startTime,
			goroutines,
			heap,
		},
	},
	{
		Name:       "kube-controller-manager",
		Runs:       AsStaticPod,
		Executable: "/usr/local/bin/kube-controller-manager",
		Kubernetes: true,
		Kubeconfig: "/etc/kubernetes/controller-manager.conf",
		Kubeadm: Kubeadm{
			[]string{"ClusterConfiguration"},
			[]string{"controllerManager", "extraArgs"},
			true,
			"",
		},
		Endpoint: Endpoint{
			URL:           "https://127.0.0.1:10257",
			Authenticated: true,
		},
		Ready:    "/healthz",
		Older:    1,
		Limited:  true,
		Insecure: &Insecure{"port", 22},
		Elects:   true,
		Metrics:  slices.Concat(queues, []string{startTime, cpu, goroutines}),
	},
	{
		Name:       "kube-scheduler",
		Runs:       AsStaticPod,
		Executable: "/usr/local/bin/kube-scheduler",
		Kubernetes: true,
		Kubeconfig: "/etc/kubernetes/scheduler.conf",
		Kubeadm: Kubeadm{
			[]string{"ClusterConfiguration"},
			[]string{"scheduler", "extraArgs"},
			false,
			"",
		},
		Endpoint: Endpoint{
			URL:           "https://127.0.0.1:10259",
			Authenticated: true,
		},
		Ready:    "/healthz",
		Older:    1,
		Limited:  true,
		Insecure: &Insecure{"port", 23},
		Elects:   true,
		Metrics: []string{
			"scheduler_pending_pods",
			"scheduler_schedule_attempts_total",
			startTime,
			cpu,
			goroutines,
		},
	},
	{
		Name:       "etcd",
		Runs:       AsStaticPod,
		Executable: "/usr/local/bin/etcd",
		OwnModule:  EtcdModule,
		OwnVersion: EtcdVersion,
		Kubeadm: Kubeadm{
			[]string{"ClusterConfiguration"},
			[]string{"etcd", "local", "extraArgs"},
			false,
			"",
		},
		Endpoint: Endpoint{URL: "http://127.0.0.1:2381"},
		Port:     2380,
		Ready:    "/health",
		Older:    -1,
		Metrics: []string{
			"etcd_disk_wal_fsync_duration_seconds",
			"etcd_disk_backend_commit_duration_seconds",
			"etcd_server_has_leader",
			startTime,
			cpu,
			goroutines,
		},
	},
	{
		Name:       "kube-proxy",
		Runs:       AsDaemonSet,
		Executable: "/usr/local/bin/kube-proxy",
		Kubernetes: true,
		Kubeadm: Kubeadm{
			Documents: []string{"KubeProxyConfiguration"},
			Config:    "kubeproxy.config.k8s.io/v1alpha1",
		},
		Endpoint: Endpoint{
			URL: "http://127.0.0.1:10249",
		},
		Ready:      "/healthz",
		Older:      3,
		OlderUntil: &OlderUntil{28, 2},
		Metrics: []string{
			"kubeproxy_sync_proxy_rules_duration_seconds",
			cpu,
			"go_gc_duration_seconds",
			goroutines,
		},
	},
	{
		// Each cloud has its own program, which prints its own version.
		Name:       "cloud-controller-manager",
		Runs:       AsAddedPod,
		Executable: "/usr/local/bin/cloud-controller-manager",
		Endpoint: Endpoint{
			URL:           "https://127.0.0.1:10258",
			Authenticated: true,
		},
		Ready:   "/healthz",
		Older:   1,
		Elects:  true,
		Metrics: slices.Concat(queues, []string{startTime, cpu, goroutines}),
	},
	{
		Name: "relapse-lbaas", Runs: AsSeam, Executable: "/usr/local/bin/relapse-lbaas",
		Endpoint: Endpoint{URL: "http://127.0.0.1:9876"}, Ready: "/healthz", Older: -1,
	},
}
