package verdict

// runCauses are what is Inconclusive about a run whose trials may all have an answer.
var runCauses = []Cause{
	{
		Says:  "the run was cut short, or isn't over: …",
		Means: "whoever ends a run chooses when, so that the trials which were sealed can't show that a build is well",
		See:   "how many of the trials are sealed, in the same sentence",
		Next:  "run it again to its end; relapse clean removes what a killed run left",
	},
	{
		Says:  "one trial of an open-ended run gives no verdict by itself: …",
		Means: "with --until-confident the number of trials that agree is the answer, and this is one of them",
		See:   "the folder that was judged",
		Next:  "judge the directory of its run",
	},
	{
		Says: "… gave no answer in … trials whose controls were as expected, which counts against it, …",
		Means: "an incident may destroy its own evidence, so that an open-ended run can't leave out a trial in which " +
			"the judged arm alone gave no answer",
		See:  "the trials that the report lists as silent, and the arm's reason in them",
		Next: "look up that reason below, mend what was lacking, and run it again",
	},
	{
		Says: "… showed it in … of the trials that were set aside, …",
		Means: "the judged arm showed the incident beside a control that was not as expected, which proves nothing, " +
			"and still keeps it from being called cured",
		See:  "the trials that were set aside, in the report",
		Next: "mend what kept the control from being as expected, and run it again",
	},
	{
		Says: "a rate below … can't be shown any more: …",
		Means: "too many trials were set aside, because a control was not as expected, or the vulnerable arm shows " +
			"the incident too rarely",
		See: "the trials that were set aside, and how often the vulnerable arm showed it, in the report",
		Next: "mend what kept the controls from being as expected; raise --target-rate or --max-trials, or " +
			"enlarge the fault",
	},
	{
		Says:  "… showed it in none of … trials that count, and … are needed…",
		Means: "an open-ended run ended before its rule was satisfied",
		See:   "how many trials count, in the same sentence",
		Next:  "run it again to its end",
	},
}

// trialCauses are the sentences of Inconclusive trials.
var trialCauses = []Cause{
	{
		Says: "the control … is … and should be …, so the trial proves nothing",
		Means: "the vulnerable arm must show the incident and the fixed arm must not, or nothing can be " +
			"concluded about the judged arm",
		See: "the control's own reason, under its name in the report",
		Next: "if the control is Inconclusive, do what its reason says; if it doesn't show the incident, " +
			"enlarge the fault with --set; if it is Broken, read its log in the bundle",
	},
	{
		Says:  "… gave no answer",
		Means: "the controls are as expected, and the judged arm is Inconclusive",
		See:   "the arm's reason, and the unknown checks that it lists",
		Next:  "look up the reason and the codes below",
	},
	{
		Says:  "… with the same binary, so what makes the difference is not the build",
		Means: "two arms ran one program and ended differently, so chance or the host decided",
		See:   "Digests in the report",
		Next: "run it again with --repeat 5, which shows how often either outcome comes of the same binary; a " +
			"candidate with the same binary as a control needs no trial",
	},
	{
		Says:  "… and no vulnerable arm was beside it, so nothing shows that the trial brings the incident back",
		Means: "a candidate is judged only by what the vulnerable arm showed in the same trial",
		See:   "--arms among the settings of the run",
		Next:  "run it again without --arms",
	},
	{
		Says:  "no arm is fixed or a candidate, so there is none to judge",
		Means: "only vulnerable arms ran",
		See:   "--arms among the settings of the run",
		Next:  "run it again with the fixed arm, or give it a build to judge with --candidate",
	},
	{
		Says:  "the only arm … is Inconclusive, expected …",
		Means: "one arm was asked for, and it gave no answer",
		See:   "the arm's reason, and the unknown checks that it lists",
		Next:  "look up the reason and the codes below",
	},
	{
		Says: "files of the bundle are gone …",
		Means: "the manifest lists files that aren't there, and what they would say is unknown, even if the " +
			"others would be enough",
		See:  "the captures that failed and the files that are missing, in the report",
		Next: "judge a copy of the bundle that has all of its files, or run it again",
	},
}

// armCauses are the reasons of the outcome table's rows that are Inconclusive.
var armCauses = []Cause{
	{
		Says:  "the subject isn't the binary that belongs to this arm",
		Means: "the program that ran is another one than the arm's build, or it wasn't built like its counterpart",
		See: "identity/binary in the report, with both SHA-256 sums; the arms in world.json, with toolchain " +
			"and flags",
		Next: "leave the arm's binary alone while it runs; if toolchain or flags differ, run relapse cache " +
			"prune and then it again",
	},
	{
		Says:  "it is unknown whether the binary that ran is the one that belongs to this arm",
		Means: "nobody could hash the running program when it was needed",
		See:   "identity/binary in the report, and the coverage of the identity",
		Next: "run it again on a machine that is less busy: the program has to be hashed before the fault and " +
			"in the recovery",
	},
	{
		Says:  "it is unknown whether the subject was one process all along",
		Means: "a restart in between can't be ruled out, and a restarted subject may only look well",
		See:   "identity/process in the report, which says between which looks nothing is known",
		Next: "run it again on a machine that is less busy; where the incident ends the process, make the load " +
			"or the fault smaller, so that more snapshots show what came before",
	},
	{
		Says:  "the steady state is not met, and must be met",
		Means: "the arm wasn't well before any fault",
		See:   "the checks of the list steady, and the arm's log in the bundle",
		Next:  "give it longer with --set phases.steady.deadline=…, or mend what the log says",
	},
	{
		Says:  "the steady state is unknown, and must be met",
		Means: "whether the arm was well before any fault isn't known",
		See:   "the unknown checks of the list steady",
		Next:  "look up their codes below",
	},
	{
		Says:  "the signature in the baseline is met, and must be not met",
		Means: "the arm shows the incident's fingerprint before any fault, so the fault didn't bring it about",
		See:   "the checks of the list baseline",
		Next: "run it again on a machine that is less busy; if it is the same, this build is ill by itself, and " +
			"this scenario can't judge it",
	},
	{
		Says:  "the signature in the baseline is unknown, and must be not met",
		Means: "whether the fault brought the fingerprint about isn't known",
		See:   "the unknown checks of the list baseline",
		Next:  "look up their codes below",
	},
	{
		Says: "the exposure is not met, and must be met",
		Means: "the fault didn't take effect, or the subject never reached the code in question, so that " +
			"surviving proves nothing",
		See: "the checks of the list exposure: each says how much was seen and how much was wanted",
		Next: "enlarge the fault, or give it longer with --set (relapse explain NAME lists what can be set); " +
			"leave out --no-faults",
	},
	{
		Says:  "the exposure is unknown, and must be met",
		Means: "whether the fault took effect isn't known",
		See:   "the unknown checks of the list exposure",
		Next:  "look up their codes below",
	},
	{
		Says:  "the signature is unknown, and must be met, or not met with every part of it known",
		Means: "a part of the fingerprint isn't known, and an incident may destroy its own evidence",
		See:   "the unknown checks of the list signature",
		Next:  "look up their codes below",
	},
	{
		Says:  "the signature is not met, but the arm wasn't put to the whole test: … never came",
		Means: "a fault or a load of the plan never happened in this arm, so it survived less than it should have",
		See:   "the timeline in the report, and the arm's log in the bundle",
		Next: "run it again on a machine that is less busy; if it is the same, see what kept the arm from what " +
			"the missing one comes after",
	},
	{
		Says:  "whether it is healed is unknown, and must be met or not met",
		Means: "the fingerprint is absent, but there is no positive proof that the arm is well",
		See:   "the unknown checks of the list healed",
		Next:  "look up their codes below",
	},
}

// codeCauses has a cause for each of check.Codes, in their order.
var codeCauses = []Cause{
	{
		Says:  "bad-check",
		Means: "the check's own spec is wrong, or it needs a constant of the subject that isn't known",
		See:   "the finding names the field or the constant; world.json says why a constant is unknown",
		Next:  "relapse validate NAME; for a constant, give the candidate as src: or mod:, whose source can be read",
	},
	{
		Says:  "no-phase",
		Means: "a phase that the check looks at never began, had no length or hasn't ended",
		See:   "the timeline in the report: the last phase that began, and what it waited for",
		Next:  "see why that phase didn't end, or give it longer with --set phases.PHASE.deadline=…",
	},
	{
		Says:  "not-recorded",
		Means: "nothing of the kind was recorded at all",
		See:   "the captures that failed, and the coverage, in the report; the finding names what is lacking",
		Next:  "see whether the subject offers it (a build without profiling or a metric doesn't), then run it again",
	},
	{
		Says:  "unreadable",
		Means: "a file is missing, damaged or cut short, or its capture failed",
		See:   "the finding names the file or the capture's error",
		Next:  "judge a copy of the bundle that has all of its files; if a capture failed, run it again",
	},
	{
		Says:  "gap",
		Means: "the source wasn't watched for all of the time that the check asks about, or lines were dropped",
		See:   "the coverage in the report: first, last, gaps and dropped lines of each source",
		Next: "run it again on a machine that is less busy; if lines were dropped, make the load smaller, so " +
			"that there are fewer",
	},
	{
		Says:  "too-few",
		Means: "there are too few looks, samples or cases to answer by, or they ended too early",
		See:   "the finding says how many there were and how many are wanted",
		Next: "give the phase longer with --set phases.PHASE.atLeast=…, or run it again on a machine that is " +
			"less busy",
	},
	{
		Says:  "too-short",
		Means: "what was asked for lasted, but not for as long as it has to",
		See:   "the finding says for how long, and what was wanted",
		Next:  "give the phase longer with --set phases.PHASE.atLeast=…",
	},
	{
		Says:  "other-process",
		Means: "the evidence may be of several processes, whose counters, goroutines and times can't be compared",
		See:   "identity/process in the report, and the arm's log from the time that the finding names",
		Next:  "find out what ended the process; if the fault did, ask for each stretch separately",
	},
	{
		Says: "starved",
		Means: "the host was so busy that the subject may have wanted more CPU time than it got, so that little " +
			"use proves nothing",
		See:  "the finding says how many tasks there were for how many cores",
		Next: "run it again with nothing else on the machine; run fewer trials at once (--parallel)",
	},
	{
		Says: "not-quiet",
		Means: "the world around the subject never stood still for long enough to tell its own doing from an " +
			"answer to others",
		See: "the finding says what went on, and for how long it was quiet at most",
		Next: "give the recovery longer with --set phases.recovery.atLeast=…, or end what else writes in the " +
			"cluster",
	},
	{
		Says:  "not-conclusive",
		Means: "the evidence is there, and fits more than one answer",
		See:   "the finding says which answers it fits; the report has the files",
		Next: "run it again with a larger fault or load, which moves the figures away from the limit; if it is " +
			"the same, look at the files that the finding names",
	},
}
