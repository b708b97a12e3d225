package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/version"
)

// newRootCmd builds the whole command tree. Each command has its own file with a function newXxxCmd, which is listed
// here.
func newRootCmd() *cobra.Command {
	root := &cobra.Command{
		Use:   "relapse",
		Short: "Bring back a known Kubernetes incident, to prove that its cure works",
		Long: `Relapse brings back a known Kubernetes incident on purpose, in the real component, to prove that
a cure works.

Exit codes: 0 as expected, 1 not cured or not reproduced, 3 inconclusive, 4 something of relapse's own failed,
64 wrong usage or input, 130 interrupted.`,
		Version:       programVersion(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          wantCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	if filepath.Base(os.Args[0]) == plugin { // kubectl calls the plugin by this name
		root.Annotations = map[string]string{
			cobra.CommandDisplayNameAnnotation: "kubectl relapse",
		}
	}
	root.SetVersionTemplate("relapse {{.Version}}\n")
	root.SetFlagErrorFunc(wrongFlag)
	root.PersistentFlags().String("root", "",
		"the folder of a relapse checkout, whose scenarios and fixtures are used (default: $RELAPSE_ROOT, else the nearest one upwards from here, else those in this program)")
	root.PersistentFlags().StringArray("scenarios", nil,
		"a folder of scenarios of your own, in addition to relapse's (default: those in $RELAPSE_SCENARIOS)")
	root.AddCommand(
		newAttachCmd(),
		newAttestCmd(),
		newBaselineCmd(),
		newBisectStepCmd(),
		newBuildCmd(),
		newCacheCmd(),
		newCleanCmd(),
		newCollectCmd(),
		newDocsCmd(),
		newDoctorCmd(),
		newExplainCmd(),
		newFetchCmd(),
		newHistoryCmd(),
		newImageCmd(),
		newJudgeCmd(),
		newListCmd(),
		newMatchCmd(),
		newNewCmd(),
		newNightlyCmd(),
		newOracleCmd(),
		newPlanCmd(),
		newRecordCmd(),
		newRecorderCmd(),
		newContainCmd(),
		newRedactCmd(),
		newReportCmd(),
		newRunCmd(),
		newSchemaCmd(),
		newSuperviseCmd(),
		newSurveyCmd(),
		newValidateCmd(),
		newVersionCmd(),
	)
	for _, cmd := range root.Commands() {
		cmd.Args = asUsage(cmd.Args)
	}
	strict(root)
	refuseUnknownTopics(root)
	return root
}

// refuseUnknownTopics has the two commands that come with cobra refuse what they don't know: they would print their
// help, and end as if all were well.
func refuseUnknownTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = func(_ *cobra.Command, topic []string) error {
				if found, _, err := root.Find(topic); err != nil || found != root {
					return err
				}
				return wantCommand(root, topic)
			}
		case "completion":
			for _, shell := range cmd.Commands() {
				shell.Args = exactly(0, "arguments")
			}
			cmd.Args, cmd.RunE = wantCommand, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
}

// plugin is the file name by which kubectl finds this program as the command kubectl relapse.
const plugin = "kubectl-relapse"

// asUsage turns a complaint of args about the number of arguments into a usage error.
func asUsage(args cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, got []string) error {
		if args == nil {
			return nil
		}
		err := args(cmd, got)
		var e *exitError
		if err == nil || errors.As(err, &e) {
			return err
		}
		return usage(err, "usage: "+cmd.UseLine())
	}
}

// wantCommand refuses a word that is no command, and suggests similar commands.
func wantCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2 // without a distance, SuggestionsFor only finds prefixes
	path := cmd.CommandPath()
	hint := path + " --help lists the commands"
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean " + path + " " + strings.Join(near, " or "+path+" ") + "?"
	}
	return usage(fmt.Errorf("unknown command %q", args[0]), hint)
}

// exactly accepts n arguments, which the error calls name. Any other number is a usage error.
func exactly(n int, name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return usage(fmt.Errorf("%s takes %d %s, not %d", cmd.CommandPath(), n, name, len(args)),
			"usage: "+cmd.UseLine())
	}
}

func newVersionCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of relapse and of the Go toolchain it was built with",
		Args:  exactly(0, "arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "relapse", programVersion())
			return err
		},
	}
}

// programVersion returns relapse's version, and that of Go.
func programVersion() string { return version.Relapse() + " " + runtime.Version() }
