package cli

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/doctor"
)

// Backend makes the commands another program, whose runs are in no store of this one and are performed by its workers. Commands that need a
// store answer UNSUPPORTED_BY_BACKEND.
type Backend struct {
	// Program is the name of the program, in its help and in printed commands. Short and Long describe it.
	Program, Short, Long string
	// Texts are the descriptions of commands that differ, by name as in overBackend: the short one, the long one and, if there is a third one, the
	// examples.
	Texts map[string][]string
	// Register adds the flags that lead to the runs.
	Register func(*pflag.FlagSet) config.Place
	// Engine connects to the runs. The engine is also a graph.Peeker, and has a method Definition.
	Engine func(context.Context, *config.Config, graph.Options) (graph.Engine, error)
	// Diagnose adds the findings of the command doctor about the place of the runs.
	Diagnose func(context.Context, *config.Config, *doctor.Report)
	// Commands returns commands that replace those of the same names, or come in addition.
	Commands func(*config.Flags) []*cobra.Command
}

// MainOver is Main for a Backend.
func MainOver(ctx context.Context, b *Backend, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	program = b.Program
	return start(ctx, b, args, stdin, stdout, stderr)
}

// overBackend are the commands that a Backend has, besides its own. A command below another one has its name, too.
var overBackend = []string{
	"validate", "graph", "test", "catalog", "workflows", "run", "serve", "ui", "watch", "status", "list", "history", "resume", "signal", "submit", "cancel", "doctor",
	"db export", "db import", "new", "fmt", "guide", "explain", "tool", "mcp-manifest", "step-commands", "version", "options", "exit-status", "help", "completion",
}

// adapt makes the root command that of the Backend.
func (b *Backend) adapt(a *app, root *cobra.Command) {
	own := b.Commands(a.flags)
	for _, cmd := range own {
		cmd.GroupID = groupOperate
	}
	for _, cmd := range root.Commands() {
		if slices.ContainsFunc(own, func(o *cobra.Command) bool { return o.Name() == cmd.Name() }) {
			root.RemoveCommand(cmd)
		} else {
			limitTo(root, cmd, "")
		}
	}
	root.AddCommand(own...)
	b.describe(root, "")
	rename(root)
	root.Use, root.Short, root.Long = b.Program, b.Short, b.Long
}

// limitTo replaces a command that is not in overBackend, or those below it that are not. above is the name of its parent below the root.
func limitTo(parent, cmd *cobra.Command, above string) {
	name := strings.TrimSpace(above + " " + cmd.Name())
	switch {
	case slices.Contains(overBackend, name):
	case slices.ContainsFunc(overBackend, func(n string) bool { return strings.HasPrefix(n, name+" ") }):
		for _, below := range cmd.Commands() {
			limitTo(cmd, below, name)
		}
	default:
		parent.RemoveCommand(cmd)
		parent.AddCommand(unsupportedCommand(name))
	}
}

// describe sets the descriptions of the commands below one, whose name below the root is above.
func (b *Backend) describe(parent *cobra.Command, above string) {
	for _, cmd := range parent.Commands() {
		name := strings.TrimSpace(above + " " + cmd.Name())
		if t, ok := b.Texts[name]; ok {
			cmd.Short, cmd.Long = t[0], t[1]
			if len(t) > 2 {
				cmd.Example = t[2]
			}
		}
		b.describe(cmd, name)
	}
}

// rename puts the name of the program into help texts.
func rename(cmd *cobra.Command) {
	cmd.Long, cmd.Example = renamed(cmd.Long), renamed(cmd.Example)
	for _, below := range cmd.Commands() {
		rename(below)
	}
}

// renamed puts the name of the program into the commands of a text.
func renamed(text string) string {
	if program == engineProgram {
		return text
	}
	return strings.ReplaceAll(text, engineProgram+" ", program+" ")
}

// unsupportedCommand stands for a command that needs a store.
func unsupportedCommand(name string) *cobra.Command {
	return &cobra.Command{
		Use: name[strings.LastIndex(name, " ")+1:], Hidden: true, DisableFlagParsing: true, Args: cobra.ArbitraryArgs,
		RunE: func(*cobra.Command, []string) error {
			return problem.New(problem.Unsupported, "%s does not support the command %s", program, name).
				WithHint("Nothing was changed. See %s --help for its commands.", program)
		},
	}
}

// connect makes the engine of a session over a Backend, with a store that reads through it.
func (a *app) connect(ctx context.Context, s *session, o graph.Options) (err error) {
	o.Activities, o.Delegates = nil, nil // workers perform the runs
	if s.engine, err = a.backend.Engine(ctx, s.config, o); err != nil {
		return err
	}
	s.store, s.elsewhere = &throughEngine{Store: historymem.New(), engine: s.engine}, true
	s.driver = follows{s.engine, a.now}
	return nil
}

// throughEngine reads runs through an engine. Everything else is that of an empty store: runs at another place have no owners and no timers here.
type throughEngine struct {
	history.Store
	engine graph.Engine
}

func (t *throughEngine) Execution(ctx context.Context, id string) (history.Execution, error) {
	peeker, err := graph.Need[graph.Peeker](t.engine, "reading a run")
	if err != nil {
		return history.Execution{}, err
	}
	return peeker.Peek(ctx, id)
}

func (t *throughEngine) Read(ctx context.Context, id string, from int64, limit int) ([]history.Record, error) {
	return t.engine.History(ctx, graph.HistoryRequest{ExecutionID: id, FromSeq: from, Limit: limit, Reveal: true})
}

// Overview implements history.Store for checks of the health: it is empty, and fails if the runs cannot be reached.
func (t *throughEngine) Overview(ctx context.Context, _ string) (history.Overview, error) {
	_, err := t.engine.List(ctx, history.ListQuery{Limit: 1})
	return history.Overview{}, err
}

func (t *throughEngine) List(ctx context.Context, q history.ListQuery) (history.ListPage, error) {
	return t.engine.List(ctx, q)
}

func (t *throughEngine) Definition(ctx context.Context, hash string) (history.StoredDefinition, error) {
	definitions, err := graph.Need[interface {
		Definition(context.Context, string) (*definition.Document, error)
	}](t.engine, "reading a definition")
	if err != nil {
		return history.StoredDefinition{}, err
	}
	d, err := definitions.Definition(ctx, hash)
	if err != nil {
		return history.StoredDefinition{}, err
	}
	return history.StoredDefinition{Hash: hash, Name: d.Name(), Text: d.Canonical()}, nil
}

// Definitions reads definitions through the engine of a Backend, for servers.
func Definitions(e graph.Engine) interface {
	Definition(context.Context, string) (history.StoredDefinition, error)
} {
	return &throughEngine{engine: e}
}

// follows waits for runs that workers perform.
type follows struct {
	engine graph.Engine
	now    func() time.Time
}

var _ graph.Recoverer = follows{}

// Drive waits until a run has ended, waits for input (see graph.DriveRequest.FinishBranches), or the limit passes.
func (f follows) Drive(ctx context.Context, req graph.DriveRequest) (*view.Run, error) {
	begun, asked := f.now(), graph.StatusRequest{ExecutionID: req.ExecutionID}
	for {
		left := req.Wait.Limit - f.now().Sub(begun)
		wait := req.Wait
		wait.Limit = graph.WaitAtMost(max(0, min(left, statusInterval))).Limit
		asked.Wait = &wait
		run, err := f.engine.Status(ctx, asked)
		if err != nil || run.Status.Terminal() || left <= 0 || ctx.Err() != nil {
			return run, err
		}
		var by time.Time
		if !req.StopAtTimer {
			by = f.now().Add(left)
		}
		if awaited(run) != nil && !(req.FinishBranches && slices.ContainsFunc(run.Pending, func(p view.Pending) bool { return p.Proceeds(by) })) {
			return run, nil
		}
		asked.Since = run.Seq
	}
}

// Recover implements graph.Recoverer. Workers need no help.
func (follows) Recover(context.Context, graph.RecoverRequest) (*graph.RecoverResult, error) {
	return nil, problem.New(problem.Unsupported, "%s recovers no runs", program)
}

// Survey implements graph.Recoverer.
func (f follows) Survey(ctx context.Context, _ ...string) (*graph.RecoverResult, error) {
	return f.Recover(ctx, graph.RecoverRequest{})
}
