package match_test

import "testing"

// A program that is linked with a component's packages is not the component: its main package shows that, and so does
// what has begun a goroutine.
func TestMainsOfOthers(t *testing.T) {
	const filter = "scheduler-nil-pointer"
	crashed := "panic: runtime error: invalid memory address or nil pointer dereference\n\ngoroutine 233 [running]:\n" + filterFrames
	main := func(file string, calls string) string {
		return "\ngoroutine 1 [select, 31 minutes]:\n" + calls + "main.main()\n\t" + file + ":31 +0x1\n"
	}
	const command = "k8s.io/kubernetes/cmd/kube-scheduler/app.runCommand(0x1)\n\tcmd/kube-scheduler/app/server.go:171 +0x1\ngithub.com/spf13/cobra.(*Command).Execute(...)\n\tcobra/command.go:992\n"
	const own = "main.(*app).wait(0x1)\n\t/src/tool/app.go:9 +0x1\n"
	for _, c := range []struct{ name, text, want, why string }{
		{"nothing but the component's", crashed, "met", "died-of-it"},
		{"begun by kine", crashed + "created by github.com/k3s-io/kine/pkg/server.(*KVServerBridge).Watch in goroutine 31\n\tkine/pkg/server/watch.go:31 +0x1\n", "suspected", "it is of github.com/k3s-io/kine, by the function github.com/k3s-io/kine/pkg/server.(*KVServerBridge).Watch"},
		{"called by a main function", crashed + "main.main()\n\t/src/tool/main.go:31 +0x1\n", "suspected", "it is of another program, by its main package, whose main.main is in /src/tool/main.go"},
		{"called by a method of a main package", crashed + "main.(*app).check(0x1)\n\t/src/tool/app.go:31 +0x1\ncreated by k8s.io/apimachinery/pkg/util/wait.Until\n\twait.go:1 +0x1\n", "suspected", "whose main.(*app).check is in /src/tool/app.go"},
		{"begun by a main package", crashed + "created by main.run in goroutine 1\n\tgithub.com/acme/tool/cmd/tool/main.go:31 +0x1\n", "suspected", "it is of tool, by its main package, whose main.run is in github.com/acme/tool/cmd/tool/main.go"},
		{"beside a main function that waits for itself", crashed + main("/src/tool/main.go", own), "suspected", "it is of another program, by its main package"},
		{"beside one that calls its own module", crashed + main("tool/main.go", "github.com/acme/tool/app.Run(0x1)\n\ttool/app.go:1 +0x1\n"), "suspected", "it is of github.com/acme/tool, by what its main function has called, github.com/acme/tool/app.Run"},
		{"beside one that has begun another goroutine", crashed + "\ngoroutine 7 [select]:\nnet/http.(*Server).Serve(0x1)\n\tserver.go:1 +0x1\ncreated by main.serve in goroutine 1\n\t/src/tool/main.go:31 +0x1\n", "suspected", "whose main.serve is in /src/tool/main.go"},
		{"called by another's handler", crashed + "github.com/acme/tool/web.(*Server).ServeHTTP(0x1)\n\tweb.go:1 +0x1\nnet/http.(*conn).serve(0x1)\n\tserver.go:1 +0x1\ncreated by net/http.(*Server).Serve\n\tserver.go:1 +0x1\n", "suspected", "it is of github.com/acme/tool, by the function github.com/acme/tool/web.(*Server).ServeHTTP"},
		{"of a test, by its file", crashed + "k8s.io/kubernetes/pkg/scheduler.start.func1()\n\tk8s.io/kubernetes/pkg/scheduler/scheduler_test.go:44 +0x1\n", "suspected", "it is of a test, by the file of the function k8s.io/kubernetes/pkg/scheduler.start.func1"},

		{"the component's own main function", crashed + main("cmd/kube-scheduler/scheduler.go", command), "met", "died-of-it"},
		{"without its folder", crashed + main("/r/m.go", command), "met", "died-of-it"},
		{"of a build with plug-ins of its own", crashed + main("sigs.k8s.io/scheduler-plugins/cmd/scheduler/main.go", command), "met", "died-of-it"},
		{"in a binary with several components", crashed + main("k8s.io/kubernetes/cmd/hyperkube/main.go", "main.(*HyperKube).Run(0x1)\n\tk8s.io/kubernetes/cmd/hyperkube/hyperkube.go:1 +0x1\n"), "met", "died-of-it"},
		{"called by a server's handler of its own", crashed + "k8s.io/apiserver/pkg/server.(*APIServerHandler).ServeHTTP(0x1)\n\thandler.go:1 +0x1\nnet/http.(*conn).serve(0x1)\n\tserver.go:1 +0x1\ngolang.org/x/net/http2.(*serverConn).runHandler(0x1)\n\th2.go:1 +0x1\ncreated by golang.org/x/net/http2.(*serverConn).processHeaders\n\th2.go:1 +0x1\n", "met", "died-of-it"},
	} {
		t.Run(c.name, func(t *testing.T) { answered(t, runOn(t, "kube-scheduler.log", c.text), filter, c.want, c.why) })
	}
}

// The main goroutine right above a panic is that of the same process, unless something shows that two of them are there.
func TestMainsAbove(t *testing.T) {
	const filter = "scheduler-nil-pointer"
	crashed := "panic: runtime error: invalid memory address or nil pointer dereference\n\ngoroutine 233 [running]:\n" + filterFrames
	main := func(file, calls string) string {
		return "goroutine 1 [select, 31 minutes]:\n" + calls + "main.main()\n\t" + file + ":31 +0x1\n\n"
	}
	tool := main("/src/tool/cmd/tool/main.go", "github.com/acme/tool/app.Run(0x1)\n\t/src/tool/app/app.go:1 +0x1\n")
	const own, others = "it is of kube-scheduler, by the function", "it is of tool, by its main package, whose main.main is in /src/tool/cmd/tool/main.go"
	for _, c := range []struct{ name, file, text, want, why string }{
		{"another program's", "x", tool + crashed, "suspected", others},
		{"that, in a file of the component's name", "kube-scheduler.log", tool + crashed, "suspected", others},
		{"in another fence", "x", "```\n" + tool + "```\n\n```\n" + crashed + "```\n", "met", own},
		{"below another heading", "x", "### tool\n" + tool + "### kube-scheduler\n" + crashed, "met", own},
		{"with a line between", "x", tool + "exit status 2\n" + crashed, "met", own},
		{"of a process that ended, too", "x", "panic: boom\n\n" + tool + crashed, "met", own},
		{"above a dump with a main goroutine of its own", "x", tool + crashed + "\n" + main("cmd/kube-scheduler/scheduler.go", ""), "met", "it is of kube-scheduler"},
		{"another component's", "x", main("cmd/kube-controller-manager/controller-manager.go", "k8s.io/kubernetes/cmd/kube-controller-manager/app.Run(0x1)\n\tapp.go:1 +0x1\n") + crashed, "met", own},
		{"etcd's, which has nothing of the component", "x", main("go.etcd.io/etcd/server/v3/main.go", "go.etcd.io/etcd/server/v3/etcdmain.Main(0x1)\n\tmain.go:1 +0x1\n") + crashed, "met", own},
	} {
		t.Run(c.name, func(t *testing.T) {
			answered(t, run(t, nil, files(t, map[string]string{c.file: c.text})), filter, c.want, c.why)
		})
	}
}

// A goroutine that k3s has begun for the datastore doesn't make the API server in its process another program's.
func TestKineInK3s(t *testing.T) {
	leak := "goroutine 9 [chan send, 30 minutes]:\nk8s.io/apiserver/pkg/registry/generic/registry.(*Store).DeleteCollection.func1(0x1)\n\t/store.go:1132 +0x1\n\n"
	k3s := "goroutine 1 [select, 31 minutes]:\ngithub.com/k3s-io/k3s/pkg/cli/server.run(0x1)\n\tserver.go:1 +0x1\nmain.main()\n\tgithub.com/k3s-io/k3s/cmd/server/main.go:31 +0x1\n\n"
	kine := "goroutine 31 [select]:\ngithub.com/k3s-io/kine/pkg/server.(*KVServerBridge).Watch(0x1)\n\twatch.go:1 +0x1\ncreated by github.com/k3s-io/kine/pkg/server.(*KVServerBridge).start\n\twatch.go:2 +0x1\n\n"
	answered(t, runOn(t, "dump.txt", k3s+kine+leak), "apiserver-goroutine-leak", "met", "by k3s")
}
