package cli

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// durationVar adds a flag for a length of time that can't be negative. A number without a unit is refused.
func durationVar(
	fl *pflag.FlagSet,
	to *time.Duration,
	name string,
	value time.Duration,
	usage string,
) {
	*to = value
	fl.Var((*duration)(to), name, usage)
}

// duration is the value of a flag for a length of time. It is a pflag.Value.
type duration time.Duration

// Set reads a length of time.
func (d *duration) Set(text string) error {
	v, err := time.ParseDuration(text)
	if _, bare := strconv.ParseFloat(text, 64); bare == nil { // also of 0, which Go takes
		return fmt.Errorf("it has no unit (want %[1]ss, %[1]sm or %[1]sh, for example)", text)
	}
	if err != nil {
		return errors.New("it is no length of time (want one such as 90s, 5m or 1h30m)")
	}
	if v < 0 {
		return errors.New("it is negative (want a length of time such as 90s, 5m or 1h30m)")
	}
	*d = duration(v)
	return nil
}

// limitVar adds a flag for a length of time that can't be 0 either: its default is another one, or none.
func limitVar(fl *pflag.FlagSet, to *time.Duration, name string, value time.Duration, usage string) {
	*to = value
	fl.Var(limit{(*duration)(to)}, name, usage)
}

// limit is the value of a flag for a length of time above 0. It is a pflag.Value.
type limit struct{ *duration }

// Set reads a length of time above 0.
func (l limit) Set(text string) error {
	if err := l.duration.Set(text); err != nil {
		return err
	}
	if *l.duration == 0 {
		return errors.New("it is 0 (want a length of time such as 90s, 5m or 1h30m)")
	}
	return nil
}

// String returns the length of time, "" for none.
func (d *duration) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

// Type returns what the flag's value is called in a command's help.
func (d *duration) Type() string { return "duration" }

// once is the value of a flag that may be given one time only, because the last of several would win silently. It is a
// pflag.Value.
type once struct {
	to        *string
	what, why string // what the value is called in a command's help; why there is only one, and what to do instead
}

// Set keeps the value, or refuses a second one.
func (o once) Set(text string) error {
	if text == "" { // a variable that isn't set, and nothing of it would be judged
		return fmt.Errorf("it is empty (want a %s)", o.what)
	}
	if *o.to != "" {
		return fmt.Errorf("%s was given before it (want one: %s)", *o.to, o.why)
	}
	*o.to = text
	return nil
}

// String returns the value.
func (o once) String() string { return *o.to }

// Type returns what the flag's value is called in a command's help.
func (o once) Type() string { return o.what }

// strict makes a command and its subcommands refuse a second value of each flag that has one value, because the last
// would win silently, and say what a number looks like.
func strict(cmd *cobra.Command) {
	each := func(f *pflag.Flag) {
		switch f.Value.(type) {
		case once:
			return
		case pflag.SliceValue:
			f.Value = filled{f.Value}
			if f.DefValue == "[]" { // which pflag leaves out of the help of its own types only
				f.DefValue = ""
			}
			return
		}
		if f.NoOptDefVal == "" { // a switch that is turned twice is on
			f.Value = &single{Value: f.Value}
		}
	}
	cmd.LocalNonPersistentFlags().VisitAll(each)
	cmd.PersistentFlags().VisitAll(each)
	for _, sub := range cmd.Commands() {
		strict(sub)
	}
}

// filled is the value of a flag that has several. It is a pflag.Value.
type filled struct{ pflag.Value }

// Set adds to the values, or refuses to add nothing.
func (f filled) Set(text string) error {
	if text == "" {
		return errEmpty
	}
	return f.Value.Set(text)
}

// errEmpty refuses a value that a shell's variable without one leaves: the flag would then mean all, or the default.
var errEmpty = errors.New("it is empty (want a value, or leave out the flag)")

// single is the value of a flag that has one value. It is a pflag.Value.
type single struct {
	pflag.Value
	given bool
}

// Set sets the value, or refuses it.
func (s *single) Set(text string) error {
	if s.given {
		return fmt.Errorf("%s was given before it (want one)", s.Value)
	}
	if text == "" {
		return errEmpty
	}
	s.given = true
	err := s.Value.Set(text)
	var number *strconv.NumError
	switch {
	case !errors.As(err, &number):
		return err
	case strings.HasPrefix(s.Type(), "float"):
		return errors.New("it is no number (want one such as 0.95)")
	}
	return errors.New("it is no whole number (want one such as 3)")
}

// runsVar adds the flag for the folder of run directories.
func runsVar(fl *pflag.FlagSet, to *string) {
	*to = "runs"
	fl.Var((*folderPath)(to), "runs", "the folder of run directories")
	renamed(fl, "out", "runs")
}

// folderPath is the value of a flag for a folder that may not be there yet. It is a pflag.Value.
type folderPath string

// Set keeps the path, or refuses that of a file.
func (f *folderPath) Set(path string) error {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return errors.New("it is a file (want a folder, which is made if it isn't there)")
	}
	*f = folderPath(path)
	return nil
}

// String returns the path.
func (f *folderPath) String() string { return string(*f) }

// Type returns what the flag's value is called in a command's help.
func (*folderPath) Type() string { return "string" }

// renamed keeps a flag's old name for one more release. Whoever uses it is told the new one.
func renamed(fl *pflag.FlagSet, old, now string) {
	f := *fl.Lookup(now)
	f.Name, f.Shorthand, f.Value = old, "", formerly{f.Value, now}
	f.Deprecated, f.Hidden = "it is called --"+now+" now", true
	fl.AddFlag(&f)
}

// formerly is the value of a flag under its old name.
type formerly struct {
	pflag.Value
	now string
}

// Set sets the value. Its error says what the flag is called now.
func (f formerly) Set(text string) error {
	if err := f.Value.Set(text); err != nil {
		return fmt.Errorf("%w; the flag is called --%s now", err, f.now)
	}
	return nil
}

// jsonFlag keeps the flag --json of a command for one more release, in place of which there is -o json.
func jsonFlag(fl *pflag.FlagSet) {
	fl.BoolFunc("json", "print JSON", func(on string) error {
		if on == "false" {
			return nil
		}
		return fl.Set("output", "json")
	})
	if err := fl.MarkDeprecated("json", "it is called -o json now"); err != nil {
		panic(err) // the flag is there
	}
}

// wrongFlag turns an error of the command line's parser into a usage error, with the flag that was probably meant.
func wrongFlag(cmd *cobra.Command, err error) error {
	hint := cmd.CommandPath() + " --help lists the flags"
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				known = append(known, f.Name)
			}
		})
		if near := nearest(unknown.GetSpecifiedName(), known); near != "" {
			hint = "did you mean --" + near + "? " + hint
		}
	}
	return usage(err, hint)
}
