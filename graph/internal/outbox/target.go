package outbox

import (
	"maps"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// DefaultTimeout is the Timeout of a target without one.
const DefaultTimeout = 30 * time.Second

// MaxTargets is the largest number of targets that the start of a run can name.
const MaxTargets = 16

// Target configures a webhook target.
type Target struct {
	// Events selects events; nil means all.
	Events []history.RunEvent
	// All sends it the events of every root run, not only of runs that name it.
	All bool
	// Timeout is the longest attempt; 0 means DefaultTimeout.
	Timeout time.Duration
}

func (t *Target) wants(e history.RunEvent) bool {
	return t.Events == nil || slices.Contains(t.Events, e)
}

// Targets are the targets of a process by name.
type Targets map[string]Target

// Admit returns the targets of a new run: the given names, which must be configured, and the targets of all runs. The error is
// WEBHOOK_TARGET_UNKNOWN, or VALIDATION_ERROR for more than MaxTargets names.
func (ts Targets) Admit(names []string) ([]string, error) {
	if len(names) > MaxTargets {
		return nil, problem.New(problem.ValidationError, "a run can name at most %d webhook targets, found %d", MaxTargets, len(names))
	}
	known := slices.Sorted(maps.Keys(ts))
	var out []string
	for _, name := range names {
		if _, ok := ts[name]; !ok {
			return nil, unknown(name, known)
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return ts.withAll(out), nil
}

// unknown returns the error of a name that is not configured.
func unknown(name string, known []string) error {
	e := problem.New(problem.WebhookTargetUnknown, "webhook target %q not found", name)
	switch near := suggest.DidYouMean(name, known); {
	case near != "":
		return e.WithHint("D%s", near[1:])
	case len(known) > 0:
		return e.WithHint("Use %s.", problem.OrList(known))
	}
	return e.WithHint("No target is configured: omit the name, or set Options.Webhooks.")
}

// withAll adds the targets of all runs.
func (ts Targets) withAll(names []string) []string {
	if len(ts) == 0 {
		return names
	}
	for _, name := range slices.Sorted(maps.Keys(ts)) {
		if ts[name].All && !slices.Contains(names, name) {
			names = append(slices.Clip(names), name)
		}
	}
	return names
}
