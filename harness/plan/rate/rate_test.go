package rate_test

import (
	"math"
	"testing"

	"github.com/kube-relapse/relapse/harness/plan/rate"
)

func near(a, b float64) bool { return math.Abs(a-b) < 5e-5 }

// The values are Newcombe's (Statistics in Medicine 17, 1998, table I, method 3), who gives four digits, and the rule
// of 0 in 20.
func TestWilson(t *testing.T) {
	for _, c := range []struct {
		k, n      int
		low, high float64
	}{
		{81, 263, 0.2553, 0.3662},
		{15, 148, 0.0624, 0.1605},
		{0, 20, 0, 0.1611},
		{1, 29, 0.0061, 0.1718},
		{20, 20, 0.8389, 1},
		{0, 0, 0, 1},
	} {
		low, high := rate.Wilson(rate.Count{K: c.k, N: c.n}, 0.95)
		if !near(low, c.low) || !near(high, c.high) {
			t.Errorf("%d of %d: %.4f to %.4f, want %.4f to %.4f", c.k, c.n, low, high, c.low, c.high)
		}
	}
}

// 0 of n has a closed form; the others are solved for by the definition: at the bound, seeing so few has a probability
// of 5 %.
func TestExactBounds(t *testing.T) {
	for _, n := range []int{1, 3, 20, 59} {
		want := 1 - math.Pow(0.05, 1/float64(n))
		if got := rate.AtMost(rate.Count{N: n}, 0.95); !near(got, want) {
			t.Errorf("0 of %d: at most %.5f, want %.5f", n, got, want)
		}
		if got := rate.AtLeast(rate.Count{K: n, N: n}, 0.95); !near(got, 1-want) {
			t.Errorf("%d of %d: at least %.5f, want %.5f", n, n, got, 1-want)
		}
	}
	p := rate.AtMost(rate.Count{K: 1, N: 10}, 0.95)
	if few := math.Pow(1-p, 10) + 10*p*math.Pow(1-p, 9); !near(few, 0.05) {
		t.Errorf("1 of 10: at most %.5f, where one or none has a probability of %.5f", p, few)
	}
	if got := rate.AtMost(rate.Count{}, 0.95); got != 1 {
		t.Errorf("of no trials: at most %v", got)
	}
}

// Of 0 in n with alpha the bound p solves B(1/2, n+1/2)/B(1/2, 1/2)/(1-p)^n = 1/alpha; the quotient is C(2n, n)/4^n.
func TestSequence(t *testing.T) {
	for _, c := range []struct {
		n       int
		central float64 // C(2n, n)/4^n
	}{{1, 0.5}, {4, 70.0 / 256}, {8, 12870.0 / 65536}} {
		want := 1 - math.Pow(c.central*0.05, 1/float64(c.n))
		low, high := rate.Sequence(rate.Count{N: c.n}, 0.05)
		if low != 0 || !near(high, want) {
			t.Errorf("0 of %d: %.5f to %.5f, want 0 to %.5f", c.n, low, high, want)
		}
		low, high = rate.Sequence(rate.Count{K: c.n, N: c.n}, 0.05)
		if high != 1 || !near(low, 1-want) {
			t.Errorf("%d of %d: %.5f to %.5f, want %.5f to 1", c.n, c.n, low, high, 1-want)
		}
	}
	if low, high := rate.Sequence(rate.Count{}, 0.05); low != 0 || high != 1 {
		t.Errorf("of no trials: %v to %v", low, high)
	}
	for n := 1; n <= 40; n++ {
		for k := 0; k <= n; k++ {
			c := rate.Count{K: k, N: n}
			low, high := rate.Sequence(c, 0.05)
			wLow, wHigh := rate.Wilson(c, 0.95)
			if best := float64(k) / float64(n); low > best || high < best || high-low < (wHigh-wLow)*0.99 {
				t.Fatalf("%s: %.4f to %.4f, Wilson %.4f to %.4f: it must hold the share that was seen and can't be narrower", c, low, high, wLow, wHigh)
			}
		}
	}
}

func TestWords(t *testing.T) {
	for _, c := range []struct {
		k, n           int
		fixed, anytime string
	}{
		{0, 20, "at most 14 % at 95 %", "at most 23 % at 95 %, whenever one stops"},
		{20, 20, "at least 86 % at 95 %", "at least 77 % at 95 %, whenever one stops"},
		{3, 20, "5 % to 37 % at 95 %", "1 % to 48 % at 95 %, whenever one stops"},
		{0, 1, "at most 95 % at 95 %", "at most 98 % at 95 %, whenever one stops"},
		{0, 0, "anything from 0 % to 100 % at 95 %", "anything from 0 % to 100 % at 95 %, whenever one stops"},
	} {
		count := rate.Count{K: c.k, N: c.n}
		if got := rate.Fixed(count, 0, 0.95); got != c.fixed {
			t.Errorf("%s: %q, want %q", count, got, c.fixed)
		}
		if got := rate.Anytime(count, 0, 0.95); got != c.anytime {
			t.Errorf("%s: %q, want %q", count, got, c.anytime)
		}
	}
}

// Trials without an answer make an upper bound larger and a lower one smaller.
func TestWordsOfTrialsWithoutAnAnswer(t *testing.T) {
	for _, c := range []struct {
		k, n, silent   int
		fixed, anytime string
	}{
		{0, 21, 7, "at most 54 % at 95 %", "at most 67 % at 95 %, whenever one stops"},
		{14, 21, 7, "at least 46 % at 95 %", "at least 33 % at 95 %, whenever one stops"},
		{3, 21, 7, "4 % to 68 % at 95 %", "1 % to 79 % at 95 %, whenever one stops"},
		{0, 7, 7, "anything from 0 % to 100 % at 95 %", "anything from 0 % to 100 % at 95 %, whenever one stops"},
	} {
		count := rate.Count{K: c.k, N: c.n}
		if got := rate.Fixed(count, c.silent, 0.95); got != c.fixed {
			t.Errorf("%s, %d silent: %q, want %q", count, c.silent, got, c.fixed)
		}
		if got := rate.Anytime(count, c.silent, 0.95); got != c.anytime {
			t.Errorf("%s, %d silent: %q, want %q", count, c.silent, got, c.anytime)
		}
	}
}
