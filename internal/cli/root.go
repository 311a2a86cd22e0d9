package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/buildstamp"
	"github.com/workflows-engine/workflows-engine/internal/config"
)

func init() { cobra.EnableCommandSorting = false } // help lists commands in our order

// groupOperate is the title of the commands for operators.
const groupOperate = "Operate"

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "workflows-engine",
		Short: "Validate, run and operate agent workflows",
		Long: `Run workflows of AI agents and programs. Every step is stored before it takes
effect, so a run survives a crash, and any process can continue it.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE:          func(cmd *cobra.Command, args []string) error { return noCommand(cmd, args) },
	}
	root.SuggestionsMinimumDistance = 2
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.Version = buildstamp.Read().String()
	root.SetVersionTemplate(program + " {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return config.FlagError(err).WithHint("See %s --help.", cmd.CommandPath())
	})
	if a.backend != nil {
		a.flags = config.RegisterAt(root.PersistentFlags(), a.backend.Register(root.PersistentFlags()))
	} else {
		a.flags = config.Register(root.PersistentFlags())
	}
	root.SetGlobalNormalizationFunc(config.Normalize)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { a.help(cmd, cmd.OutOrStdout()) })
	root.SetUsageFunc(func(cmd *cobra.Command) error { a.help(cmd, cmd.OutOrStderr()); return nil })
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Start here", []*cobra.Command{newRun(a), newUI(a), newNew(a), newInstall(a)}},
		{"Write definitions", []*cobra.Command{newValidate(a), newTest(a), newGraph(a), newFmt(a), newCatalog(a), newGuide(a), newExplain(a)}},
		{"Look at runs", []*cobra.Command{newList(a), newStatus(a), newWatch(a), newHistory(a)}},
		{"Continue or end a run", []*cobra.Command{newResume(a), newSignal(a), newSubmit(a), newRetry(a), newFork(a), newCancel(a), newRecover(a), newHandle(a)}},
		{groupOperate, []*cobra.Command{
			newDoctor(a), newWorker(a), newWorkers(a), newQueue(a), newLimits(a), newServe(a), newDB(a), newWebhook(a), newAgent(a), newTool(a), newUninstall(a),
		}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for _, cmd := range g.commands {
			cmd.GroupID = g.title
		}
		root.AddCommand(g.commands...)
	}
	root.AddCommand(newVersion(a), newConformance(a), newOptions(), newExitStatus())
	root.AddCommand(formerly(a)...)
	if a.backend != nil {
		a.backend.adapt(a, root)
	}
	a.completeShortIDs(root)
	return root
}

// completeShortIDs lets the commands that take the id of a run take a shorter one.
func (a *app) completeShortIDs(of *cobra.Command) {
	for _, cmd := range of.Commands() {
		a.completeShortIDs(cmd)
		if !strings.Contains(cmd.Use, " ID") && !strings.Contains(cmd.Use, "[ID]") {
			continue
		}
		checked := cmd.PreRunE
		cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
			if checked != nil {
				if err := checked(cmd, args); err != nil {
					return err
				}
			}
			return a.completeShortID(cmd, args)
		}
	}
}

// formerly returns commands under the names that they had, hidden. Scripts may still use them.
func formerly(a *app) []*cobra.Command {
	var list []*cobra.Command
	for _, c := range []struct {
		name string
		cmd  *cobra.Command
	}{
		{"workflows", newCatalog(a)}, {"verify", newVerify(a)}, {"gc", newPrune(a)}, {"export", newExport(a)}, {"import", newImport(a)}, {"store", newDB(a)},
		{"webhooks", newWebhook(a)}, {"mcp-manifest", newTool(a)}, {"step-commands", newTool(a)},
	} {
		c.cmd.Use = strings.Replace(c.cmd.Use, c.cmd.Name(), c.name, 1)
		c.cmd.Hidden = true
		list = append(list, c.cmd)
	}
	return list
}

// otherWords maps names of commands in other programs to ours, for "did you mean".
var otherWords = map[string]string{
	"show": "status", "get": "status", "describe": "status", "inspect": "status", "info": "status",
	"definitions": "catalog",
	"ls":          "list", "ps": "list", "runs": "list", "log": "history", "logs": "history", "events": "history",
	"follow": "watch", "tail": "watch", "top": "watch",
	"start": "run", "exec": "run", "execute": "run", "continue": "recover", "rerun": "retry", "ack": "handle", "acknowledge": "handle", "dismiss": "handle", "again": "retry", "answer": "resume", "approve": "resume",
	"complete": "submit", "stop": "cancel", "kill": "cancel", "abort": "cancel", "delete": "db prune", "rm": "db prune", "prune": "db prune", "clean": "db prune",
	"draw": "graph", "diagram": "graph", "picture": "graph", "mermaid": "graph",
	"web": "ui", "page": "ui", "open": "ui", "browser": "ui", "dashboard": "ui",
	"server": "serve", "api": "serve", "rest": "serve", "daemon": "worker", "processes": "workers", "fleet": "workers", "queues": "queue", "lanes": "queue", "backlog": "queue", "limit": "limits", "quota": "limits", "throttle": "limits", "lint": "validate", "format": "fmt", "create": "new", "init": "new", "scaffold": "new", "fsck": "db verify",
	"setup": "install", "remove": "uninstall", "check": "doctor", "diagnose": "doctor",
	"dump": "db export", "load": "db import", "migrate": "db migrate", "upgrade": "db migrate", "copy": "db copy", "database": "db", "tools": "tool", "manifest": "tool",
}

// noCommand handles a call without a command, or with an unknown one.
func noCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		root.SetOut(root.ErrOrStderr())
		if err := root.Help(); err != nil {
			return err
		}
		return silent{exitUsage}
	}
	return unknownCommand(root, args[0])
}

// unknownCommand is the error for a word that is not a command of cmd.
func unknownCommand(cmd *cobra.Command, word string) error {
	e := usage("unknown command %q", word)
	near := cmd.SuggestionsFor(word)
	if known, ok := otherWords[word]; ok && !cmd.HasParent() {
		near = []string{known}
	}
	if len(near) > 0 {
		return e.WithHint("Did you mean %s? See %s --help.", problem.OrList(near), cmd.CommandPath())
	}
	return e.WithHint("See %s --help.", cmd.CommandPath())
}

// exactly checks the number of arguments, naming them.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		want := problem.AndList(names)
		if len(names) == 0 {
			want = "no argument"
		}
		return usage("%s requires %s, found %s", cmd.CommandPath(), want, count(len(args), "argument")).
			WithHint("See %s --help.", cmd.CommandPath())
	}
}

// atMostOneID checks the arguments of a command for one run or all of them.
func atMostOneID(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return exactly("at most one ID")(cmd, args)
	}
	return nil
}

// group makes a command that only holds other commands.
func group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.SuggestionsMinimumDistance = 2
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(cmd, args[0])
		}
		return usage("%s requires a command", cmd.Name()).WithHint("See %s --help.", cmd.CommandPath())
	}
	cmd.AddCommand(commands...)
	return cmd
}

// exclusive rejects more than one of some flags.
func exclusive(names ...string) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		var given []string
		for _, name := range names {
			if cmd.Flags().Changed(name) {
				given = append(given, "--"+name)
			}
		}
		if len(given) > 1 {
			return usage("%s cannot be given together", problem.AndList(given)).WithHint("Choose one of them.")
		}
		return nil
	}
}
