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

func newWorker(a *app) *cobra.Command {
	var folder, health string
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run a worker",
		Long: `Drive the runs of a database until stopped: fire timers, retries and deadlines when they are due, and claim orphaned in-process
runs. For runs that wait for a host, a person or a signal, the worker only enforces the deadlines.

Any number of workers, servers and commands may share a database: each process has a lease, and each run has at most one owner. A
worker claims only runs that it can perform, so start it with the flags and variables of the runs (--profile, --mcp-config,
--workflow-dir, WORKFLOW_ENGINE_LLM_CONFIG, …). Other runs wait for another worker.

The worker logs on standard error, from level info (--log-level, --log-format json). Under systemd it reports when it is ready and when
it stops, and answers the watchdog while the database can be read; docs/operations.md has a unit file. To recover runs once, use
recover.

SIGTERM and Ctrl-C stop it in order: executors are cancelled, their last outcomes are recorded, and the lease is released, so that
another process can continue the runs within about a second. With WORKFLOW_ENGINE_DRAIN (as in 20s) executors have this time to end
before they are cancelled; no attempt starts meanwhile. A second signal ends it immediately.

Exit status: 0 stopped by a signal; 1 the database cannot be opened or was deleted, moved or restored meanwhile, or an executor did not
stop within 10 seconds; 2 wrong usage or settings.`,
		Example: `  workflows-engine worker --db /var/lib/workflows/runs.db --mcp-config mcp.json
  workflows-engine worker --profile demo --log-format json`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.worker(cmd.Context(), folder, health) },
	}
	config.RegisterWorkflowDir(cmd.Flags(), &folder, "none")
	cmd.Flags().StringVar(&health, "health", "", "serve GET /healthz at this `address`, as in 127.0.0.1:8771: 200 if the database can be read and written, else 503")
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

// worker looks after all runs until ctx ends, which is how it is meant to end.
func (a *app) worker(ctx context.Context, folder, health string) (err error) {
	// How to log is known before the other settings are, so that their refusal is logged too.
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
			err = logged(log, err) // who collects records would not see a line for people
		}
	}()
	c, err := a.flags.Load(a.env)
	if err != nil {
		return err
	}
	if c.Store == config.Memory {
		return usage("a worker needs a database, and --store is memory").WithHint("Name a file with --db.")
	}
	s, err := a.open(ctx, sessionOptions{
		store: createStore, folder: folder, background: true, log: log,
		onRecord: func(e graph.RecordEvent) { logTimers(log, e) },
	})
	if err != nil && ctx.Err() != nil {
		log.Info("worker stopped") // before it was ready
		return nil
	}
	if err != nil {
		return err
	}
	if health != "" {
		at, stop, err := serveHealth(health, s.store)
		if err != nil {
			return firstError(err, s.close())
		}
		defer stop() //nolint:errcheck // nothing depends on it
		log.Info("worker answers", "url", "http://"+at.String()+httpguard.HealthPath)
	}
	manager := sdnotify.New(a.env.Variable, os.Getpid())
	tell(log, manager.Ready(s.config.StoreLine()))
	log.Info("worker ready", logStore, s.config.StorePath, slog.GroupAttrs(logRouting, s.executors.Routes()...))
	if lacking := config.Lacking(ctx, s.engine, s.workflows); lacking != "" {
		log.Warn("definitions cannot be performed", logWarning, lacking)
	}
	lost := a.stay(ctx, s, manager, log)
	tell(log, manager.Stopping())
	log.Info("worker stopping")
	if err := firstError(lost, s.close()); err != nil {
		return err
	}
	log.Info("worker stopped")
	return nil
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

// lookAtDatabase is how often a worker looks whether its database is still there.
const lookAtDatabase = 2 * time.Second

// stay waits for the end of ctx, or of the database: it returns the error of one that was replaced. The watchdog gets its
// answer only while the database can be read: a worker that has lost it is better started again.
func (a *app) stay(ctx context.Context, s *session, manager sdnotify.Notifier, log *slog.Logger) error {
	every := lookAtDatabase
	if manager.Watchdog > 0 {
		every = min(every, manager.Watchdog/2)
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		switch _, _, err := s.store.NextTimer(ctx); {
		case ctx.Err() != nil:
			return nil // stopped; that the read was cancelled says nothing of the database
		case errors.Is(err, problem.StoreReplaced):
			return err
		case err != nil:
			log.Error("database not readable", logError, err)
		case manager.Watchdog > 0:
			tell(log, manager.Alive())
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// tell logs a failed notification of the service manager. Whether it matters is the manager's to decide.
func tell(log *slog.Logger, err error) {
	if err != nil {
		log.Warn("service manager not notified", logError, err)
	}
}

// logTimers logs the timers that a worker has fired. The engine logs failed attempts and ends, everything else is in the history.
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
		if _, _, err := store.NextTimer(ctx); err != nil {
			return err
		}
		if prober, ok := history.As[history.Prober](store); ok {
			return prober.Probe(ctx)
		}
		return nil
	}
}
