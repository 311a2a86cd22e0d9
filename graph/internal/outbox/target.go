package outbox

import (
	"maps"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// DefaultTimeout bounds an attempt to a target that does not say otherwise.
const DefaultTimeout = 30 * time.Second

// MaxTargets is how many targets the start of a run may name.
const MaxTargets = 16

// Target is somebody who is notified of runs.
type Target struct {
	// Events are those that it wants; nil means all.
	Events []history.RunEvent
	// All notifies it of every root run, whether the start names it or not.
	All bool
	// Timeout bounds an attempt; 0 means DefaultTimeout.
	Timeout time.Duration
}

func (t *Target) wants(e history.RunEvent) bool {
	return t.Events == nil || slices.Contains(t.Events, e)
}

// Targets are the targets of a process by the names under which runs name them.
type Targets map[string]Target

// Admit returns the names that a new run keeps: those given, of which each must be known, and those of targets of all runs.
// WEBHOOK_TARGET_UNKNOWN, or VALIDATION_ERROR for too many.
func (ts Targets) Admit(names []string) ([]string, error) {
	if len(names) > MaxTargets {
		return nil, problem.New(problem.ValidationError, "a run notifies at most %d targets, found %d", MaxTargets, len(names))
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

// unknown refuses the name of a target that is none of those known.
func unknown(name string, known []string) error {
	e := problem.New(problem.WebhookTargetUnknown, "there is no webhook target %q", name)
	switch near := suggest.DidYouMean(name, known); {
	case near != "":
		return e.WithHint("D%s", near[1:])
	case len(known) > 0:
		return e.WithHint("There is %s.", problem.AndList(known))
	}
	return e.WithHint("None is configured here: name none, or set Options.Webhooks.")
}

// withAll adds the names of targets of all runs.
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
