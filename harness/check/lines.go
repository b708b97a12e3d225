package check

// Lines says which lines of a log a check wants.
type Lines struct {
	Patterns []string // regular expressions over a line's text, without regard to case; a line has to match one
	Ends     bool     // the runtime's last words, which begin with panic: or fatal error:, and the stacks below them
}

// LinePicker is a check that needs only some lines of a log. It answers the same whether it gets all lines, or only the
// lines that it wants and the number of the others. Code that keeps only some of a log's lines asks each check for this
// interface: a check without it wants all lines.
type LinePicker interface {
	Check
	Lines() Lines
}

// Lines returns the pattern of the lines that are counted.
func (c *LogCount) Lines() Lines { return Lines{Patterns: []string{c.Pattern}} }

// Lines returns the pattern that a line has to match.
func (c *LogLine) Lines() Lines { return Lines{Patterns: []string{c.Pattern}} }

// Lines asks for the runtime's last words and the stacks below them.
func (c *Panicked) Lines() Lines { return Lines{Ends: true} }
