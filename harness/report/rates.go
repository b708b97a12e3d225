package report

// Rate is how often an outcome came about over the trials of a pair's arm.
type Rate struct {
	Pair     string  `json:"pair"`
	Arm      string  `json:"arm"`
	Outcome  string  `json:"outcome"`
	K        int     `json:"k"` // trials with the outcome
	N        int     `json:"n"` // trials that gave an answer
	Low      float64 `json:"low"`
	High     float64 `json:"high"`     // the ends of the 95 % interval, from 0 to 1
	Sentence string  `json:"sentence"` // "0 of 20: at most 14 % at 95 %"
}
