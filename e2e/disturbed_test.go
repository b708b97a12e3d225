//go:build cluster

package e2e_test

import (
	"os"
	osexec "os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/kubernetes"
)

// disturb has a run of six trials lose its launcher, a pod, the registry for a minute, and a node. None of its trials may be
// lost, and none counted twice.
func (f far) disturb(ctx SpecContext, dir string) {
	GinkgoHelper()
	began := relapse(ctx, dir, "run", "watch-loses-delete", "--repeat", "6", "--on", "kubernetes", "--kubeconfig", f.kubeconfig, "-n", "relapse",
		"--registry", f.registry, "--insecure-registry", "--base", baseImage(ctx), "--wait=false")
	Expect(began.code).To(Equal(0), began.said())
	run := attaches.FindStringSubmatch(began.errs)[1]
	launcher := attach(dir, run)
	f.running(ctx, run)

	By("killing the launcher")
	launcher.Kill().Wait(endTime)
	launcher = attach(dir, run)

	By("evicting a pod")
	evicted := f.running(ctx, run)
	Expect(f.client.PolicyV1().Evictions("relapse").Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: evicted.Name, Namespace: "relapse"}})).To(Succeed())

	By("having the registry away for a minute as a bundle comes")
	Eventually(ctx, launcher.Err).WithTimeout(phaseTime).Should(gbytes.Say("1 of 6 are done"))
	registry := f.name + "-registry"
	_, err := docker(ctx, "pause", registry)
	Expect(err).NotTo(HaveOccurred())
	time.Sleep(time.Minute) // no condition to wait for: it is to be away for that long
	_, err = docker(ctx, "unpause", registry)
	Expect(err).NotTo(HaveOccurred())

	By("powering off a node, whose object is removed as a cloud does it")
	off := f.running(ctx, run)
	_, err = docker(ctx, "kill", off.Spec.NodeName)
	Expect(err).NotTo(HaveOccurred())
	Expect(f.client.CoreV1().Nodes().Delete(ctx, off.Spec.NodeName, metav1.DeleteOptions{})).To(Succeed())

	Eventually(ctx, launcher).WithTimeout(50 * time.Minute).Should(gexec.Exit(0))
	Expect(lastLine(string(launcher.Out.Contents()))).To(Equal("relapse: Validated (exit 0)"))
	said := string(launcher.Err.Contents())
	for _, pod := range []string{evicted.Name, off.Name} {
		Expect(said).To(ContainSubstring("the pod " + pod + " on "))
	}
	Expect(said).NotTo(ContainSubstring(" is lost"))
	v, err := judge.Run(filepath.Join(dir, "runs", "latest"))
	Expect(err).NotTo(HaveOccurred())
	Expect(v.Trials).To(HaveLen(6))
	cleaned := relapse(ctx, dir, "clean", run)
	Expect(cleaned.code).To(Equal(0), cleaned.said())
}

// attach follows a run in the background, until it has ended or the spec is over.
func attach(dir, run string) *gexec.Session {
	GinkgoHelper()
	cmd := osexec.Command(program, "--root", root, "attach", run)
	cmd.Dir, cmd.Env = dir, os.Environ()
	session, err := gexec.Start(cmd, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { session.Kill().Wait(endTime) })
	return session
}

// running waits until a pod of a run makes its trial, and returns the one that was made last.
func (f far) running(ctx SpecContext, run string) (last *corev1.Pod) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		pods, err := f.client.CoreV1().Pods("relapse").List(ctx, metav1.ListOptions{LabelSelector: kubernetes.RunLabel + "=" + run})
		g.Expect(err).NotTo(HaveOccurred())
		last = nil
		for _, p := range pods.Items {
			if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil && (last == nil || last.CreationTimestamp.Before(&p.CreationTimestamp)) {
				last = &p
			}
		}
		g.Expect(last).NotTo(BeNil())
	}).WithTimeout(phaseTime).WithPolling(time.Second).Should(Succeed())
	return last
}
