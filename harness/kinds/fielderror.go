package kinds

import "strings"

// FieldError is what is wrong with one field of a spec. Where the spec comes from a file, the complaint gets the field's
// own position.
type FieldError struct {
	Field string // its path in the spec: rules[0].when
	Err   error
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Err.Error() }
func (e *FieldError) Unwrap() error { return e.Err }

// Each returns the errors that errors.Join joined, and those that were joined before. Any other error is returned alone.
func Each(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	var texts []string
	for _, one := range joined.Unwrap() {
		all, texts = append(all, Each(one)...), append(texts, one.Error())
	}
	if strings.Join(texts, "\n") != err.Error() { // fmt.Errorf joins errors, too, and adds words
		return []error{err}
	}
	return all
}
