package graph

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/outbox"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Defaults of Options.
const (
	defaultMaxRecords       = 1_000_000
	defaultMaxBytes         = 1 << 30
	defaultMaxPending       = 10_000
	defaultMaxDepth         = 4
	defaultCapacity         = 100
	defaultMaxQueued        = history.MaxCounted
	defaultMaxDocumentBytes = 2 << 20
	defaultWaitLimit        = 20 * time.Second
	defaultLeaseTTL         = 30 * time.Second
	defaultCloseLimit       = 10 * time.Second
)

// checkAttempts rejects attempts of node types other than activities and delegations.
func checkAttempts(attempts map[string]int) error {
	for _, nodeType := range slices.Sorted(maps.Keys(attempts)) {
		t := definition.Type(nodeType)
		if n := attempts[nodeType]; n < 1 || !t.Info().Attempted() {
			return problem.New(problem.UsageError, "invalid option Attempts: %d attempts of %q", n, nodeType).
				WithHint("Use step, llm_call, tool_call or agent_delegate, and at least one attempt.")
		}
	}
	return nil
}

// withDefaults checks the options and sets defaults.
func (o Options) withDefaults() (Options, error) {
	if err := cmp.Or(admit.Mode(o.DefaultMode, problem.UsageError), admit.Branches(o.Branches, problem.UsageError), work.CheckLimits(workLimits(o.Limits)), run.TreeLimits(o.Tree).Check(), checkAttempts(o.Attempts),
		admit.NotNegative("MaxVisits", o.MaxVisits), admit.NotNegative("MaxRecords", o.MaxRecords), admit.NotNegative("MaxBytes", o.MaxBytes),
		admit.NotNegative("MaxPending", o.MaxPending), admit.NotNegative("MaxDepth", o.MaxDepth), admit.NotNegative("MaxDocumentBytes", o.MaxDocumentBytes),
		admit.NotNegative("LeaseTTL", o.LeaseTTL), admit.NotNegative("MinHostTimeout", o.MinHostTimeout), admit.NotNegative("Drain", o.Drain), admit.NotNegative("CloseLimit", o.CloseLimit),
		admit.NotNegative("DeliverLimit", o.DeliverLimit)); err != nil {
		return o, err
	}
	switch {
	case o.ReadOnly && o.Work != "":
		return o, problem.New(problem.UsageError, "option Work cannot be combined with ReadOnly").
			WithHint("A Runner that never writes performs no runs. Omit one of the two.")
	case o.Work != "" && o.Work != WorkOwn && o.Work != WorkAll && o.Work != WorkNone:
		return o, problem.New(problem.UsageError, "invalid option Work: %q", o.Work).WithHint("Use own, all or none.")
	case o.MaxQueued > defaultMaxQueued:
		return o, problem.New(problem.UsageError, "invalid option MaxQueued: %d", o.MaxQueued).
			WithHint("Use at most %d, or a negative value for no limit.", defaultMaxQueued)
	}
	for _, q := range o.Queues {
		if err := admit.Queue(q, problem.UsageError); err != nil {
			return o, err
		}
	}
	o.Work = cmp.Or(o.Work, WorkOwn)
	o.Capacity = cmp.Or(o.Capacity, defaultCapacity)
	o.MaxQueued = cmp.Or(o.MaxQueued, defaultMaxQueued)
	o.DefaultMode = cmp.Or(o.DefaultMode, machine.InProcess)
	o.Branches = cmp.Or(o.Branches, machine.Concurrent)
	o.MaxVisits = cmp.Or(o.MaxVisits, machine.DefaultMaxVisits)
	o.MaxRecords = cmp.Or(o.MaxRecords, defaultMaxRecords)
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultMaxBytes)
	o.MaxPending = cmp.Or(o.MaxPending, defaultMaxPending)
	o.MaxDepth = cmp.Or(o.MaxDepth, defaultMaxDepth)
	one := run.TreeLimits{Visits: int64(o.MaxVisits), Records: o.MaxRecords, Bytes: o.MaxBytes, Pending: int64(o.MaxPending)}
	o.Tree = TreeLimits(run.TreeLimits(o.Tree).WithDefaults(one))
	o.MaxDocumentBytes = cmp.Or(o.MaxDocumentBytes, defaultMaxDocumentBytes)
	o.WaitLimit = max(0, cmp.Or(o.WaitLimit, defaultWaitLimit))
	o.LeaseTTL = cmp.Or(o.LeaseTTL, defaultLeaseTTL)
	o.CloseLimit = cmp.Or(o.CloseLimit, defaultCloseLimit)
	if o.NewID == nil {
		o.NewID = newID
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

func workLimits(limits []Limit) []work.Limit {
	ls := make([]work.Limit, len(limits))
	for i, l := range limits {
		ls[i] = work.Limit(l)
	}
	return ls
}

func targets(webhooks map[string]Webhook) outbox.Targets {
	ts := make(outbox.Targets, len(webhooks))
	for name, w := range webhooks {
		ts[name] = outbox.Target(w)
	}
	return ts
}

// newID returns a UUID that starts with the time: rows of new runs are then appended at the end of a store's index, at half the cost of
// inserting in the middle.
func newID() string { return uuid.Must(uuid.NewV7()).String() }
