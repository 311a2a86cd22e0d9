package cli

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/streamable"
)

// healthRequestTime bounds a request for the health of a worker, and an idle connection.
const healthRequestTime = 5 * time.Second

// serveHealth answers /healthz at an address: 200 while the database can be read and written. close ends it.
func serveHealth(address string, store history.Store) (bound net.Addr, stop func() error, err error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, nil, problem.New(problem.UsageError, "--health: %s cannot be listened on", address).WithCause(err).
			WithHint("Write host and port, as in 127.0.0.1:8771. Another program may use the port: port 0 takes a free one.")
	}
	mux := http.NewServeMux()
	mux.Handle(streamable.HealthPath, streamable.Health(func(ctx context.Context) error {
		if _, _, err := store.NextTimer(ctx); err != nil {
			return err
		}
		if prober, ok := history.As[history.Prober](store); ok {
			return prober.Probe(ctx)
		}
		return nil
	}))
	server := &http.Server{Handler: mux, ReadTimeout: healthRequestTime, WriteTimeout: healthRequestTime, IdleTimeout: healthRequestTime, MaxHeaderBytes: 8 << 10}
	go server.Serve(listener) //nolint:errcheck // it ends by Close
	return listener.Addr(), server.Close, nil
}
