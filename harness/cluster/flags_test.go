package cluster_test

import (
	"slices"
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster"
)

func TestWithFlags(t *testing.T) {
	own := []string{"kube-apiserver", "--v=2", "--profiling", "--secure-port=6443", "--v=3"}
	for _, c := range []struct {
		flags map[string]string
		want  []string
	}{
		{nil, own},
		{map[string]string{"v": "9"}, []string{"kube-apiserver", "--v=9", "--profiling", "--secure-port=6443"}},
		{map[string]string{"profiling": "false", "b": "x=y", "a": ""},
			[]string{"kube-apiserver", "--v=2", "--profiling=false", "--secure-port=6443", "--v=3", "--a=", "--b=x=y"}},
	} {
		got := cluster.WithFlags(own, c.flags)
		if !slices.Equal(got, c.want) || !cluster.HasFlags(got, c.flags) {
			t.Errorf("%v: %q, want %q", c.flags, got, c.want)
		}
	}
	for want, flags := range map[bool]map[string]string{true: {"v": "3", "profiling": ""}, false: {"v": "2"}} {
		if got := cluster.HasFlags(own, flags); got != want {
			t.Errorf("it has %v: %v, want %v", flags, got, want)
		}
	}
}

func TestParseArguments(t *testing.T) {
	for in, want := range map[string][]string{"": nil, "etcd\x00": nil, "etcd\x00--a=1\x00--b= \x00": {"--a=1", "--b= "}} {
		if got := cluster.ParseArguments([]byte(in)); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
