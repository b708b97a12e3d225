package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/version"
)

// newDocsCmd returns the command that packagers and make docs call. cobra has generators of its own, which take help
// texts for Markdown: <id> gets lost in them, and lists become one paragraph.
func newDocsCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:    "docs",
		Short:  "Write man pages, or the page with all commands, from the commands' help",
		Hidden: true,
		Args:   exactly(0, "arguments"),
		RunE:   func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newSBOMCmd(),
		newImageFileCmd(),
		&cobra.Command{
			Use:   "man FOLDER",
			Short: "Write a man page of each command",
			Args:  exactly(1, "folder"),
			RunE: func(_ *cobra.Command, args []string) error {
				for _, c := range shownCommands(documented()) {
					name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
					if err := writePage(args[0], name, func(w io.Writer) error { return manPage(w, c) }); err != nil {
						return err
					}
				}
				return nil
			},
		},
		&cobra.Command{
			Use:   "markdown FOLDER",
			Short: "Write " + commandsPage + ", a page with all commands",
			Args:  exactly(1, "folder"),
			RunE: func(_ *cobra.Command, args []string) error {
				return writePage(
					args[0],
					commandsPage,
					func(w io.Writer) error { return allCommands(w, documented()) },
				)
			},
		},
	)
	return cmd
}

// commandsPage is the name of the page with all commands.
const commandsPage = "cli.md"

func writePage(folder, name string, write func(io.Writer) error) error {
	var page bytes.Buffer
	err := write(&page)
	if err == nil {
		err = os.MkdirAll(folder, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name), page.Bytes(), 0o644)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// documented returns the commands with those that cobra adds when one is executed.
func documented() *cobra.Command {
	root := newRootCmd()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	return root
}

// shownCommands returns a command and all that --help lists below it, each before those below it.
func shownCommands(c *cobra.Command) []*cobra.Command {
	out := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			out = append(out, shownCommands(sub)...)
		}
	}
	return out
}

// allCommands writes a page with the help of all commands.
func allCommands(w io.Writer, root *cobra.Command) error {
	page := bytes.NewBufferString("# Commands\n\nThis is what `relapse COMMAND --help` prints. `make docs` writes this page.\n")
	for _, c := range shownCommands(root) {
		c.InitDefaultHelpFlag()
		c.InitDefaultVersionFlag()
		fmt.Fprintf(page, "\n## %s\n\n```\n", c.CommandPath())
		c.SetOut(page)
		if err := c.Help(); err != nil {
			return err
		}
		page.WriteString("```\n")
	}
	_, err := page.WriteTo(w)
	return err
}

// manPage writes the man page of a command.
func manPage(w io.Writer, c *cobra.Command) error {
	c.InitDefaultHelpFlag()
	c.InitDefaultVersionFlag()
	name := func(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }
	var page, also strings.Builder
	fmt.Fprintf(
		&page,
		".TH %s 1 \"\" \"relapse %s\"\n.SH NAME\n%s \\- %s\n",
		strings.ToUpper(roff(name(c))),
		version.Relapse(),
		roff(name(c)),
		roff(c.Short),
	)
	long := c.Long
	if long == "" {
		long = c.Short + "."
	}
	for _, s := range []struct{ title, text string }{
		{"SYNOPSIS", c.UseLine()}, {"DESCRIPTION", long}, {"OPTIONS", c.LocalFlags().FlagUsages()},
		{"GLOBAL OPTIONS", c.InheritedFlags().FlagUsages()}, {"EXAMPLES", c.Example},
	} {
		if s.text != "" {
			fmt.Fprintf(
				&page,
				".SH %s\n.nf\n%s\n.fi\n",
				s.title,
				roff(strings.TrimRight(s.text, "\n")),
			)
		}
	}
	if c.HasParent() {
		fmt.Fprintf(&also, ".BR %s (1)\n", roff(name(c.Parent())))
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			fmt.Fprintf(&also, ".BR %s (1)\n", roff(name(sub)))
		}
	}
	if also.Len() > 0 {
		page.WriteString(".SH SEE ALSO\n" + also.String())
	}
	_, err := io.WriteString(w, page.String())
	return err
}

// roff escapes what would be a request or an escape of roff, keeps hyphens that are typed from becoming dashes, and
// names other characters than those of ASCII.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	var out strings.Builder
	for _, r := range strings.Join(lines, "\n") {
		if r < utf8.RuneSelf {
			out.WriteRune(r)
		} else {
			fmt.Fprintf(&out, `\[u%04X]`, r)
		}
	}
	return out.String()
}
