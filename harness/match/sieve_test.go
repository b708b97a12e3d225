package match

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// A sieve passes exactly the lines with one of its texts in them: what it doesn't pass nobody reads.
func TestSieve(t *testing.T) {
	texts := [][]byte{[]byte("panic: "), []byte("goroutine"), []byte(`"message":[`), []byte("pleg is not healthy"), []byte("ic: pan")}
	s := newSieve(texts)
	rnd := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"PANIC: ", "panic:", "pan", "ic: ", "goroutin", "e", "GoRoutine", `"MESSAGE":[`, `"message":`, "PLEG is not ", "healthy", " ", "\xff", "ſ", "x"}
	passed := 0
	for range 200_000 {
		var line []byte
		for range rnd.IntN(6) {
			line = append(line, pieces[rnd.IntN(len(pieces))]...)
		}
		want := contains(fold(nil, line), texts)
		if got := s.passes(line); got != want {
			t.Fatalf("%q passes: %t, want %t", line, got, want)
		}
		if want {
			passed++
		}
	}
	if passed < 50_000 || passed > 190_000 {
		t.Errorf("%d of 200000 lines have a text: they try little", passed)
	}
	for _, all := range [][][]byte{{[]byte("")}, {[]byte("goroutine"), []byte("x")}} {
		if !newSieve(all).passes([]byte("what has none")) {
			t.Errorf("a line is held back by %q, which give nothing to go by", all)
		}
	}
	long := bytes.Repeat([]byte("ab"), 300)
	if s := newSieve([][]byte{long}); !s.passes(append([]byte("xx"), long...)) || s.passes(long[1:]) {
		t.Error("a long text is not found, or found where it is not whole")
	}
}
