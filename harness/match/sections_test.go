package match_test

import (
	"fmt"
	"strings"
	"testing"
)

// kubectl cluster-info dump has the logs of a pod's containers below each other, or on one page among resources. Whose
// they are is in the lines around them.
func TestClusterInfoDump(t *testing.T) {
	logs := func(container, text string) string {
		return fmt.Sprintf("==== START logs for container %s of pod kube-system/%[1]s-node1 ====\n%s==== END logs for container %[1]s of pod kube-system/%[1]s-node1 ====\n",
			container, text)
	}
	crashed := fmt.Sprintf(panicText, "v1.26.1", "CSILimits")
	page := "{\n    \"kind\": \"NodeList\",\n    \"items\": []\n}\n" + logs("etcd", "ready\n") + logs("kube-scheduler", crashed) +
		"{\n    \"kind\": \"PodList\",\n    \"items\": [\n{\"metadata\": {\"name\": \"p\"}, \"status\": {\"containerStatuses\": [{\"name\": \"c\", \"restartCount\": 3}]}}]\n}\n" +
		logs("kube-proxy", "the last line, which has no end")
	for _, c := range []struct {
		name, file, text string
		inputs, problems int
		where            string
	}{
		{"a pod's file", "kube-system/kube-scheduler-node1/logs.txt", logs("init", "") + logs("kube-scheduler", crashed), 2, 0, "logs.txt:5"},
		{"one page", "dump.txt", page, 4, 0, "dump.txt:10"},
		{"cut short", "logs.txt", strings.TrimSuffix(logs("kube-scheduler", crashed), "==== END logs for container kube-scheduler of pod kube-system/kube-scheduler-node1 ====\n"), 1, 1, "logs.txt:3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, nil, files(t, map[string]string{c.file: c.text}))
			answered(t, r, "scheduler-nil-pointer", "met", "died-of-it")
			if len(r.Inputs) != c.inputs || len(r.Problems) != c.problems {
				t.Errorf("inputs %v, problems %v", r.Inputs, r.Problems)
			}
			sub := of(t, r, "scheduler-nil-pointer").Subjects[0]
			if sub.Version != "v1.26.1" || !strings.Contains(fmt.Sprint(sub.Signs[0].Where), c.where) {
				t.Errorf("version %q, signs %+v; want %s", sub.Version, sub.Signs[0], c.where)
			}
			if c.name == "one page" && len(r.Unexplained.Restarts) != 1 {
				t.Errorf("restarts %v", r.Unexplained.Restarts)
			}
		})
	}
}
