package activities

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// StepRegistry holds the handlers of step nodes by name, by convention a URN, and is the Executor that runs them. It
// is safe for concurrent use; handlers may be added while runs are driven, unless it is frozen. The zero value is empty
// and ready; it must not be copied.
type StepRegistry struct {
	mu       sync.RWMutex
	handlers map[string]entry
	frozen   bool
}

type entry struct {
	execute ExecutorFunc
	// immediate is set for fixed outputs, which are answered at once.
	immediate bool
}

// NewStepRegistry makes an empty registry.
func NewStepRegistry() *StepRegistry {
	return &StepRegistry{}
}

// Register makes a handler known under a name, which is trimmed. Registering a name again replaces its handler. A
// blank name, a nil handler and a frozen registry are errors with code STEP_CONFIG_INVALID.
func (r *StepRegistry) Register(name string, h StepHandler) error {
	if h == nil {
		return problem.New(problem.StepConfigInvalid, "step handler %q is nil", name)
	}
	return r.add(name, entry{execute: h.execute})
}

// RegisterExecutor is Register for an executor, whose results may have usage. Its errors are returned unchanged.
func (r *StepRegistry) RegisterExecutor(name string, x Executor) error {
	if x == nil {
		return problem.New(problem.StepConfigInvalid, "the executor of step handler %q is nil", name)
	}
	return r.add(name, entry{execute: x.Execute})
}

func (r *StepRegistry) add(name string, e entry) error {
	name = strings.TrimSpace(name)
	if name == "" {
		return problem.New(problem.StepConfigInvalid, "a step handler needs a name").
			WithHint("use a URN such as \"urn:example:step:resize\"")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.frozen {
		return problem.New(problem.StepConfigInvalid, "cannot register step handler %q: the registry is frozen", name)
	}
	if r.handlers == nil {
		r.handlers = map[string]entry{}
	}
	r.handlers[name] = e
	return nil
}

// Frozen returns a copy that rejects further registration. Later registrations in r do not change it.
func (r *StepRegistry) Frozen() *StepRegistry {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return &StepRegistry{handlers: maps.Clone(r.handlers), frozen: true}
}

// Names lists the registered names in byte order.
func (r *StepRegistry) Names() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.handlers))
}

func (r *StepRegistry) lookup(name string) (entry, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	e, ok := r.handlers[name]
	return e, ok
}
