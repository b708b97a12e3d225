package check

// Lines says which lines of a log a check wants.
type Lines struct {
	Patterns []string // regular expressions over a line's text, without regard to case; a line has to match one
	Ends     bool     // the runtime's last words, which begin with panic: or fatal error:, and the stacks below them
}

// LinePicker is a check that answers the same whether it gets all lines of a log or only those that it wants, with the
// number of the others. Who keeps only some of a log's lines asks for it: a check that isn't one wants all of them.
type LinePicker interface {
	Check
	Lines() Lines
}

// Lines are those that are counted.
func (c *LogCount) Lines() Lines { return Lines{Patterns: []string{c.Pattern}} }

// Lines are those that may be the wanted one.
func (c *LogLine) Lines() Lines { return Lines{Patterns: []string{c.Pattern}} }

// Lines are the runtime's last words.
func (c *Panicked) Lines() Lines { return Lines{Ends: true} }
