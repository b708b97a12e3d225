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

// The same numbers give the same interval everywhere, and each is named.
func TestWords(t *testing.T) {
	for _, c := range []struct {
		k, n, silent      int
		interval, anytime string
	}{
		{0, 20, 0, "0 to 17 %", "0 to 23 %"},
		{20, 20, 0, "83 to 100 %", "77 to 100 %"},
		{3, 20, 0, "5 to 37 %", "1 to 48 %"},
		{1, 1, 0, "20 to 100 %", "2 to 100 %"},
		{0, 1, 0, "0 to 80 %", "0 to 98 %"},
		{0, 0, 0, "0 to 100 %", "0 to 100 %"},
		// Trials without an answer make an upper end larger and a lower one smaller.
		{0, 21, 7, "0 to 55 %", "0 to 67 %"},
		{14, 21, 7, "45 to 100 %", "33 to 100 %"},
		{3, 21, 7, "4 to 68 %", "1 to 79 %"},
		{0, 7, 7, "0 to 100 %", "0 to 100 %"},
	} {
		count := rate.Count{K: c.k, N: c.n}
		if got := rate.InWords(count, c.silent, 0.95); got != c.interval+" (Wilson, 95 %)" {
			t.Errorf("%s, %d silent: %q, want %q by Wilson", count, c.silent, got, c.interval)
		}
		if got := rate.Range(rate.Interval(count, c.silent, 0.95)); got != c.interval {
			t.Errorf("%s, %d silent: %q, want %q", count, c.silent, got, c.interval)
		}
		if got := rate.Anytime(count, c.silent, 0.95); got != c.anytime+" (confidence sequence, 95 %)" {
			t.Errorf("%s, %d silent: %q, want %q by a confidence sequence", count, c.silent, got, c.anytime)
		}
	}
	if got := rate.NoneSoFar(20, 0.95); got != "at most 14 % (Clopper-Pearson, one-sided, 95 %)" {
		t.Errorf("none of 20: %q", got)
	}
}
