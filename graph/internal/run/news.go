package run

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// The messages of log lines about recorded events: each failed attempt (Warn), and the end of each run (Info, or Error if it failed).
// They hold no inputs, outputs or states.
const (
	LogAttemptFailed = "attempt failed"
	LogRunEnded      = "run ended"
)

// maxLogged bounds the error message in a log line, in bytes.
const maxLogged = 500

// News is the part of a commit that observers get: its records (with Environment.KeepRecords) and its log lines.
type News struct {
	Records []history.Record
	Lines   []slog.Record
}

// newsQueue queues the news of commits in their order. It has its own lock, since work is dispatched after the run has been unlocked.
type newsQueue struct {
	mu      sync.Mutex
	queue   []News
	telling bool
}

// committed queues the news of a commit, and reports whether it keeps the records. The run is locked.
func (x *Run) committed(records []history.Record) (kept bool) {
	n := News{Lines: logLines(x.env.Log, x.id, records)}
	if kept = x.env.KeepRecords; kept {
		n.Records = records
	}
	if !kept && n.Lines == nil {
		return false
	}
	x.news.mu.Lock()
	defer x.news.mu.Unlock()
	x.news.queue = append(x.news.queue, n)
	return kept
}

// Tell calls tell with the news of the run's commits, in order, unless another goroutine is doing so: that one also takes the new ones.
// The run need not be locked, and tell may use it.
func (x *Run) Tell(tell func(News)) {
	n := &x.news
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.telling {
		return
	}
	n.telling = true
	for len(n.queue) > 0 {
		next := n.queue[0]
		n.queue = n.queue[1:]
		n.mu.Unlock()
		tell(next)
		n.mu.Lock()
	}
	n.queue, n.telling = nil, false
}

// logLines returns the log lines for appended records.
func logLines(log *slog.Logger, id string, records []history.Record) (lines []slog.Record) {
	add := func(level slog.Level, message string, args ...any) {
		if log.Enabled(context.Background(), level) {
			line := slog.NewRecord(time.Now(), level, message, 0)
			line.Add(LogRun, id)
			line.Add(args...)
			lines = append(lines, line)
		}
	}
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
			add(slog.LevelWarn, LogAttemptFailed, "node_id", p.NodeID, "attempt", p.Attempt, "code", p.Code, "next_attempt", next,
				LogError, problem.Excerpt(p.Error, maxLogged))
		case history.ExecutionCompleted:
			add(slog.LevelInfo, LogRunEnded, "outcome", history.PhaseCompleted)
		case history.ExecutionCancelled:
			add(slog.LevelInfo, LogRunEnded, "outcome", history.PhaseCancelled)
		case history.ExecutionFailed:
			if i == len(records)-1 { // otherwise a join tolerated the failure
				add(slog.LevelError, LogRunEnded, "outcome", history.PhaseFailed, "code", p.Code, LogError, problem.Excerpt(p.Error, maxLogged))
			}
		}
	}
	return lines
}
