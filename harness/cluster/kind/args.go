package kind

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
)

// layArgs adds patches to n that set the flags of spec's components in kubeadm's configuration. They come in every form
// that kubeadm may read: a map up to v1beta3, a list of names and values in v1beta4. kind chooses the version by the
// node image, and applies the patches that fit.
func layArgs(n *v1alpha4.Node, spec cluster.NodeSpec) error {
	for _, name := range slices.Sorted(maps.Keys(spec.Args)) {
		row, _ := component.Of(name)
		if !component.Flagged(row) {
			return fmt.Errorf("flags for %q: want one of %q", name, component.Names(component.Flagged))
		}
		if component.AddedPods(row) && spec.Programs[name] != "" { // kubeadm starts none: see addPods
			continue
		}
		if component.AddedPods(row) {
			return fmt.Errorf("flags for %q: it runs only where it is given a program", name)
		}
		if row.Runs != component.AsService && spec.Role != cluster.ControlPlane {
			return fmt.Errorf("flags for %q on a %s: %s", name, spec.Role, onlyControlPlane(row))
		}
		flags := spec.ArgsIn(name, ownFolder(name))
		if row.Kubeadm.Config != "" {
			doc, err := fields(row.Kubeadm, flags)
			if err != nil {
				return fmt.Errorf("flags for %q: %w", name, err)
			}
			n.KubeadmConfigPatches = append(n.KubeadmConfigPatches, doc)
			continue
		}
		for _, kind := range row.Kubeadm.Documents {
			for _, version := range []string{"v1beta2", "v1beta3"} {
				doc, err := merge(version, kind, row.Kubeadm.Path, flags)
				if err != nil {
					return err
				}
				n.KubeadmConfigPatches = append(n.KubeadmConfigPatches, doc)
			}
			if err := layList(n, kind, row.Kubeadm, flags); err != nil {
				return err
			}
		}
	}
	return nil
}

// onlyControlPlane returns why a component can't be configured on a worker.
func onlyControlPlane(row component.Component) string {
	if row.Kubeadm.Config != "" {
		return "its configuration is one for the whole cluster, and the control plane's to have"
	}
	return "it runs on the control plane only"
}

// fields returns a merge patch that sets fields of a component's own configuration.
func fields(p component.Kubeadm, flags map[string]string) (string, error) {
	doc := map[string]any{"apiVersion": p.Config, "kind": p.Documents[0]}
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		var value any
		if err := yaml.Unmarshal([]byte(flags[name]), &value); err != nil {
			return "", fmt.Errorf("the value of %s: %w", name, err)
		}
		if err := unstructured.SetNestedField(doc, value, strings.Split(name, ".")...); err != nil {
			return "", fmt.Errorf("setting %s: %w", name, err)
		}
	}
	b, err := yaml.Marshal(doc)
	return string(b), err
}

// layList adds patches to n that set the flags as a list, v1beta4's form. A merge would replace the whole list, so the
// flags are appended where kind has a list already.
func layList(n *v1alpha4.Node, kind string, p component.Kubeadm, flags map[string]string) error {
	var list []map[string]string
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		list = append(list, map[string]string{"name": name, "value": flags[name]})
	}
	if !p.Listed {
		doc, err := merge("v1beta4", kind, p.Path, list)
		if err == nil {
			n.KubeadmConfigPatches = append(n.KubeadmConfigPatches, doc)
		}
		return err
	}
	for _, entry := range list {
		value, err := json.Marshal(entry)
		if err != nil {
			return err
		}
		pointer := ""
		for _, step := range p.Path {
			pointer += "/" + step
		}
		n.KubeadmConfigPatchesJSON6902 = append(n.KubeadmConfigPatchesJSON6902,
			patch("v1beta4", kind, pointer+"/-", string(value)))
	}
	return nil
}

// merge returns a merge patch that sets the value at path in one document of one version.
func merge(version, kind string, path []string, value any) (string, error) {
	for _, step := range slices.Backward(path) {
		value = map[string]any{step: value}
	}
	doc := value.(map[string]any)
	doc["apiVersion"], doc["kind"] = "kubeadm.k8s.io/"+version, kind
	b, err := yaml.Marshal(doc)
	return string(b), err
}

// patch returns a JSON patch that adds value, itself JSON, at a path of one document of one version.
func patch(version, kind, path, value string) v1alpha4.PatchJSON6902 {
	return v1alpha4.PatchJSON6902{Group: "kubeadm.k8s.io", Version: version, Kind: kind,
		Patch: fmt.Sprintf(`[{"op":"add","path":%q,"value":%s}]`, path, value)}
}

// programPath returns the path of a component's program in a node. A service's program is the node's own file; any
// other is mounted from there into the component's container.
func programPath(row component.Component) string {
	if row.Runs == component.AsService {
		return row.Executable
	}
	return "/opt/relapse/subject/" + row.Name
}

// ownFolder returns the folder of a component's own files, which is the same in the node and in the component's
// container.
func ownFolder(component string) string { return "/var/lib/relapse/" + component }

// layPrograms returns the programs and own files of spec's components as files of the node. It also adds patches to n
// that have kubeadm mount each static pod's program over the one in its image, and the folder of its own files.
func layPrograms(n *v1alpha4.Node, spec cluster.NodeSpec) (files []cluster.File, err error) {
	volumes := map[string][]map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(spec.Programs)) {
		row, _ := component.Of(name)
		if !component.Mountable(row) {
			return nil, fmt.Errorf(
				"a program for %q: want one of %q",
				name,
				component.Names(component.Mountable),
			)
		}
		files = append(
			files,
			cluster.File{Path: programPath(row), Source: spec.Programs[name], Mode: 0o755},
		)
		if component.ControlPlane(row) && spec.Role != cluster.ControlPlane {
			return nil, fmt.Errorf(
				"a program for %q on a %s: it runs on the control plane only",
				name,
				spec.Role,
			)
		}
		if row.Runs != component.AsStaticPod { // see changeDaemons and addPods
			continue
		}
		volumes[name] = []map[string]any{{"name": "relapse-0", "hostPath": programPath(row),
			"mountPath": row.Executable, "readOnly": true, "pathType": "File"}}
	}
	for _, name := range slices.Sorted(maps.Keys(spec.OwnFiles)) {
		row, _ := component.Of(name)
		if row.Runs != component.AsStaticPod || !component.Mountable(row) || spec.Role != cluster.ControlPlane {
			return nil, fmt.Errorf("files for %q on a %s: want a static pod of a control plane, other than etcd", name,
				spec.Role)
		}
		folder := ownFolder(name)
		volumes[name] = append(
			volumes[name],
			map[string]any{"name": "relapse-1", "hostPath": folder,
				"mountPath": folder, "pathType": "DirectoryOrCreate"},
		)
		texts := spec.TextsOf(name, row.Kubeconfig)
		for _, file := range slices.Sorted(maps.Keys(texts)) {
			if text := texts[file]; text != "" {
				files = append(
					files,
					cluster.File{
						Path:    path.Join(folder, file),
						Content: []byte(text),
						Mode:    0o644,
					},
				)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(volumes)) {
		row, _ := component.Of(name)
		for _, version := range []string{"v1beta2", "v1beta3", "v1beta4"} {
			doc, err := merge(
				version,
				"ClusterConfiguration",
				[]string{row.Kubeadm.Path[0], "extraVolumes"},
				volumes[name],
			)
			if err != nil {
				return nil, err
			}
			n.KubeadmConfigPatches = append(n.KubeadmConfigPatches, doc)
		}
	}
	return files, nil
}
