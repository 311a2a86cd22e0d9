package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/buildstamp"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
	"github.com/workflows-engine/workflows-engine/internal/page"
)

// The exit statuses.
const (
	exitOK     = 0
	exitFailed = 1 // the server could not start, or its connection broke
	exitUsage  = 2 // wrong flags or settings
)

// run serves until stdin ends or ctx does, and returns the exit status. Only protocol messages go to stdout, or help and
// version when they are asked for.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c, err := parse(args, stdout)
	switch {
	case errors.Is(err, errAnswered):
		return exitOK
	case err == nil:
		err = enter(ctx, c, stdin, stdout, stderr)
	}
	if err == nil {
		return exitOK
	}
	if _, done := errors.AsType[said](err); !done {
		printError(stderr, err)
	}
	if errors.Is(err, problem.UsageError) {
		return exitUsage
	}
	return exitFailed
}

// enter opens the transport and serves clients.
func enter(ctx context.Context, c *settings, stdin io.Reader, stdout, stderr io.Writer) error {
	notes := newNotices(c.Config, stderr)
	open, err := c.open(stdin, stdout, notes)
	if err != nil {
		return notes.failed(err)
	}
	if c.trouble != nil {
		return serveTrouble(ctx, c, c.trouble, open, notes, stderr)
	}
	return serve(ctx, c, open, notes, stderr)
}

// serve opens store, executors and transport, and serves. Lines on stderr describe them (spec: cli-and-config, 3.2).
func serve(ctx context.Context, c *settings, open transport, notes notices, stderr io.Writer) (err error) {
	log := c.Logger(stderr)
	if stderr == io.Writer(os.Stderr) { // output of package log, used by net/http, becomes records too
		slog.SetDefault(log)
	}
	for _, warning := range c.Warnings {
		notes.warn("setting questionable", warning)
	}
	c.Log = log
	executors, err := c.Executors()
	if err != nil {
		return serveTrouble(ctx, c, err, open, notes, stderr)
	}
	defer func() { err = notes.failed(err) }()
	defer func() { err = errors.Join(err, executors.Close()) }()
	for _, line := range executors.Routing() {
		notes.say(line)
	}
	// Without executors here, the host performs activities, unless workers do.
	mode := machine.HostMediated
	if executors.Configured() || c.work == graph.WorkNone {
		mode = machine.InProcess
	}
	ctx, end := watchParent(ctx, c, notes)
	defer end()
	// The handshake does not wait for the disk: the database is opened meanwhile, and calls wait for it.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	e := engine{ready: make(chan struct{}), budget: c.MemoryBudget(), catalog: c.Catalog(c.WorkflowDir, log)}
	o := newOpener(func() error {
		if err := e.open(ctx, c, executors, mode); err != nil {
			return err
		}
		notes.say(c.StoreLine())
		if e.note != "" {
			notes.say(e.note)
		}
		notes.say("ready, default mode " + string(mode))
		close(e.ready)
		return nil
	}, notes.report)
	tried := make(chan struct{})
	go func() {
		defer close(tried)
		err := o.try(ctx)
		close(o.tried)
		if err != nil {
			return
		}
		if lacking := e.lacking(ctx, mode); lacking != "" && c.work != graph.WorkNone {
			notes.warn("executors missing", lacking)
		}
	}()
	lost := make(chan error, 1)
	go func() {
		defer close(lost)
		if c.clients.transport != transportHTTP {
			return // a host shows the errors of calls, and does not start the server again
		}
		select {
		case <-e.ready:
		case <-ctx.Done():
			return
		}
		usable, end := config.WhileUsable(ctx, e.store)
		<-usable.Done()
		if err := end(); err != nil {
			lost <- err
			stop()
		}
	}()
	var storeFlags []string
	if c.StoreGiven() { // a terminal may not have the flags and the environment of the server
		storeFlags = c.StoreFlags()
	}
	server := mcpserver.New(&e, mcpserver.Options{
		Version: buildVersion(), DefaultMode: mode, Definitions: &e, Ready: e.ready, Trouble: o.try, Known: o.known, Logger: log,
		Redaction: c.AnswerRedaction(), Admit: e.budget.Admit, AnswerBytes: c.answerBytes, Tools: c.tools,
		Agents: agentsOf(c), Catalog: e.catalog, ExposeWorkflows: c.exposeWorkflows,
		Elicit: c.Elicit, Key: e.key, StoreFlags: storeFlags, WaitLimit: cmp.Or(c.WaitLimit, -1), Page: c.pageOrigin,
	})
	defer e.watchCatalog(ctx, c.exposeWorkflows)()
	err = open(ctx, server, log, func(ctx context.Context) error {
		if err := o.try(ctx); err != nil {
			return err
		}
		return e.healthy(ctx)
	}, func() page.Options { return e.page(c, executors, storeFlags) })
	<-tried
	stop()
	if failed := cmp.Or(o.end(), <-lost); failed != nil {
		err = failed
	}
	return errors.Join(err, e.close())
}

// agentsOf returns the configured agents, nil without any.
func agentsOf(c *settings) (agents []mcpserver.Agent) {
	skills := c.AgentSkills()
	for _, name := range c.AgentNames() {
		configured := c.Agents.Agents[name]
		listed := mcpserver.Agent{Name: name, Description: configured.Description, Skills: skills[name]}
		if configured.Output != nil {
			listed.Output = configured.Output.Schema
		}
		agents = append(agents, listed)
	}
	return agents
}

// watchParent ends the context when the process that started the server has ended, unless clients connect from elsewhere. end reports
// this reason.
func watchParent(ctx context.Context, c *settings, notes notices) (watched context.Context, end func()) {
	if c.outliveParent || c.clients.transport == transportHTTP {
		return ctx, func() {}
	}
	ctx = withParent(ctx, startedBy, os.Getppid, parentLook)
	return ctx, func() {
		if context.Cause(ctx) == errOrphaned {
			notes.say(errOrphaned.Error())
		}
	}
}

// buildVersion is the server's version in the handshake.
func buildVersion() string { return buildstamp.Read().Version }

// printError prints the error that ended the server: code, message and hint.
func printError(w io.Writer, err error) {
	e, ok := problem.As(err)
	if !ok {
		fmt.Fprintf(w, "workflows-engine-mcp: %v\n", err)
		return
	}
	fmt.Fprintf(w, "workflows-engine-mcp: %s: %v\n", e.Code, err)
	for _, f := range e.Findings {
		if !e.Says(f) {
			fmt.Fprintf(w, "  %s\n", strings.TrimSpace(f.At.String()+" "+f.Message))
		}
		if f.Hint != "" {
			fmt.Fprintf(w, "    %s\n", f.Hint)
		}
	}
	if e.Hint != "" {
		fmt.Fprintf(w, "  %s\n", e.Hint)
	}
}
