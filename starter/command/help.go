package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/pty"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/help"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func Help(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "help [flags] [TOPIC | COMMAND...]",
		Short: "Read about a topic, such as restarts, or about a command",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return completeHelp(cmd.Root(), args, start), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runHelp(a, cmd, args) },
	}
}

// runHelp runs the command [Help].
func runHelp(a *cli.App, cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return cmd.Root().Help()
	case len(args) == 1 && args[0] == "topics":
		return listTopics(a)
	case len(args) == 1 && args[0] == "flags":
		return a.PrintRaw([]byte("Flags of all commands:\n" + cmd.Root().PersistentFlags().FlagUsagesWrapped(80)))
	}
	if topic, found := help.Find(args[0]); found && len(args) == 1 {
		return showTopic(a, cmd.Root(), topic)
	}
	about, rest, err := cmd.Root().Find(args)
	if err != nil || about == cmd.Root() || len(rest) > 0 {
		return unknownTopic(cmd.Root(), args)
	}
	return about.Help()
}

func listTopics(a *cli.App) error {
	type entry struct {
		Group string `json:"group"`
		Name  string `json:"name"`
		Title string `json:"title"`
	}
	var entries []entry
	var b strings.Builder
	b.WriteString("Topics, for `clusterrun help TOPIC`\n")
	for _, g := range help.Groups() {
		fmt.Fprintf(&b, "\n%s\n", g.Title)
		for _, topic := range g.Topics {
			entries = append(entries, entry{g.Title, topic.Name, topic.Title})
			fmt.Fprintf(&b, "  %-15s %s\n", topic.Name, topic.Title)
		}
	}
	b.WriteString("\n`clusterrun help` lists the commands.\n")
	if a.Global.JSON {
		return a.PrintJSON(entries)
	}
	return a.PrintRaw([]byte(b.String()))
}

func showTopic(a *cli.App, root *cobra.Command, topic help.Topic) error {
	if a.Global.JSON {
		return a.PrintJSON(map[string]string{"name": topic.Name, "title": topic.Title, "text": topic.Text})
	}
	width := 80
	if cli.IsTerminal(a.Out) {
		if _, columns, err := pty.Size(tasklog.FileOf(a.Out)); err == nil && columns > 0 {
			width = min(columns, 100) // longer lines are hard to read
		}
	}
	text := help.Render(topic.Text, width)
	if topic.Name == "spec" {
		text += "\n" + spec.Reference()
	}
	if about, _, err := root.Find([]string{topic.Name}); err == nil && about != root {
		text += fmt.Sprintf("\nThe command and its flags: `%s --help`.\n", about.CommandPath())
	}
	return a.PrintRaw([]byte(text))
}

func unknownTopic(root *cobra.Command, args []string) error {
	known := help.Names()
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			known = append(known, c.Name())
		}
	}
	remedy := "`clusterrun help topics` lists the topics"
	if near := spec.Nearest(args[0], known); near != "" && near != args[0] {
		remedy = fmt.Sprintf("did you mean `clusterrun help %s`?", near)
	}
	return cli.Usagef("there is no topic or command %q; %s", strings.Join(args, " "), remedy)
}

// completeHelp returns the words that may follow args: topics and commands, or a command's
// subcommands.
func completeHelp(root *cobra.Command, args []string, start string) (found []cobra.Completion) {
	about, rest, err := root.Find(args)
	if err != nil || len(rest) > 0 {
		return nil
	}
	if len(args) == 0 {
		for _, name := range help.Names() {
			topic, _ := help.Find(name)
			found = append(found, cobra.CompletionWithDesc(name, topic.Title))
		}
	}
	for _, c := range about.Commands() {
		if _, topic := help.Find(c.Name()); c.IsAvailableCommand() && (!topic || len(args) > 0) {
			found = append(found, cobra.CompletionWithDesc(c.Name(), c.Short))
		}
	}
	return slices.DeleteFunc(found, func(c cobra.Completion) bool { return !strings.HasPrefix(c, start) })
}
