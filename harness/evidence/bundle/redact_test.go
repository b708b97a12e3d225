package bundle_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

const (
	aJWT   = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW0ifQ.c2lnbmF0dXJlLW9mLWEtdG9rZW4"
	aBoot  = "abcdef.0123456789abcdef"
	aWord  = "opaqueBearerValue42x"
	aKeyed = "TUlJRXZRSUJBREFOQmdrcWhraUc5"
)

func aPEM() string {
	body := strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\n", 3)
	return "-----BEGIN RSA PRIVATE KEY-----\n" + body + "c2hvcnQ9\n-----END RSA PRIVATE KEY-----\n"
}

// planted returns, by name, texts that hold secrets, each with what must not be found of it.
func planted() map[string]struct {
	text    string
	secrets []string
} {
	type p = struct {
		text    string
		secrets []string
	}
	in64 := base64.StdEncoding.EncodeToString([]byte("hunter2-in-a-secret"))
	secret := `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"key":"` + in64 + `"},"stringData":{"raw":"plain-hunter2"}}`
	inner, _ := json.Marshal(secret)
	return map[string]p{
		"header":           {"GET / HTTP/1.1\nAuthorization: Bearer " + aWord + "\nAccept: */*\n", []string{aWord}},
		"goHeader":         {`round_trippers.go:466] Request Headers: map[Authorization:[Bearer ` + aWord + "]]\n", []string{aWord}},
		"jwt":              {"user said " + aJWT + " and left\n", []string{aJWT, "c2lnbmF0dXJl"}},
		"bootstrap":        {"kubeadm join --token " + aBoot + " 10.0.0.1:6443\n", []string{aBoot, "0123456789abcdef"}},
		"kubeconfig":       {"users:\n- name: a\n  user:\n    client-key-data: " + aKeyed + "\n    token: plainTokenWithoutForm\n", []string{aKeyed, "plainTokenWithoutForm"}},
		"kubeconfigFolded": {"    client-key-data: >-\n      " + aKeyed + "\n      " + aKeyed + "\n    other: kept\n", []string{aKeyed}},
		"kubeconfigJSON":   {`{"users":[{"user":{"token":"plainTokenWithoutForm","client-key-data":"` + aKeyed + `"}}]}`, []string{aKeyed, "plainTokenWithoutForm"}},
		"pem":              {"before\n" + aPEM() + "after\n", []string{"MIIEvQIBADAN", "c2hvcnQ9"}},
		"pemInJSON":        {`{"msg":"` + strings.ReplaceAll(aPEM(), "\n", `\n`) + `"}`, []string{"MIIEvQIBADAN", "c2hvcnQ9"}},
		"secret":           {secret, []string{in64, "plain-hunter2"}},
		"secretList":       {`{"kind":"SecretList","items":[{"metadata":{},"data":{"key":"` + in64 + `"}}]}`, []string{in64}},
		"nested":           {`{"kind":"Event","object":{"items":[` + secret + `]}}`, []string{in64, "plain-hunter2"}},
		"annotation":       {`{"kind":"Event","metadata":{"annotations":{"last-applied":` + string(inner) + `}}}`, []string{in64, "plain-hunter2"}},
		"inText":           {"I0101 request.go:1] Request Body: " + secret + " end\n", []string{in64, "plain-hunter2"}},
		"cutOff":           {`Response Body: {"kind":"Secret","data":{"key":"` + in64 + `","b`, []string{in64}},
		"goPrinted":        {`got &v1.Secret{ObjectMeta:v1.ObjectMeta{Name:"s"}, Data:map[string][]uint8{"key":[]uint8{0x68, 0x75}}, Type:"Opaque"}`, []string{"0x68, 0x75"}},
		"yaml":             {"apiVersion: v1\nkind: Secret\ndata:\n  key: " + in64 + "\nmetadata:\n  name: s\n", []string{in64}},
		"journalBytes":     {`{"MESSAGE":[` + numbers("Authorization: Bearer "+aWord) + `]}`, []string{aWord, numbers(aWord)}},
	}
}

func numbers(s string) string {
	b, _ := json.Marshal([]byte(s))
	var out []string
	for _, c := range []byte(s) {
		n, _ := json.Marshal(c)
		out = append(out, string(n))
	}
	_ = b
	return strings.Join(out, ",")
}

func TestNoSecretReachesDisk(t *testing.T) {
	for name, p := range planted() {
		t.Run(name, func(t *testing.T) {
			w := create(t)
			meta := bundle.Meta{Kind: "planted", Arm: "a"}
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			for _, r := range []func(string) error{
				func(s string) error { _, err := w.Write(meta, "txt", strings.NewReader(s)); return err },
				func(s string) error {
					_, err := w.Write(meta, "txt", iotest.OneByteReader(strings.NewReader(s)))
					return err
				},
				func(s string) error { _, err := w.WriteJSON(meta, map[string]any{"text": s}); return err },
				func(s string) error { return w.SetWorld(bundle.World{Modelled: []string{s}}) },
				func(s string) error { b, _ := json.Marshal(map[string]string{"spec": s}); return w.PutPlan(b) },
			} {
				must(r(p.text))
			}
			w.Fail(meta, errors.New(p.text))
			w.Emit(event.Event{Type: event.Note, Message: p.text, Fields: map[string]any{"err": p.text}})
			s, err := w.Stream(meta, "jsonl")
			must(err)
			for line := range strings.Lines(p.text) {
				must(s.Line([]byte(line)))
			}
			s.Gap(t0, t0, p.text)
			js, err := w.Stream(meta, "jsonl")
			must(err)
			for line := range strings.Lines(p.text) {
				must(js.JSON(map[string]string{"MESSAGE": strings.TrimSuffix(line, "\n")}))
			}
			must(w.Seal())
			if _, err := bundle.Open(w.Dir()); err != nil {
				t.Fatal(err)
			}
			searchAll(t, w.Dir(), p.secrets)
		})
	}
}

// searchAll looks through every file and every file's name.
func searchAll(t *testing.T, dir string, secrets []string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, s := range secrets {
			if strings.Contains(string(b), s) || strings.Contains(path, s) {
				t.Errorf("%s holds %q:\n%s", d.Name(), s, b)
			}
		}
		return nil
	})
	if err != nil || files < 9 {
		t.Fatalf("searched %d files: %v", files, err)
	}
}

func TestEvidenceIsLeftAlone(t *testing.T) {
	for _, text := range []string{
		"goroutine 77 [chan send, 4 minutes]:\nk8s.io/kubernetes/pkg/kubelet/pleg.(*GenericPLEG).Relist(0xc000a1c000)\n\t/src/pleg/generic.go:309 +0x9e5\n",
		"1 @ 0x47d 0x48e\n#\t0x47d\tk8s.io/client-go/transport.(*bearerAuthRoundTripper).RoundTrip+0x3c\t/src/round_trippers.go:331\n",
		"k8s.io/apiserver/pkg/server.lowercasefnnames(0x1)\n",
		"I0101 kubelet.go:1] \"Skipping pod synchronization\" err=\"PLEG is not healthy: pleg was last seen active 3m5.1s ago; threshold is 3m0s\"\n",
		"Unable to authenticate the request due to an error: invalid bearer token\nbearer authentication is required\n",
		"kubelet_pleg_relist_duration_seconds_sum 123456.12345678901\nprocess_start_time_seconds 1.7e+09\n",
		`{"time":"2026-03-04T05:06:07Z","name":"x","labels":{"a":"b"},"value":1.50}` + "\n",
		"token: <nil>\nthe token has expired\nnodes \"worker\" is forbidden\nkind: Secret is a word\n",
		"Secrets are mounted from {\"kind\":\"ConfigMap\",\"data\":{\"k\":\"v\"}} here\n",
		"no newline at the end",
		"\x1f\x8b\x00\xff binary \xfe\n\n",
	} {
		w := create(t)
		a, err := w.Write(bundle.Meta{Kind: "text"}, "txt", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := read(t, w.View(), a); got != text {
			t.Errorf("wrote %q, read %q", text, got)
		}
	}
}

func TestAKeyWithoutEndTakesNoEvidence(t *testing.T) {
	w := create(t)
	a, err := w.Write(bundle.Meta{Kind: "text"}, "txt", strings.NewReader("-----BEGIN PRIVATE KEY-----\nMIIEvQ\ngoroutine 1 [running]:\nmain.main()\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := read(t, w.View(), a), "goroutine 1 [running]:\nmain.main()\n"; !strings.HasSuffix(got, want) || strings.Contains(got, "MIIE") {
		t.Errorf("got %q, want it to end in %q", got, want)
	}
}
