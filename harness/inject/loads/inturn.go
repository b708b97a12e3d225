package loads

import "time"

// inTurn returns how long rounds last at least: by the pauses between them, and by the rate of the calls in all of them,
// 0 for none.
func inTurn(rounds int, pause time.Duration, calls int, rate float64) time.Duration {
	out := time.Duration(max(rounds-1, 0)) * pause
	if rate > 0 {
		out += time.Duration(float64(max(calls-1, 0)) / rate * float64(time.Second))
	}
	return out
}

// Takes returns how long the load lasts at least.
func (l *Objects) Takes() time.Duration {
	return inTurn(l.Rounds, l.Pause.Duration, l.Count*len(l.Manifests)*l.Rounds, l.Rate)
}

// Takes returns how long the load lasts at least.
func (l *Requests) Takes() time.Duration { return inTurn(l.Rounds, 0, l.Calls*l.Rounds, l.Rate) }

// Takes returns how long the load lasts at least.
func (l *DeleteCollection) Takes() time.Duration {
	return inTurn(l.Rounds, l.Pause.Duration, l.Calls*l.Rounds, l.Rate)
}

// Takes returns how long the load lasts at least.
func (l *Etcd) Takes() time.Duration {
	out := inTurn(l.Rounds, l.Pause.Duration, 0, 0)
	for _, s := range l.Steps {
		if s.Pause != nil {
			out += time.Duration(l.Rounds) * s.Pause.Duration
		}
	}
	return out
}

// CallsByVerb returns how many calls the load makes, by the verb of each.
func (l *Requests) CallsByVerb() map[string]int { return map[string]int{l.Method: l.Calls * l.Rounds} }

// CallsByVerb returns how many calls the load makes, by the verb of each.
func (l *Etcd) CallsByVerb() map[string]int {
	out := map[string]int{}
	for _, s := range l.Steps {
		if verb, _ := s.verb(); s.Pause == nil {
			out[verb] += l.Rounds
		}
	}
	return out
}

// Watches returns how many watches the load reads, by the name of the step.
func (l *Etcd) Watches() map[string]int {
	out := map[string]int{}
	for _, s := range l.Steps {
		if s.Watch != nil {
			out[s.name()] += l.Rounds
		}
	}
	return out
}
