package report

import (
	"github.com/kube-relapse/relapse/harness/judge"
	counts "github.com/kube-relapse/relapse/harness/plan/rate"
)

// rates writes k of n with its interval for each arm, and why an open-ended run stopped where it did.
func (p *printer) rates(v judge.Verdict) {
	p.printf("## How often\n\n| pair | arm | Reproduced | how often it may be |\n|---|---|---|---|\n")
	for _, r := range v.Rates {
		p.printf(
			"| %s | %s | %s | %s |\n",
			inTable(r.Pair),
			inTable(r.Arm),
			r.Counted(),
			inTable(r.Sentence),
		)
	}
	p.printf("\n%s\n\n", aboutRates)
	if v.Until != nil {
		p.printf(
			"Trials went on by the rule `%s`: until the judged arm is shown to show the incident in less than %s of them at %s, which takes %d trials without it, "+
				"or has shown it; at most %d of each pair.\n\n",
			v.Until.Rule,
			counts.Exactly(v.Until.Target),
			counts.Exactly(v.Until.Confidence),
			v.Until.Needed,
			v.Until.Max,
		)
		for _, e := range v.Until.Pairs {
			p.printf("- %s: %s\n", inTable(e.Pair), inTable(e.String()))
		}
		p.printf("\n")
	}
}

// aboutRates says what the intervals are, and which trials count.
const aboutRates = "Wilson's interval is that of a rate after a number of trials that was fixed beforehand. A " +
	"confidence sequence holds whenever one stops, and is wider. The one-sided bound by Clopper and Pearson is exact. " +
	"Trials with a " +
	"control that was not as expected are not counted, and are named. A trial whose controls were as expected counts " +
	"against the judged arm if that arm gave no answer or failed in another way: the upper end takes it for one that " +
	"shows the incident, as an incident may destroy its own evidence."
