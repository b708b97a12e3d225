package clustertest

import (
	"fmt"
	"io"
	"net/http"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// csiNodes is the key of CSINodes in API.objects.
const csiNodes = "csinodes.storage.k8s.io"

// handleCSINodes adds the handlers for get, create and delete of CSINodes, which kubelets make as they start.
func (a *API) handleCSINodes(mux *http.ServeMux) {
	const path = "/apis/storage.k8s.io/v1/csinodes"
	mux.HandleFunc("POST "+path, a.createCSINode)
	mux.HandleFunc(
		"GET "+path+"/{name}",
		a.csiNode(func(w http.ResponseWriter, o metav1.Object) { send(w, o) }),
	)
	mux.HandleFunc(
		"DELETE "+path+"/{name}",
		a.csiNode(func(w http.ResponseWriter, o metav1.Object) {
			a.drop(csiNodes, o)
			send(w, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
				Status: metav1.StatusSuccess})
		}),
	)
}

// csiNode returns a handler that calls act with the CSINode of the request, or answers 404. act runs with mu held, and
// may change the object.
func (a *API) csiNode(act func(http.ResponseWriter, metav1.Object)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		_, o := a.find(csiNodes, "", r.PathValue("name"))
		if o == nil {
			refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound,
				fmt.Sprintf("csinodes %q not found", r.PathValue("name")))
			return
		}
		act(w, o)
	}
}

func (a *API) createCSINode(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away
	}
	into, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	o, ok := into.(*storagev1.CSINode)
	if err != nil || !ok {
		refuse(
			w,
			http.StatusBadRequest,
			metav1.StatusReasonBadRequest,
			fmt.Sprintf("no CSINode: %v", err),
		)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, have := a.find(csiNodes, "", o.Name); have != nil {
		refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists,
			fmt.Sprintf("csinodes %q already exists", o.Name))
		return
	}
	a.putCSINode(o)
	send(w, o)
}

// putCSINode adds a node's CSINode; the caller holds mu.
func (a *API) putCSINode(o *storagev1.CSINode) {
	o.TypeMeta = metav1.TypeMeta{Kind: "CSINode", APIVersion: "storage.k8s.io/v1"}
	a.put(csiNodes, o)
}
