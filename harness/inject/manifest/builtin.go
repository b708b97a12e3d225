package manifest

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// subresources are those of Kubernetes' own objects that take an object or a patch. Custom resources have status and
// scale.
var subresources = []string{"status", "scale", "approval", "binding", "ephemeralcontainers", "eviction", "finalize", "resize",
	"token"}

// misnamed refuses a kind that Kubernetes doesn't have, if it is plain which one was meant. Only versions that are
// stable count: their kinds are never taken away. One that client-go doesn't know yet may be right all the same.
func misnamed(apiVersion, kind string) error {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || !stable(gv) || scheme.Scheme.Recognizes(gv.WithKind(kind)) {
		return err
	}
	var known []string
	for k := range scheme.Scheme.KnownTypes(gv) {
		known = append(known, k)
	}
	slices.Sort(known)
	for _, other := range scheme.Scheme.PrioritizedVersionsAllGroups() {
		if other != gv && stable(other) && scheme.Scheme.Recognizes(other.WithKind(kind)) {
			return fmt.Errorf("kind %s is none of %s (want apiVersion: %s)", kind, apiVersion, other)
		}
	}
	if near := scenario.Nearest(kind, known); near != "" {
		return fmt.Errorf("kind %s is none of %s; did you mean %s?", kind, apiVersion, near)
	}
	return nil
}

// stable reports whether a version is Kubernetes' own and neither alpha nor beta.
func stable(gv schema.GroupVersion) bool {
	return scheme.Scheme.IsVersionRegistered(gv) && !strings.Contains(gv.Version, "alpha") && !strings.Contains(gv.Version, "beta")
}

// resources are the names of Kubernetes' own resources as collectors and checks have them: pods, deployments.apps.
var resources = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{}
	for gvk := range scheme.Scheme.AllKnownTypes() {
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		out[plural.GroupResource().String()] = true
	}
	return out
})

// MeantResource returns the resource of Kubernetes' own that a name which is none probably means, "" if it may be one, or
// if that can't be told: deployments for deployments.apps, service for services.
func MeantResource(name string) string {
	if resources()[name] {
		return ""
	}
	bare, group, _ := strings.Cut(name, ".")
	var same, own []string
	for known := range resources() {
		plural, of, _ := strings.Cut(known, ".")
		if plural == bare {
			same = append(same, known)
		}
		if of == group {
			own = append(own, known)
		}
	}
	slices.Sort(same)
	slices.Sort(own)
	switch {
	case len(own) == 0: // a group of somebody else's
		return ""
	case slices.Contains(same, bare+".apps"):
		return bare + ".apps"
	case len(same) > 0:
		return same[0]
	}
	return scenario.Nearest(name, own)
}
