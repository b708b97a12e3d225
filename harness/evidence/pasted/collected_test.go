package pasted_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/evidence/pasted"
)

// The lines that a program wrote are taken out of the JSON in which collectors keep them, and a program's own JSON stays.
func TestCollectors(t *testing.T) {
	const log = "I0301 10:00:00.000000       1 a.go:1] fine\npanic: boom\n\ngoroutine 9 [running]:\nmain.f()\n\t/a.go:1 +0x1"
	all := strings.Split(log, "\n")
	const at, file = "2026-03-01T10:00:00Z", "/var/log/pods/kube-system_kcm-n1_0a1b/kube-controller-manager/3.log"
	for _, c := range []struct {
		name   string
		record func(line string) any
		prefix string // of each line that is given back; "" if the text stays as it is
	}{
		{"text", func(l string) any { return map[string]any{"time": at, "file": file, "text": l} }, "[pod/kcm-n1/kube-controller-manager] 2026-03-01T10:00:00Z "},
		{"message", func(l string) any {
			return map[string]any{"@timestamp": at, "log": map[string]any{"file": map[string]any{"path": file}}, "message": l}
		}, "[pod/kcm-n1/kube-controller-manager] 2026-03-01T10:00:00Z "},
		{"a file of no container", func(l string) any { return map[string]any{"time": at, "file": "/var/log/x.log", "line": l} }, "2026-03-01T10:00:00Z "},
		{"docker's own", func(l string) any { return map[string]any{"log": l + "\n", "stream": "stderr", "time": at} }, ""},
		{"journald's own", func(l string) any { return map[string]any{"MESSAGE": l, "_PID": "7"} }, ""},
		{"a program's own", func(l string) any { return map[string]any{"ts": 1.5, "msg": "said: " + l} }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var in strings.Builder
			for _, l := range all {
				b, err := json.Marshal(c.record(l))
				if err != nil {
					t.Fatal(err)
				}
				in.Write(append(b, '\n'))
			}
			var got, want []string
			for _, l := range pasted.Read([]byte(in.String())).Lines {
				got = append(got, string(l.Text))
			}
			for _, l := range all {
				want = append(want, c.prefix+l)
			}
			if c.prefix == "" {
				want = strings.Split(strings.TrimSuffix(in.String(), "\n"), "\n")
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
	// Without times, and with the newest first.
	slices.Reverse(all)
	var in strings.Builder
	for _, l := range all {
		b, _ := json.Marshal(l)
		in.Write(append(b, '\n'))
	}
	slices.Reverse(all)
	var got []string
	for _, l := range pasted.Read([]byte(in.String())).Lines {
		got = append(got, string(l.Text))
	}
	if !slices.Equal(got, all) {
		t.Errorf("newest first: %q, want %q", got, all)
	}
}
