package cli

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/httpguard"
	"github.com/workflows-engine/workflows-engine/internal/sdnotify"
)

type workerOptions struct {
	folder, health, page, tokenFile string
	hosts                           []string
}

func newWorker(a *app) *cobra.Command {
	var o workerOptions
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run a worker",
		Long: `Drive the runs of a database until stopped: fire timers, retries and deadlines when they are due, and claim orphaned in-process
runs. For runs that wait for a host, a person or a signal, the worker only enforces the deadlines.

Any number of workers, servers and commands may share a database: each process has a lease, and each run has at most one owner. A
worker claims only runs that it can perform, so start it with the flags and variables of the runs (--profile, --mcp-config,
--workflow-dir, WORKFLOW_ENGINE_LLM_CONFIG, …). Other runs wait for another worker. --capacity limits its attempts in flight,
--queues the queues that it serves; see workers, queue and limits.

The worker logs on standard error, from level info (--log-level, --log-format json). Under systemd it reports when it is ready and when
it stops, and answers the watchdog while the database can be read; docs/deploy.md has a unit file. To recover runs once, use
recover.

With --page the worker also serves the web page of ui at an address. A person opens it with a token of --token-file, whose name is
the author of answers; without tokens with the link in the log, and on this machine alone.

SIGTERM and Ctrl-C stop it in order: executors are cancelled, their last outcomes are recorded, and the lease is released, so that
another process can continue the runs within about a second. With WORKFLOW_ENGINE_DRAIN (as in 20s) executors have this time to end
before they are cancelled; no attempt starts meanwhile. A second signal ends it immediately.

Exit status: 0 stopped by a signal; 1 the database cannot be opened, or was deleted, moved, restored or migrated by a newer release
meanwhile, or an executor did not stop within 10 seconds; 2 wrong usage or settings.`,
		Example: `  workflows-engine worker --db /var/lib/workflows/runs.db --mcp-config mcp.json
  workflows-engine worker --queues gpu --capacity 2
  workflows-engine worker --profile demo --log-format json`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.worker(cmd.Context(), o) },
	}
	f := cmd.Flags()
	config.RegisterWorkflowDir(f, &o.folder, "none")
	f.StringVar(&o.health, "health", "", "serve GET /healthz at this `address`, as in 127.0.0.1:8771: 200 if the database can be read and written, else 503")
	f.StringVar(&o.page, "page", "", "serve the web page at this `address`, as in 127.0.0.1:8773, beside GET /healthz")
	f.StringVar(&o.tokenFile, "token-file", "", "read the tokens of the page from this `file` (or one from $WORKFLOW_ENGINE_HTTP_TOKEN); required beyond this machine")
	f.StringSliceVar(&o.hosts, "allow-host", nil, "further host `names` that browsers may use for the page, besides localhost and addresses")
	return cmd
}

// The keys of the worker's log records.
const (
	logStore   = "store"
	logRouting = "routing"
	logRunID   = "execution_id"
	logNodeID  = "node_id"
	logError   = "error"
	logWarning = "warning"
	logCode    = "code"
	logHint    = "hint"
)

// worker drives all runs until ctx ends. That is its normal end.
func (a *app) worker(ctx context.Context, o workerOptions) (err error) {
	if o.page == "" && (o.tokenFile != "" || len(o.hosts) > 0) {
		return usage("--token-file and --allow-host have no effect without --page").WithHint("Add --page with an address, as in 127.0.0.1:8773, or leave them out.")
	}
	if err := httpguard.CheckNames(o.hosts, nil); err != nil {
		return err
	}
	// The log settings are read first, so that errors in other settings are logged, too.
	form, err := a.flags.LoadLog(a.env)
	if err != nil {
		return err
	}
	if !form.LogLevelGiven {
		form.LogLevel = slog.LevelInfo
	}
	log := a.logger(form)
	defer func() {
		if err != nil && form.LogFormat == config.LogJSON {
			err = logged(log, err) // log collectors would miss a line for people
		}
	}()
	c, err := a.flags.Load(a.env)
	if err != nil {
		return err
	}
	if c.Store == config.Memory {
		return usage("a worker requires a database, but --store is memory").WithHint("Name a file with --db, or a server with --store-url.")
	}
	access := httpguard.Access{Hosts: o.hosts}
	var listener net.Listener
	s, err := a.open(ctx, sessionOptions{
		store: createStore, folder: o.folder, work: graph.WorkAll, log: log,
		onRecord: func(e graph.RecordEvent) { logTimers(log, e) },
		configured: func(c *config.Config) (err error) {
			if o.page == "" {
				return nil
			}
			if access.Tokens, err = c.HTTPTokens(o.tokenFile); err == nil {
				listener, err = httpguard.Listen("page", o.page, !access.Tokens.None())
			}
			return err
		},
	})
	if err != nil && listener != nil {
		_ = listener.Close()
	}
	if err != nil && ctx.Err() != nil {
		log.Info("worker stopped") // before it was ready
		return nil
	}
	if err != nil {
		return err
	}
	stopPage := func() {}
	if listener != nil {
		if stopPage, err = s.servePage(ctx, listener, access, log); err != nil {
			return firstError(err, s.close())
		}
	}
	if o.health != "" {
		at, stop, err := serveHealth(o.health, s.store)
		if err != nil {
			stopPage()
			return firstError(err, s.close())
		}
		defer stop() //nolint:errcheck // nothing depends on it
		log.Info("worker answers", "url", "http://"+at.String()+httpguard.HealthPath)
	}
	manager := sdnotify.New(a.env.Variable, os.Getpid())
	logNotify(log, manager.Ready(s.config.StoreLine()))
	log.Info("worker ready", logStore, s.config.Location(), slog.GroupAttrs(logRouting, s.executors.Routes()...))
	if lacking := config.Lacking(ctx, s.engine, s.workflows); lacking != "" {
		log.Warn("executors missing", logWarning, lacking)
	}
	lost := a.stay(ctx, s, manager, log)
	logNotify(log, manager.Stopping())
	log.Info("worker stopping")
	stopPage()
	if err := firstError(lost, s.close()); err != nil {
		return err
	}
	log.Info("worker stopped")
	return nil
}

// servePage serves the page at a listener. stop ends it.
func (s *session) servePage(ctx context.Context, l net.Listener, access httpguard.Access, log *slog.Logger) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	server, at, withdraw, err := s.page(ctx, l, access)
	if err != nil {
		cancel()
		return nil, firstError(err, l.Close())
	}
	log.Info("worker serves page", "url", at)
	if risk, remedy := httpguard.Warning(l, !access.Tokens.None()); risk != "" && !access.Tokens.None() { // a link is a token
		log.Warn(risk, logHint, remedy)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := httpguard.Serve(ctx, l, server.Beside(httpguard.Health(healthOf(s.store)), httpguard.HealthPath), log); err != nil {
			log.Error("page failed", logError, err)
		}
	}()
	return func() {
		withdraw()
		cancel()
		<-ended
	}, nil
}

// logged logs the error that ended a worker, and returns one that is not printed again.
func logged(log *slog.Logger, err error) error {
	attributes := []any{logError, err}
	if e, ok := problem.As(err); ok {
		attributes = append(attributes, logCode, string(e.Code), logHint, commandHint(e.Hint, e.At.ExecutionID))
	}
	log.Error("worker failed", attributes...)
	return silent{status(err)}
}

// stay waits until ctx ends, or returns the error of a database that the worker has lost; see config.Lost. The watchdog gets its
// notification only while the database can be read: a worker that has lost it should be restarted.
func (a *app) stay(ctx context.Context, s *session, manager sdnotify.Notifier, log *slog.Logger) error {
	every := config.LookEvery
	if manager.Watchdog > 0 {
		every = min(every, manager.Watchdog/2)
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		switch _, err := s.store.Overview(ctx, ""); {
		case ctx.Err() != nil:
			return nil // stopped: the read was cancelled
		case config.Lost(err):
			return err
		case errors.Is(err, problem.StoreUnavailable): // the engine logs it
		case err != nil:
			log.Error("database read failed", logError, err)
		case manager.Watchdog > 0:
			logNotify(log, manager.Alive())
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// logNotify logs a failed notification of the service manager.
func logNotify(log *slog.Logger, err error) {
	if err != nil {
		log.Warn("service manager not notified", logError, err)
	}
}

// logTimers logs the timers that a worker fired. The engine logs failed attempts and ends; the history has everything else.
func logTimers(log *slog.Logger, e graph.RecordEvent) {
	for i := range e.Records {
		if r := &e.Records[i]; r.Name == history.TimerFired {
			log.Info("timer fired", logRunID, e.ExecutionID, logNodeID, r.Payload.NodeID)
		}
	}
}

// healthRequestTime bounds a request for the health of a worker, and an idle connection.
const healthRequestTime = 5 * time.Second

// serveHealth answers /healthz at an address: 200 while the database can be read and written. close ends it.
func serveHealth(address string, store history.Store) (bound net.Addr, stop func() error, err error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, nil, problem.New(problem.UsageError, "cannot listen on %s for --health", address).WithCause(err).
			WithHint("Write host and port, as in 127.0.0.1:8771. If another program uses the port, port 0 selects a free one.")
	}
	mux := http.NewServeMux()
	mux.Handle(httpguard.HealthPath, httpguard.Health(healthOf(store)))
	server := &http.Server{Handler: mux, ReadTimeout: healthRequestTime, WriteTimeout: healthRequestTime, IdleTimeout: healthRequestTime, MaxHeaderBytes: 8 << 10}
	go server.Serve(listener) //nolint:errcheck // it ends by Close
	return listener.Addr(), server.Close, nil
}

// healthOf returns a function that asks whether a database can be read and written.
func healthOf(store history.Store) func(context.Context) error {
	return func(ctx context.Context) error {
		if _, err := store.Overview(ctx, ""); err != nil {
			return err
		}
		if prober, ok := history.As[history.Prober](store); ok {
			return prober.Probe(ctx)
		}
		return nil
	}
}
