package work

import (
	"context"
	"log/slog"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
)

// Env holds the dependencies shared by all parts of an engine's process.
type Env struct {
	Store history.Store
	// Now returns the store's time as this process knows it.
	Now func() time.Time
	Log *slog.Logger
	// Go runs a function in a goroutine of its own. Closing the engine waits for it.
	Go func(func())
	// Context ends when the engine closes.
	Context context.Context
}

// Detached returns ctx without its end and its deadline, for recording an event that has happened.
func Detached(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }
