package churn_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// naive is the plain way to compare two versions: decode both, and walk through maps. It shares no code with the
// package.
func naive(before, after []byte) ([]string, error) {
	a, err := decode(before)
	if err != nil {
		return nil, err
	}
	b, err := decode(after)
	if err != nil {
		return nil, err
	}
	var out []string
	walk("", a, b, &out)
	slices.Sort(out)
	return out, nil
}

func decode(raw []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("there is more than one value")
	}
	return v, nil
}

var uncounted = regexp.MustCompile(`^(metadata\.resourceVersion|metadata\.managedFields\[.*\]\.time)$`)

type nothing struct{}

func walk(path string, a, b any, out *[]string) {
	if reflect.DeepEqual(a, b) {
		return
	}
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			break
		}
		keys := maps.Clone(x)
		maps.Copy(keys, y)
		for k := range keys {
			walk(under(path, k), or(x, k), or(y, k), out)
		}
		return
	case []any:
		y, ok := b.([]any)
		if !ok {
			break
		}
		lists(path, x, y, out)
		return
	}
	if !uncounted.MatchString(path) || strings.Contains(path, "\n") {
		*out = append(*out, path)
	}
}

func or(m map[string]any, k string) any {
	if v, ok := m[k]; ok {
		return v
	}
	return nothing{}
}

func lists(path string, x, y []any, out *[]string) {
	names := []string{"type", "name", "uid", "key"}
	if path == "metadata.managedFields" {
		names = append([]string{""}, names...)
	}
	for _, name := range names {
		mx, ox, ok := byKey(name, x)
		my, oy, ok2 := byKey(name, y)
		if !ok || !ok2 {
			continue
		}
		ox = slices.DeleteFunc(ox, func(k string) bool { _, in := my[k]; return !in })
		oy = slices.DeleteFunc(oy, func(k string) bool { _, in := mx[k]; return !in })
		if name != "" && !slices.Equal(ox, oy) {
			*out = append(*out, path)
		}
		keys := maps.Clone(mx)
		maps.Copy(keys, my)
		for k := range keys {
			walk(path+k, or(mx, k), or(my, k), out)
		}
		return
	}
	for i := range max(len(x), len(y)) {
		var p, q any = nothing{}, nothing{}
		if i < len(x) {
			p = x[i]
		}
		if i < len(y) {
			q = y[i]
		}
		walk(fmt.Sprintf("%s[%d]", path, i), p, q, out)
	}
}

func byKey(name string, list []any) (map[string]any, []string, bool) {
	out := map[string]any{}
	var order []string
	for _, e := range list {
		m, ok := e.(map[string]any)
		if !ok {
			return nil, nil, false
		}
		var k string
		if name == "" {
			var parts []string
			for _, n := range []string{"manager", "operation", "subresource", "apiVersion"} {
				if s, ok := m[n].(string); ok {
					parts = append(parts, n+"="+word(s))
				}
			}
			if _, ok := m["manager"].(string); !ok {
				return nil, nil, false
			}
			k = "[" + strings.Join(parts, ",") + "]"
		} else {
			s, ok := m[name].(string)
			if !ok {
				return nil, nil, false
			}
			k = "[" + name + "=" + word(s) + "]"
		}
		if _, twice := out[k]; twice {
			return nil, nil, false
		}
		out[k] = e
		order = append(order, k)
	}
	return out, order, true
}

var (
	simpleWord = regexp.MustCompile(`^[A-Za-z0-9_:$./-]+$`)
	simpleKey  = regexp.MustCompile(`^[A-Za-z0-9_:$-]+$`)
)

func word(s string) string {
	if simpleWord.MatchString(s) && !strings.HasSuffix(s, "\n") {
		return s
	}
	return strconv.Quote(s)
}

func under(path, key string) string {
	switch {
	case !simpleKey.MatchString(key):
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}
