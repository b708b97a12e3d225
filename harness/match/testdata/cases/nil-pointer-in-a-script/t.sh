#!/bin/bash
set -euo pipefail
cat > fake.log <<EOF
I0211 08:00:01.120001       1 server.go:152] "Starting Kubernetes Scheduler" version="v1.26.0"
I0211 08:00:02.220001       1 shared_informer.go:280] Caches are synced for RequestHeaderAuthRequestController
panic: runtime error: invalid memory address or nil pointer dereference [recovered]
	panic: runtime error: invalid memory address or nil pointer dereference
[signal SIGSEGV: segmentation violation code=0x1 addr=0x20 pc=0x1a2b3c4]

goroutine 355 [running]:
k8s.io/apimachinery/pkg/util/runtime.HandleCrash({0x0, 0x0, 0xc000c5e4e0?})
	vendor/k8s.io/apimachinery/pkg/util/runtime/runtime.go:56 +0xd7
panic({0x1bb8fa0, 0x2f5c6e0})
	/usr/local/go/src/runtime/panic.go:884 +0x212
k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits.(*CSILimits).checkAttachableInlineVolume(0xc0003a5c80, 0xc0011cf0f0, 0x0, 0xc000f4e400, 0xc0012b9560)
	pkg/scheduler/framework/plugins/nodevolumelimits/csi.go:234 +0x1a5
k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits.(*CSILimits).filterAttachableVolumes(0xc0003a5c80, 0xc000f4e400, 0x0, 0x1, 0xc0012b9560)
	pkg/scheduler/framework/plugins/nodevolumelimits/csi.go:166 +0x2ad
k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits.(*CSILimits).Filter(0xc0003a5c80, {0x2059ee0, 0xc000b0e040}, 0xc000c1e8a0?, 0xc000f4e400, 0xc000d5ab40)
	pkg/scheduler/framework/plugins/nodevolumelimits/csi.go:96 +0x1ee
k8s.io/kubernetes/pkg/scheduler/framework/runtime.(*frameworkImpl).runFilterPlugin(0xc00047a2c0, {0x2059ee0, 0xc000b0e040}, {0x7f3c5c1c0d18, 0xc0003a5c80}, 0xc000c1e8a0?, 0xc000f4e400?, 0xc000d5ab40?)
	pkg/scheduler/framework/runtime/framework.go:720 +0x2a2
k8s.io/kubernetes/pkg/scheduler/framework/runtime.(*frameworkImpl).RunFilterPlugins(0xc00047a2c0, {0x2059ee0, 0xc000b0e040}, 0x0?, 0xc000f4e400, 0xc000d5ab40)
	pkg/scheduler/framework/runtime/framework.go:698 +0xe5
k8s.io/kubernetes/pkg/scheduler.(*Scheduler).findNodesThatPassFilters.func1(0x3)
	pkg/scheduler/schedule_one.go:485 +0x10b
k8s.io/kubernetes/pkg/scheduler/framework/parallelize.Parallelizer.Until.func1(0x1?)
	pkg/scheduler/framework/parallelize/parallelism.go:60 +0x1f
k8s.io/client-go/util/workqueue.ParallelizeUntil.func1()
	vendor/k8s.io/client-go/util/workqueue/parallelizer.go:90 +0x106
created by k8s.io/client-go/util/workqueue.ParallelizeUntil
	vendor/k8s.io/client-go/util/workqueue/parallelizer.go:76 +0x1d7
EOF
./run fake.log
