package trial

// LiftError says that a fault may still be in force, because lifting it was not seen to succeed. It lifts itself in
// its node after its own time limit.
type LiftError struct{ Err error }

// Error names the faults.
func (e *LiftError) Error() string { return "a fault may still be in force: " + e.Err.Error() }

// Unwrap gives the reasons.
func (e *LiftError) Unwrap() error { return e.Err }
