package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/clusterrun/clusterrun/starter/help"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

const (
	// section is the annotation that holds a flag's heading in the help.
	section = "section"
	// commonFlags is the heading of the first flags.
	commonFlags = "Flags that most runs need"
	// helpWidth is the width of help text, in columns.
	helpWidth = 80
)

// SetSection puts a flag under a heading in the help of `clusterrun run`. Other commands with
// the flag refer to that help.
func SetSection(fs *pflag.FlagSet, flag, heading string) {
	_ = fs.SetAnnotation(flag, section, []string{heading})
}

// HelpText returns a command's help. headings are the headings of [SetSection], in order.
func HelpText(cmd *cobra.Command, headings []string) string {
	var b strings.Builder
	usage := func() {
		b.WriteString("Usage:\n")
		if cmd.Runnable() {
			fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
		}
		if cmd.HasAvailableSubCommands() {
			fmt.Fprintf(&b, "  %s [command]\n", cmd.CommandPath())
		}
		b.WriteString("\n")
	}
	flags, common := sections(cmd)
	about, examples := Described(cmd)
	if common != nil {
		b.WriteString(cmd.Short + ".\n\n")
		usage()
		writeFlags(&b, commonFlags, common)
	}
	b.WriteString(cmp.Or(about, cmd.Short) + "\n\n")
	if common == nil {
		usage()
	}
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(&b, "Aliases:\n  %s\n\n", cmd.NameAndAliases())
	}
	if examples != "" {
		fmt.Fprintf(&b, "Examples:\n%s\n\n", examples)
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("Commands:\n")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				fmt.Fprintf(&b, "  %-*s %s\n", cmd.NamePadding(), c.Name(), c.Short)
			}
		}
		b.WriteString("\n")
	}
	writeFlags(&b, "Flags", flags[""])
	if common != nil {
		for _, heading := range headings {
			if heading != commonFlags {
				writeFlags(&b, heading, flags[heading])
			}
		}
	} else if but, ok := flagsOfRun(cmd, flags); ok {
		for _, line := range shorten.Wrap("It also accepts the flags of `clusterrun run`"+but+".", helpWidth) {
			b.WriteString(line + "\n")
		}
		b.WriteString("\n")
	}
	b.WriteString("Global flags, such as --json: clusterrun help flags\n")
	return b.String()
}

// Described returns a command's description and examples, from its file in package help. In a
// command with such a file, Long is the generated part of the description.
func Described(cmd *cobra.Command) (about, examples string) {
	_, name, _ := strings.Cut(cmd.CommandPath(), " ")
	if about, examples = help.Command(name, cmd.Long); about != "" {
		return about, examples
	}
	return strings.TrimSpace(cmd.Long), cmd.Example
}

// sections returns a command's visible flags by heading, and the common flags for the command
// that lists them first.
func sections(cmd *cobra.Command) (by map[string]*pflag.FlagSet, common *pflag.FlagSet) {
	by = map[string]*pflag.FlagSet{}
	add := func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		heading := ""
		if a := f.Annotations[section]; len(a) > 0 {
			heading = a[0]
		}
		if by[heading] == nil {
			by[heading] = pflag.NewFlagSet(heading, pflag.ContinueOnError)
			by[heading].SortFlags = false
		}
		by[heading].AddFlag(f)
	}
	cmd.LocalFlags().VisitAll(add)
	if cmd.Name() == "run" {
		common = by[commonFlags]
	}
	return by, common
}

// flagsOfRun returns those flags of run that the command does not accept. ok is false if it does
// not accept any of them.
func flagsOfRun(cmd *cobra.Command, flags map[string]*pflag.FlagSet) (but string, ok bool) {
	run, _, err := cmd.Root().Find([]string{"run"})
	if err != nil || flags[commonFlags] == nil {
		return "", false
	}
	var without []string
	run.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && cmd.LocalFlags().Lookup(f.Name) == nil {
			without = append(without, "--"+f.Name)
		}
	})
	slices.Sort(without)
	if len(without) > 0 {
		but = ", except " + strings.Join(without, ", ")
	}
	return but, true
}

func writeFlags(b *strings.Builder, heading string, flags *pflag.FlagSet) {
	if flags != nil {
		fmt.Fprintf(b, "%s:\n%s\n", heading, flags.FlagUsagesWrapped(helpWidth))
	}
}
