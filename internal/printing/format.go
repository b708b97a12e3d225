package printing

import (
	"fmt"
	"slices"
	"strings"
)

// Format is a form in which a command prints what it found.
type Format string

// The formats. A command has some of them.
const (
	Text     Format = "text"
	JSON     Format = "json"
	YAML     Format = "yaml"
	Markdown Format = "markdown"
	HTML     Format = "html"
	OSV      Format = "osv"
)

// Choice is a flag whose value is one of a command's formats. It is a pflag.Value.
type Choice struct {
	chosen *Format
	of     []Format
}

// NewChoice returns a flag that sets chosen to one of the formats. Until then chosen is the first one.
func NewChoice(chosen *Format, formats ...Format) Choice {
	*chosen = formats[0]
	return Choice{chosen, formats}
}

// Set chooses a format by its name.
func (c Choice) Set(name string) error {
	if !slices.Contains(c.of, Format(name)) {
		return fmt.Errorf("want %s", c.Usage())
	}
	*c.chosen = Format(name)
	return nil
}

// String returns the name of the chosen format.
func (c Choice) String() string { return string(*c.chosen) }

// Type returns what the flag's value is called in a command's help.
func (c Choice) Type() string { return "format" }

// Usage returns what the flag takes, in words.
func (c Choice) Usage() string { return "one of " + strings.Join(c.Names(), ", ") }

// Names returns the names of the formats.
func (c Choice) Names() []string {
	out := make([]string, len(c.of))
	for i, f := range c.of {
		out[i] = string(f)
	}
	return out
}
