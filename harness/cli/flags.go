package cli

import (
	"errors"
	"fmt"
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
	if _, bare := strconv.ParseFloat(text, 64); err != nil && bare == nil {
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
		case pflag.SliceValue, once:
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
	fl.StringVar(to, "runs", "runs", "the folder of run directories")
	renamed(fl, "out", "runs")
}

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
