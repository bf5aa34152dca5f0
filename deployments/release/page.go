package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/clusterrun/clusterrun/starter/command"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/help"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// page is a manual page, whose body is written for roff. Package doc of cobra takes texts for
// Markdown, in which <RUN> and what is indented are something else, leaves out the names of the
// values of options, and knows no topics.
type page struct {
	name, section, title, body string
}

func (p page) write(w io.Writer, when time.Time) error {
	_, err := fmt.Fprintf(w, ".TH %s %s %s \"clusterrun %s\" \"clusterrun\"\n.nh\n.ad l\n.SH NAME\n%s \\- %s\n%s",
		escape(strings.ToUpper(p.name)), p.section, when.Format(time.DateOnly), spec.Version, escape(p.name), escape(p.title), p.body)
	return err
}

// reference names a page.
func reference(name, section string) string {
	return fmt.Sprintf("\\fB%s\\fR(%s)", escape(name), section)
}

// topicPage returns the page of a topic of help: what `clusterrun help` shows.
func topicPage(name string) (page, error) {
	topic, _ := help.Find(name)
	var shown bytes.Buffer
	root := command.Commands(&shown)
	root.SetArgs([]string{"help", name})
	if err := root.Execute(); err != nil {
		return page{}, fmt.Errorf("topic %s: %w", name, err)
	}
	_, text, _ := strings.Cut(shown.String(), "\n\n") // without its title
	body := ".SH DESCRIPTION\n.in 0\n" + verbatim(text) + ".SH SEE ALSO\n" + reference("clusterrun", "1") + "\n"
	return page{"clusterrun-" + name, "7", topic.Title, body}, nil
}

// nameOf returns the name of a command's page: man(1) looks for clusterrun-run as well when
// it is asked for clusterrun run.
func nameOf(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// documented returns a command and those below it that users see.
func documented(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			all = append(all, documented(sub)...)
		}
	}
	return all
}

// commandPage returns the page of a command: what --help shows.
func commandPage(c *cobra.Command) page {
	var b strings.Builder
	about, examples := cli.Described(c)
	fmt.Fprintf(&b, ".SH SYNOPSIS\n%s\n.SH DESCRIPTION\n%s", escape(c.UseLine()), paragraphs(cmp.Or(about, c.Short+".")))
	if flags := c.LocalNonPersistentFlags(); flags.HasAvailableFlags() {
		fmt.Fprintf(&b, ".SH OPTIONS\n%s", options(flags))
	}
	if !c.HasParent() {
		fmt.Fprintf(&b, ".SH OPTIONS OF ALL COMMANDS\n%s", options(c.PersistentFlags()))
	} else {
		fmt.Fprintf(&b, ".PP\nThe options of all commands are in %s.\n", reference(nameOf(c.Root()), "1"))
	}
	if c.HasAvailableSubCommands() {
		b.WriteString(".SH COMMANDS\n")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&b, ".TP\n%s\n%s\n", reference(nameOf(sub), "1"), escape(sub.Short))
			}
		}
	}
	if !c.HasParent() {
		b.WriteString(".SH TOPICS\n")
		for _, name := range help.Names() {
			topic, _ := help.Find(name)
			fmt.Fprintf(&b, ".TP\n%s\n%s\n", reference("clusterrun-"+name, "7"), escape(topic.Title))
		}
	}
	if examples != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n%s", verbatim(examples))
	}
	if c.HasParent() {
		fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", reference(nameOf(c.Parent()), "1"))
	}
	return page{nameOf(c), "1", c.Short, b.String()}
}

// usage matches pflag's line of a flag: its names, three spaces or more, and its text.
var usage = regexp.MustCompile(`(?s)^ +(.*?) {3,}(.*)\n$`)

// options describes flags.
func options(flags *pflag.FlagSet) string {
	var b strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		one := pflag.NewFlagSet("", pflag.ContinueOnError)
		one.AddFlag(f)
		if parts := usage.FindStringSubmatch(one.FlagUsages()); parts != nil {
			fmt.Fprintf(&b, ".TP\n\\fB%s\\fR\n%s\n", escape(parts[1]), escape(strings.Join(strings.Fields(parts[2]), " ")))
		}
	})
	return b.String()
}

// paragraphs fills the lines of a text, but leaves indented lines unchanged.
func paragraphs(text string) string {
	var b strings.Builder
	indented := false
	for line := range strings.Lines(strings.TrimSpace(text) + "\n") {
		line = strings.TrimSuffix(line, "\n")
		if is := strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t"); line != "" && is != indented {
			b.WriteString(map[bool]string{true: ".nf\n", false: ".fi\n"}[is])
			indented = is
		}
		if line == "" && !indented {
			b.WriteString(".PP\n")
		} else {
			b.WriteString(escape(line) + "\n")
		}
	}
	if indented {
		b.WriteString(".fi\n")
	}
	return b.String()
}

// verbatim leaves the lines of a text as they are.
func verbatim(text string) string {
	var b strings.Builder
	b.WriteString(".nf\n")
	for line := range strings.Lines(strings.Trim(text, "\n") + "\n") {
		b.WriteString(escape(line))
	}
	b.WriteString(".fi\n")
	return b.String()
}

var escapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", `\(ga`, "'", `\(aq`, "^", `\(ha`, "~", `\(ti`)

// escape makes roff print a line unchanged.
func escape(line string) string {
	var b strings.Builder
	if strings.HasPrefix(line, ".") {
		b.WriteString(`\&`)
	}
	for _, r := range escapes.Replace(line) {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\[u%04X]`, r)
		}
	}
	return b.String()
}
