package process

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// The messages of the lines that a process logs of what it records: each failed attempt (Warn), whoever performed it, and the end of each
// run (Info, or Error if it failed). They hold no inputs, outputs or states.
const (
	LogAttemptFailed = "attempt failed"
	LogRunEnded      = "run ended"
)

// maxLogged is how many bytes of the message of a failed attempt or run are logged.
const maxLogged = 500

// RunLog logs what a process has recorded. Lines are noted while a run is locked, and written by whoever dispatches work of the run.
type RunLog struct {
	Log *slog.Logger

	mu    sync.Mutex
	lines map[string][]slog.Record // by run
}

// Note notes the lines for records of a run that have just been appended.
func (l *RunLog) Note(id string, records []history.Record) {
	for i := range records {
		p := &records[i].Payload
		switch records[i].Name {
		case history.ActivityFailed:
			next := "none"
			if p.WillRetry {
				if next = "at once"; !p.RetryAt.IsZero() {
					next = p.RetryAt.Format(time.RFC3339Nano)
				}
			}
			l.note(id, slog.LevelWarn, LogAttemptFailed, "node_id", p.NodeID, "attempt", p.Attempt, "code", p.Code, "next_attempt", next,
				run.LogError, problem.Excerpt(p.Error, maxLogged))
		case history.ExecutionCompleted:
			l.note(id, slog.LevelInfo, LogRunEnded, "outcome", history.PhaseCompleted)
		case history.ExecutionCancelled:
			l.note(id, slog.LevelInfo, LogRunEnded, "outcome", history.PhaseCancelled)
		case history.ExecutionFailed:
			if i == len(records)-1 { // otherwise a join tolerated it
				l.note(id, slog.LevelError, LogRunEnded, "outcome", history.PhaseFailed, "code", p.Code, run.LogError, problem.Excerpt(p.Error, maxLogged))
			}
		}
	}
}

func (l *RunLog) note(id string, level slog.Level, message string, args ...any) {
	if !l.Log.Enabled(context.Background(), level) {
		return
	}
	line := slog.NewRecord(time.Now(), level, message, 0)
	line.Add(run.LogRun, id)
	line.Add(args...)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lines == nil {
		l.lines = map[string][]slog.Record{}
	}
	l.lines[id] = append(l.lines[id], line)
}

// Write writes the lines that have been noted for a run.
func (l *RunLog) Write(id string) {
	l.mu.Lock()
	lines := l.lines[id]
	delete(l.lines, id)
	l.mu.Unlock()
	for _, line := range lines {
		_ = l.Log.Handler().Handle(context.Background(), line) // as slog.Logger does
	}
}
