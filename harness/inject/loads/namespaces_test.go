package loads_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/fixtures/control/controltest"
)

// empty deletes what is in a namespace, as the namespace controller does before it finalizes it.
func (w *world) empty(ctx context.Context, namespace string) error {
	cms := w.client.CoreV1().ConfigMaps(namespace)
	list, err := cms.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, cm := range list.Items {
		if err := cms.Delete(ctx, cm.Name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) finalize(ctx context.Context, namespace string) error {
	_, err := w.client.CoreV1().Namespaces().Finalize(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.UpdateOptions{})
	return err
}

func TestNamespaceController(t *testing.T) {
	w := newWorld(t)
	l := w.prepare(t, `{"by":"namespaceController","items":30,"calls":3,"begun":40,"rounds":2}`)
	names := []string{"relapse-deletions-1", "relapse-deletions-2", "relapse-deletions-3"}
	for _, ns := range names {
		if have := w.left(t, ns); len(have) != 31 {
			t.Errorf("%s has the ConfigMaps %q", ns, have)
		}
	}
	done, _ := w.start(t, l)
	for round := 1; round <= 2; round++ {
		w.terminating(t, 3)
		w.silent(t, "before any deletion")
		if err := w.empty(t.Context(), names[0]); err != nil {
			t.Fatal(err)
		}
		w.silent(t, "after 30 deletions")
		for _, ns := range names[1:] {
			if err := w.empty(t.Context(), ns); err != nil {
				t.Fatal(err)
			}
		}
		w.wants(t, fmt.Sprint(round, " began")) // on a busy machine the watch shows deletions a while after they were made
		for _, ns := range names {
			if err := w.finalize(t.Context(), ns); err != nil {
				t.Fatal(err)
			}
		}
		w.wants(t, fmt.Sprint(round, " over"))
	}
	ends(t, done)
	calls, sum, _ := w.recorded(t)
	if len(calls) != 6 || sum.Way != "namespaceController" || sum.Objects != 30 || sum.Codes["200"] != 6 || sum.Rounds[1].Began.IsZero() {
		t.Errorf("%+v, %+v", calls, sum)
	}
	var paths []string
	for _, c := range calls[:3] {
		paths = append(paths, c.Verb+" "+c.Path)
	}
	slices.Sort(paths)
	if want := "DELETE /api/v1/namespaces/relapse-deletions-1"; paths[0] != want || len(slices.Compact(paths)) != 3 {
		t.Errorf("the calls were %q", paths)
	}
}

// terminating waits until that many namespaces are being deleted.
func (w *world) terminating(t *testing.T, n int) {
	t.Helper()
	controltest.Eventually(t, fmt.Sprintf("%d namespaces being deleted", n), func() string {
		list, err := w.client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{LabelSelector: "relapse.dev/load=deletions,relapse.dev/run=run"})
		if err != nil {
			t.Fatal(err)
		}
		if deleted := slices.DeleteFunc(list.Items, func(ns corev1.Namespace) bool { return ns.DeletionTimestamp == nil }); len(deleted) != n {
			return fmt.Sprintf("%d of %+v", len(deleted), list.Items)
		}
		return ""
	})
}

// A namespace that stays keeps a round for as long as was asked for.
func TestNamespacesThatStay(t *testing.T) {
	w := newWorld(t)
	l := w.prepare(t, `{"by":"namespaceController","items":5,"calls":2,"begun":3,"lasts":"600ms"}`)
	done, _ := w.start(t, l)
	w.terminating(t, 2)
	w.remove(t, "relapse-deletions-2", 3)
	w.wants(t, "1 began")
	ends(t, done)
	_, sum, _ := w.recorded(t)
	if r := sum.Rounds[0]; r.Began.IsZero() || r.End.Sub(r.Sent) < 600*time.Millisecond || r.End.Sub(r.Sent) > controltest.Patience {
		t.Errorf("%+v", r)
	}
}
