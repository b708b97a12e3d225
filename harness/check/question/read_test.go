package question_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

// Two kinds that remember an artifact under one name don't know of each other. Neither may be given the other's value,
// nor one that lacks what was read before.
func TestTwoTypesUnderOneName(t *testing.T) {
	tr := checktest.NewTrial(t, time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))
	tr.Must(tr.Stream(bundle.Health, checktest.Arm).Append("one"))
	v := tr.W.View()
	a := v.Artifacts(bundle.Query{Kind: bundle.Health})[0]
	if got, err := question.Remember(v, a, "size", func(n int, r io.Reader) (int, error) {
		b, err := io.ReadAll(r)
		return n + len(b), err
	}); err != nil || got == 0 {
		t.Fatalf("%d, %v", got, err)
	}
	got, err := question.Remember(v, a, "size", func(s string, r io.Reader) (string, error) {
		b, err := io.ReadAll(r)
		return s + string(b), err
	})
	if got != "" || err == nil || !strings.Contains(err.Error(), `"size" is remembered as int`) {
		t.Errorf("%q, %v", got, err)
	}
}
