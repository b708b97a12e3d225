package kinds_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/kube-relapse/relapse/harness/kinds"
)

func TestEach(t *testing.T) {
	a, b := errors.New("a"), &kinds.FieldError{Field: "rules[0]", Err: errors.New("b")}
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, "[]"},
		{a, "[a]"},
		{errors.Join(a, errors.Join(b, nil, a)), "[a rules[0]: b a]"},
		{fmt.Errorf("%w and %w", a, b), "[a and rules[0]: b]"},
		{errors.Join(fmt.Errorf("%w and %w", a, b), a), "[a and rules[0]: b a]"},
	} {
		if got := fmt.Sprint(kinds.Each(c.err)); got != c.want {
			t.Errorf("%v: %s, want %s", c.err, got, c.want)
		}
	}
}
