package match_test

import (
	"strings"
	"testing"
)

// A log or a dump in a ConfigMap is read like a file whose name the key is, and a configuration is not.
func TestConfigMaps(t *testing.T) {
	literal := func(key, text string) string {
		return "apiVersion: v1\ndata:\n  " + key + ": |\n" + each("    ", strings.TrimSpace(text)) + "kind: ConfigMap\nmetadata:\n  name: kept\n  namespace: support\n"
	}
	crashLog := strings.ReplaceAll(mapCrash(), "\t", "  ")
	for _, c := range []struct{ name, text, incident, want, why string }{
		{"a log", literal("kube-apiserver.log", crashLog), "concurrent-map-crash", "met", "died-of-it"},
		{"within a list", "apiVersion: v1\nitems:\n" + "- " + strings.TrimPrefix(each("  ", literal("kube-apiserver.log", crashLog)), "  ") + "kind: List\nmetadata: {}\n", "concurrent-map-crash", "met", "died-of-it"},
		{"a dump", literal("kubelet.txt", strings.ReplaceAll(kubelet("chan send, 217 minutes", "sleep"), "\t", "  ")), "pleg-deadlock", "met", "relist-blocked-for-minutes"},
		{"a manual", literal("kubelet.txt", "If you see that your node is NotReady, you will see something like this:\n\n"+strings.ReplaceAll(kubelet("chan send, 217 minutes", "sleep"), "\t", "  ")), "pleg-deadlock", "suspected", "explains something to others"},
		{"a configuration", literal("kube-apiserver.yaml", "apiVersion: v1\nkind: Policy\n"), "concurrent-map-crash", "unknown", "nothing here is known to be of kube-apiserver"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := runOn(t, "dump.yaml", c.text)
			answered(t, r, c.incident, c.want, c.why)
			for _, p := range r.Problems {
				t.Errorf("problem: %s: %s", p.Path, p.Message)
			}
			if c.want == "met" && !strings.HasPrefix(r.Inputs[0].As, "the key kube") {
				t.Errorf("it was read as %s", r.Inputs[0].As)
			}
		})
	}
}
