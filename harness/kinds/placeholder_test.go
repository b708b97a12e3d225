package kinds_test

import (
	"encoding/json"
	"testing"

	"github.com/kube-relapse/relapse/harness/kinds"
)

func TestExpand(t *testing.T) {
	values := map[string]any{"n": 7, "arm": "fixed"}
	for in, want := range map[string]string{
		`"$(n)"`:                      `"7"`,
		`"$$(n)"`:                     `"$(n)"`,
		`"item-$(n) of $(arm)"`:       `"item-7 of fixed"`,
		`"$(HOME) and $$(HOME)"`:      `"$(HOME) and $$(HOME)"`,
		`{"a-$(arm)":[{"n":"$(n)"}]}`: `{"a-fixed":[{"n":"7"}]}`,
		`[true,null,12345678901234567890,"$(arm)"]`: `[true,null,12345678901234567890,"fixed"]`,
	} {
		got, err := kinds.Expand(json.RawMessage(in), values)
		if err != nil || string(got) != want {
			t.Errorf("%s becomes %s, %v; want %s", in, got, err, want)
		}
	}
	if _, err := kinds.Expand(json.RawMessage(`{`), values); err == nil {
		t.Error("half a value is expanded")
	}
	if got := kinds.ExpandText("$(n)/$$(n)/$(m)", values); got != "7/$(n)/$(m)" {
		t.Errorf("the text becomes %s", got)
	}
}
