package trial

// LiftError says that a fault may still be in force, because nobody saw that lifting it succeeded. The fault lifts
// itself in its node after its own time limit.
type LiftError struct{ Err error }

// Error returns the reasons, which name the faults.
func (e *LiftError) Error() string { return "a fault may still be in force: " + e.Err.Error() }

// Unwrap returns the reasons.
func (e *LiftError) Unwrap() error { return e.Err }
