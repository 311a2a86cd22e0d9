package library

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"

	"github.com/workflows-engine/workflows-engine/graph/admit"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/execution"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/guard"
)

// maxPrograms is how many compiled definitions are kept.
const maxPrograms = 256

// Resolver finds the definition behind a workflow_ref.
type Resolver interface {
	// ResolveWorkflow returns the definition for ref. pin is the version_pin, "" without one; the engine checks it
	// again. An unknown ref is a *problem.Error with code WORKFLOW_NOT_FOUND.
	ResolveWorkflow(ctx context.Context, ref, pin string) (*definition.Document, error)
}

// Options say where definitions come from, and which are accepted.
type Options struct {
	Store history.Store
	// Workflows resolves references besides those registered and stored; nil is none.
	Workflows Resolver
	// Verify, unless nil, is asked about every definition that comes from outside before anything else is done with it.
	Verify func(*definition.Document) error
	// MaxBytes bounds a definition as canonical JSON.
	MaxBytes int
	Compile  definition.Options
	Log      *slog.Logger
}

// Library finds and compiles definitions.
type Library struct {
	o        Options
	programs *definition.Cache

	mu         sync.RWMutex
	registered map[string]*definition.Document
	unknown    unknownWorkflows
}

// New returns a library.
func New(o Options) *Library {
	return &Library{o: o, programs: definition.NewCache(maxPrograms), registered: map[string]*definition.Document{}}
}

// Register makes a definition known under a workflow_ref, exactly as written. Registering a ref again replaces what it stood for.
func (l *Library) Register(ref string, d *definition.Document) error {
	if strings.TrimSpace(ref) == "" {
		return problem.New(problem.ValidationError, "a workflow_ref must not be blank")
	}
	if _, err := l.Admit(d); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.registered[ref] = d
	l.unknown.forgetRef(ref)
	return nil
}

// Admit compiles a definition that comes from outside: Options.Verify is asked first.
func (l *Library) Admit(d *definition.Document) (*definition.Program, error) {
	if verify := l.o.Verify; verify != nil && d != nil {
		var err error
		failed := guard.Call(l.o.Log, "VerifyDefinition", func() { err = verify(d) })
		if err := cmp.Or(failed, err); err != nil {
			return nil, err
		}
	}
	return l.compile(d)
}

func (l *Library) compile(d *definition.Document) (*definition.Program, error) {
	if d != nil {
		if prog := l.programs.Get(d.Hash()); prog != nil {
			return prog, nil
		}
	}
	prog, err := admit.Definition(d, l.o.MaxBytes, l.o.Compile)
	if err == nil {
		l.programs.Add(prog)
	}
	return prog, err
}

// Stored returns the program of a stored definition. The error is DEFINITION_REQUIRED if there is none.
func (l *Library) Stored(ctx context.Context, hash string) (*definition.Program, error) {
	if prog := l.programs.Get(hash); prog != nil {
		return prog, nil
	}
	d, err := l.o.Store.Definition(ctx, hash)
	if err != nil {
		return nil, err
	}
	return l.compileStored(d)
}

func (l *Library) compileStored(d history.StoredDefinition) (*definition.Program, error) {
	if prog := l.programs.Get(d.Hash); prog != nil {
		return prog, nil
	}
	doc, err := ReadStored(d)
	if err != nil {
		return nil, err
	}
	return l.compile(doc)
}

// ReadStored parses a stored definition. One that is not what its hash names is HISTORY_CORRUPT.
func ReadStored(d history.StoredDefinition) (*definition.Document, error) {
	const hint = "Nothing was done. Restore the database from a backup; Runner.Verify shows what else differs from what was stored."
	doc, err := definition.Parse(d.Text)
	if err != nil {
		return nil, problem.New(problem.HistoryCorrupt, "the stored definition %s cannot be read", d.Hash).WithCause(err).WithHint("%s", hint)
	}
	if doc.Hash() != d.Hash {
		return nil, problem.New(problem.HistoryCorrupt, "the stored definition %s has been altered: its text has the hash %s", d.Hash, doc.Hash()).
			WithHint("%s", hint)
	}
	return doc, nil
}

// Forked returns the program of a fork of a run: that of d, or the run's own if d is nil.
func (l *Library) Forked(ctx context.Context, of *history.Execution, d *definition.Document) (*definition.Program, error) {
	switch {
	case of.Mode == "" || of.InputHash == "":
		return nil, problem.New(problem.ValidationError, "run %q was begun by another engine and cannot be forked", of.ID).
			WithPlace(problem.Place{ExecutionID: of.ID}).WithHint("Start a new run with its definition and input.")
	case d != nil:
		return l.Admit(d)
	}
	return l.Stored(ctx, of.DefinitionHash)
}

// Find returns the program of a definition hash, a stored document name or "name@version".
func (l *Library) Find(ctx context.Context, ref string) (*definition.Program, error) {
	prog, err := l.Stored(ctx, ref)
	if err == nil || !errors.Is(err, problem.DefinitionNotFound) {
		return prog, err
	}
	d, err := l.named(ctx, ref)
	if errors.Is(err, problem.DefinitionNotFound) {
		return nil, problem.New(problem.WorkflowNotFound, "no definition %q is stored", ref).
			WithHint("Give the definition itself, or the hash, name or name@version of one that has been run here.")
	}
	if err != nil {
		return nil, err
	}
	return l.compileStored(d)
}

// named returns the definition stored last under a name, or "name@version". A name that contains an @ itself is tried as
// it is first.
func (l *Library) named(ctx context.Context, ref string) (history.StoredDefinition, error) {
	d, err := l.o.Store.DefinitionByName(ctx, ref, "")
	if err == nil || !errors.Is(err, problem.DefinitionNotFound) {
		return d, err
	}
	at := strings.LastIndexByte(ref, '@')
	if at <= 0 || at == len(ref)-1 {
		return d, err
	}
	return l.o.Store.DefinitionByName(ctx, ref[:at], ref[at+1:])
}

// Resolve returns the program of a subworkflow: registered, known to the Resolver, or stored by name. A pin is the definition hash
// that it must have (spec: execution, 12.2). An error that is not the store's is an UnknownWorkflow.
func (l *Library) Resolve(ctx context.Context, name execution.WorkflowName) (*definition.Program, error) {
	prog, err := l.lookUp(ctx, name.Ref, name.Pin)
	if err == nil && name.Pin != "" && prog.Hash != name.Pin {
		err = problem.New(problem.VersionPinMismatch, "workflow %q has the definition hash %s, not the pinned %s", name.Ref, prog.Hash, name.Pin).
			WithHint("Correct version_pin, or provide the version that it names.")
	}
	if err == nil {
		l.unknown.forget(name)
		return prog, nil
	}
	if _, ok := problem.As(err); !ok {
		err = problem.New(problem.WorkflowNotFound, "workflow_ref %q cannot be resolved", name.Ref).WithCause(err)
	}
	if admit.IsRefusal(err) {
		err = unknownError{err}
	}
	return nil, err
}

func (l *Library) lookUp(ctx context.Context, ref, pin string) (*definition.Program, error) {
	l.mu.RLock()
	doc := l.registered[ref]
	l.mu.RUnlock()
	if doc != nil {
		return l.Admit(doc)
	}
	var unknown error = problem.New(problem.WorkflowNotFound, "no workflow is known under the workflow_ref %q", ref).
		WithHint("Register the workflow under this reference before the run reaches it.")
	if l.o.Workflows != nil {
		var doc *definition.Document
		var err error
		failed := guard.Call(l.o.Log, "ResolveWorkflow", func() { doc, err = l.o.Workflows.ResolveWorkflow(ctx, ref, pin) })
		switch err = cmp.Or(failed, err); {
		case err == nil:
			return l.Admit(doc)
		case !errors.Is(err, problem.WorkflowNotFound):
			return nil, err
		}
		unknown = err // the resolver knows better where it has looked
	}
	d, err := l.named(ctx, ref)
	if errors.Is(err, problem.DefinitionNotFound) {
		return nil, unknown
	}
	if err != nil {
		return nil, err
	}
	return l.compileStored(d)
}
