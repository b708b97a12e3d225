package question_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

// server is a goroutine that serves, under an id.
func server(id int, entry string) string {
	return fmt.Sprintf("goroutine %d [IO wait]:\nnet.read(0xc000123450)\n\t/net.go:1 +0x1\n%s(0xc000123450)\n\t/a.go:1 +0x1\ncreated by a.Serve in goroutine 1\n\t/a.go:9 +0x1\n\n", id, entry)
}

// What a subject shows of itself may contradict what the kernel says of the process that is looked at.
func TestOtherProcess(t *testing.T) {
	const text = "# TYPE requests_total counter\nrequests_total{verb=\"GET\",code=\"200\"} %d\n# TYPE rules_total gauge\nrules_total %d\n" +
		"# TYPE took_seconds histogram\ntook_seconds_bucket{le=\"+Inf\"} %[1]d\ntook_seconds_sum -%[1]d\ntook_seconds_count %[1]d\n"
	metrics := func(tr *checktest.Trial, component string, second float64, requests, rules int) {
		_, err := tr.W.Write(bundle.Meta{Kind: bundle.Metrics, Arm: checktest.Arm, Component: component, Time: tr.At(second)}, "txt", strings.NewReader(fmt.Sprintf(text, requests, rules)))
		tr.Must(err)
	}
	for _, c := range []struct {
		name string
		fill func(*checktest.Trial)
		want string // "" if nothing contradicts
	}{
		{"one process", func(tr *checktest.Trial) {
			tr.Dumped(checktest.Arm, 110, server(40, "a.(*conn).serve")+server(41, "a.(*conn).serve"))
			tr.Dumped(checktest.Arm, 150, server(41, "a.(*conn).serve")+server(55, "a.watch"))
			metrics(tr, "", 110, 40, 9)
			metrics(tr, "", 150, 41, 2)
		}, ""},
		{"an id is another goroutine's", func(tr *checktest.Trial) {
			tr.Dumped(checktest.Arm, 110, server(40, "a.(*conn).serve"))
			tr.Dumped(checktest.Arm, 150, server(40, "a.watch"))
		}, "the dumps of 10:01:50 and 10:02:30 are of two processes: goroutine 40 was a.(*conn).serve, created by a.Serve, and is a.watch, created by a.Serve in the other"},
		{"the heap is elsewhere", func(tr *checktest.Trial) {
			tr.Dumped(checktest.Arm, 110, server(40, "a.watch"))
			tr.Dumped(checktest.Arm, 150, strings.ReplaceAll(server(41, "a.watch"), "0xc000123450", "0x3f1200123450"))
		}, "the heap lies at 0xc000000000, and in the other at 0x3f1200000000"},
		{"a dump after the window", func(tr *checktest.Trial) {
			tr.Dumped(checktest.Arm, 110, server(40, "a.(*conn).serve"))
			tr.Dumped(checktest.Arm, 230, server(40, "a.watch"))
		}, ""},
		{"another arm's dumps", func(tr *checktest.Trial) {
			tr.Dumped(checktest.Arm, 110, server(40, "a.(*conn).serve"))
			tr.Dumped(checktest.Other, 150, server(40, "a.watch"))
		}, ""},
		{"a counter fell", func(tr *checktest.Trial) {
			metrics(tr, "", 110, 40, 9)
			metrics(tr, "", 150, 39, 9)
		}, `the counter requests_total{code="200",verb="GET"} fell from 40 at 10:01:50 to 39 at 10:02:30, which it can't do in one process`},
		{"two answers at once, in an order that nobody knows", func(tr *checktest.Trial) {
			metrics(tr, "", 110, 40, 9)
			metrics(tr, "", 112, 39, 9)
			metrics(tr, "", 150, 41, 9)
		}, ""},
		{"another component's counter fell", func(tr *checktest.Trial) {
			metrics(tr, "", 110, 40, 9)
			metrics(tr, "etcd", 150, 1, 9)
		}, ""},
		{"a sampled counter fell between two whole answers", func(tr *checktest.Trial) {
			metrics(tr, "", 110, 40, 9)
			metrics(tr, "", 180, 60, 9)
			st := tr.Stream(bundle.MetricSamples, checktest.Arm)
			for s, v := range []float64{41, 45, 3, 60} {
				tr.Sample(st, "requests_total", float64(112+10*s), v, map[string]string{"verb": "GET", "code": "200"})
				tr.Sample(st, "rules_total", float64(112+10*s), -v, nil)
				tr.Sample(st, "took_seconds_sum", float64(112+10*s), -v, nil)
			}
		}, `the counter requests_total{code="200",verb="GET"} fell from 45 at 10:02:02 to 3 at 10:02:12`},
		{"several instances, each of which may have answered", func(tr *checktest.Trial) {
			st, err := tr.W.Stream(bundle.Meta{Kind: bundle.Identity, Arm: checktest.Arm, Node: "second", Time: tr.Start}, "jsonl")
			tr.Must(err)
			tr.LookAt(st, 8, 100, 200)
			metrics(tr, "", 110, 40, 9)
			metrics(tr, "", 150, 39, 9)
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := checktest.NewTrial(t, time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC))
			tr.Process(checktest.Arm, 7, 100, 200)
			c.fill(tr)
			why, paths := question.OtherProcess(tr.W.View(), checktest.Arm, bundle.Window{Start: tr.At(100), End: tr.At(200)})
			if !strings.Contains(why, c.want) || (why == "") != (c.want == "") || (why == "") != (len(paths) == 0) {
				t.Errorf("%q by %q, want %q", why, paths, c.want)
			}
		})
	}
}
