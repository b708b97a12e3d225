//go:build cluster

package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/kube-relapse/relapse/harness/match"
)

// The baselines that ship with the program must hold for processes that they weren't made from.
var _ = Describe("Baselines", Label("nightly"), func() {
	It("find nothing unusual in a cluster that is well", func(ctx SpecContext) {
		dir := filepath.Join(scratch, "baseline-"+draw())
		Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
		taken := relapse(ctx, dir, "baseline", "--provider", "processes", "--dumps", "3")
		Expect(taken.code).To(Equal(0), taken.said())
		out := relapse(ctx, dir, "match", "runs", "--output", "json")
		var r match.Result
		Expect(json.Unmarshal([]byte(out.out), &r)).To(Succeed(), out.said())
		Expect(r.Unexplained.Compared).To(BeEmpty())
		Expect(r.Unexplained.AsUsual).To(HaveLen(4), "etcd, the API server, the controller manager and the scheduler")
	}, SpecTimeout(40*time.Minute))
})
