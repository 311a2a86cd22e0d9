package main

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/buildstamp"
	"github.com/workflows-engine/workflows-engine/internal/calls"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/page"
)

// latePage serves the page as soon as the engine works, and 503 until then.
type latePage struct {
	works func(context.Context) error
	// start makes the page of an engine that works.
	start func() (*page.Server, error)

	mu    sync.Mutex
	asked time.Time
	shown *page.Server
}

// pageRetry is the shortest time between two attempts to open the engine for the page: any client may ask for it.
const pageRetry = time.Second

func (l *latePage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if server := l.server(r.Context()); server != nil {
		server.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Retry-After", "1")
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, "the server has no engine yet; its log has the reason", http.StatusServiceUnavailable)
}

// server returns the page, nil while the engine does not work.
func (l *latePage) server(ctx context.Context) *page.Server {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown == nil && time.Since(l.asked) >= pageRetry {
		if err := l.works(context.WithoutCancel(ctx)); err == nil {
			l.shown, _ = l.start() // its options are valid
		}
		l.asked = time.Now()
	}
	return l.shown
}

// page returns the options of the page of an open engine, without those about access.
func (e *engine) page(c *settings, executors config.Executors, storeFlags []string) page.Options {
	o := page.Options{
		Engine: e.Engine, Redaction: *c.Redaction(), Glossary: calls.CommandWords("", storeFlags...), Log: c.Log, Version: buildstamp.Read().String(),
	}
	folder := ""
	if e.catalog != nil {
		o.Catalog, folder = e.catalog, e.catalog.Folder()
	}
	o.Located = c.Located
	o.Settings = page.SettingsOf(c.StoreLine(), folder, executors.Routes(), c.AgentIDs(), c.AttemptLimits)
	return o
}
