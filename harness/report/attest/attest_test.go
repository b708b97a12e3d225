package attest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/verdict"
	_ "github.com/kube-relapse/relapse/scenarios"
)

func judged() judge.Verdict {
	return judge.Verdict{
		Verdict: verdict.Validated, Scenario: "x", Judge: "v2", Arms: []verdict.Arm{{Trial: "001", Pair: "p", Name: "fixed", Role: "fixed", Outcome: verdict.NotReproduced}},
		Index:  bundle.Index{Run: "r1", Plan: "91a4", Trials: []bundle.IndexedTrial{{ID: "001", Pair: "p", Arms: map[string]string{"fixed": "ffff"}}}},
		Trials: []judge.Trial{{Dir: "trials/001"}},
	}
}

// Files that are the same and judged otherwise, by a relapse that knows more or less, are not what was signed. The
// judge's version alone is no difference.
func TestAgrees(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(v *judge.Verdict)
		want   string
	}{
		{"the same", func(*judge.Verdict) {}, ""},
		{"another judge", func(v *judge.Verdict) { v.Judge = "v3" }, ""},
		{"another verdict", func(v *judge.Verdict) {
			v.Judge, v.Verdict, v.ExitCode, v.Arms[0].Outcome = "v3", verdict.VerdictBroken, 1, verdict.Broken
		},
			"attested is Validated (exit 0), as relapse v2 judged it: 001 fixed NotReproduced; relapse v3 judges Broken (exit 1): 001 fixed Broken"},
		{"another binary", func(v *judge.Verdict) { v.Index.Trials[0].Arms["fixed"] = "aaaa" }, "attested is Validated"},
		{"a file is gone", func(v *judge.Verdict) {
			v.Trials[0].Missing = []string{"artifacts/1"}
		}, "trials/001/artifacts/1 was there when it was attested, and is gone"},
	} {
		v := judged()
		p := predicateOf(v)
		c.change(&v)
		err := p.Agrees(v)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestOtherKeysAreRefused(t *testing.T) {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(k)}))
	for name, c := range map[string]struct{ pem, want string }{
		"no PEM": {"hello", "reading the private key: failed to decode the data as PEM block"},
		"RSA":    {rsaKey, "the key is of the type rsa: want ed25519 or ecdsa"},
	} {
		if _, err := privateKey([]byte(c.pem)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
