package conformance_test

import (
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func init() {
	faults.add(faultCase{lay: layCSINodes, forever: "nothing in the cluster knows that it is to come back"}, "objects")
}

// layCSINodes calls the nodes' hooks before a CSINode is read or changed, and counts deletions.
func layCSINodes(t *testing.T, w *world) sight {
	losses := newCounts(w)
	w.API().Intercept(func(rw http.ResponseWriter, r *http.Request) bool {
		for _, n := range w.nodes {
			if strings.HasSuffix(r.URL.Path, "/csinodes/"+n.Name()) && r.UserAgent() != tester {
				if err := n.hooked(r.Context(), []string{"csinode", "probe"}); err != nil {
					http.Error(rw, err.Error(), http.StatusInternalServerError)
					return true
				}
				if r.Method == http.MethodDelete {
					losses[n].Add(1)
				}
			}
		}
		return false
	})
	client := testerOf(t, w.Cluster)
	return sight{armed: func(t *testing.T, n *criNode) (ever int, gone []string) {
		t.Helper()
		_, err := client.StorageV1().CSINodes().Get(t.Context(), n.Name(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			gone = append(gone, err.Error())
		} else if err != nil {
			t.Fatal(err)
		}
		return int(losses[n].Load()), gone
	}}
}
