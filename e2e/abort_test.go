//go:build cluster

package e2e_test

import (
	"encoding/json"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
	"github.com/kube-relapse/relapse/harness/match"
)

// The incident was found in this way: the server's log says nothing, so somebody makes the server print its
// goroutines.
var _ = Describe("A pod that burns a CPU and gets SIGABRT", Label("nightly"), func() {
	It("leaves a dump in its node's files that names the goroutine which never waits", func(ctx SpecContext) {
		s := newSite(ctx)
		session := s.start("run", "listener-busy-wait", "--arms", "vulnerable", "--runs", s.runs, "--progress", "plain")
		s.says(ctx, session, saysCreating)
		cluster := string(clusterLine.FindSubmatch(session.Err.Contents())[1])
		s.clusters = append(s.clusters, cluster)
		s.says(ctx, session, `\[vulnerable\]: exposure met`) // the server spins, and nobody has called it yet

		const pods = "/var/log/pods/relapse-vulnerable_listener-*/listener/"
		var log []byte
		nodes, err := containers(ctx, cluster)
		Expect(err).NotTo(HaveOccurred())
		for _, node := range nodes {
			if out, err := osexec.CommandContext(ctx, "docker", "exec", node, "sh", "-c", "ls "+pods).Output(); err != nil || len(out) == 0 {
				continue // the pod runs on another node
			}
			_, err := docker(ctx, "exec", node, "pkill", "-ABRT", "--full", "^(/[^ ]*/)?listener( |$)")
			Expect(err).NotTo(HaveOccurred())
			// Once the kubelet has started the next container, the log of the one that ended is complete.
			Eventually(ctx, func(g Gomega) {
				var err error
				log, err = osexec.CommandContext(ctx, "docker", "exec", node, "sh", "-c", "ls "+pods+"1.log && cat "+pods+"0.log").Output()
				g.Expect(err).NotTo(HaveOccurred())
			}).WithTimeout(time.Minute).WithPolling(time.Second).Should(Succeed())
		}
		interrupt(session)
		Eventually(ctx, session).WithTimeout(endTime).Should(gexec.Exit(130))
		Expect(string(log)).To(ContainSubstring("SIGABRT"), "the log of the process that was aborted, in any of %v", nodes)

		d, err := goroutine.Read(strings.NewReader(string(log)))
		Expect(err).NotTo(HaveOccurred())
		first := d.Ranked()[0]
		Expect(d.Total).To(BeNumerically(">=", 200))
		Expect(first.Ready()).To(BeTrue(), "the first is %+v", first)
		Expect(first.Count).To(Equal(1))
		Expect(goroutine.Match{Func: "dynamiclistener.(*listener).WrapExpiration.func1", Depth: 2}.Chooses(first)).To(BeTrue(), "the first is %+v", first)

		By("being matched with the incident, and with no other")
		file := filepath.Join(s.dir, "previous.log")
		Expect(os.WriteFile(file, log, 0o644)).To(Succeed())
		out := relapse(ctx, s.dir, "match", file, "--output", "json")
		var r match.Result
		Expect(json.Unmarshal([]byte(out.out), &r)).To(Succeed(), out.said())
		for _, i := range r.Incidents {
			want := "not met|unknown"
			if i.Name == "listener-busy-wait" {
				want = "suspected" // one dump doesn't show that the goroutine never waits
			}
			Expect(i.Word()).To(MatchRegexp("^("+want+")$"), "%s: %s", i.Name, i.Why)
		}
		s.asBefore(ctx)
	}, SpecTimeout(15*time.Minute))
})
