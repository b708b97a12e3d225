package conformance_test

import (
	"net/http"
	"path"
	"testing"
)

func init() {
	probes.add(probeCase{idle: deletesNothing}, "collectionProbe")
}

// deletesNothing makes the API server accept deletions of collections, and delete nothing.
func deletesNothing(_ *testing.T, s *loaded) {
	s.script(func(w http.ResponseWriter, r *http.Request) bool {
		ours := r.Method == http.MethodDelete && path.Base(r.URL.Path) == "configmaps"
		if ours {
			w.WriteHeader(http.StatusOK)
		}
		return ours
	})
}
