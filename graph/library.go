package graph

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// maxPrograms is how many compiled definitions are kept.
const maxPrograms = 256

// library finds definitions: those registered here, those that a Resolver knows, those stored beside the histories. It
// compiles each once.
type library struct {
	r        *Runner
	programs *definition.Cache

	mu         sync.RWMutex
	registered map[string]*definition.Document
}

func (l *library) init(r *Runner) {
	l.r, l.programs, l.registered = r, definition.NewCache(maxPrograms), map[string]*definition.Document{}
}

// RegisterWorkflow makes a definition known under a workflow_ref, exactly as written. Registering a ref again replaces
// what it stood for; runs that have begun keep the definition they began with.
func (r *Runner) RegisterWorkflow(ref string, d *definition.Document) error {
	if strings.TrimSpace(ref) == "" {
		return problem.New(problem.ValidationError, "a workflow_ref must not be blank")
	}
	if _, err := r.library.admit(d); err != nil {
		return err
	}
	r.library.mu.Lock()
	defer r.library.mu.Unlock()
	r.library.registered[ref] = d
	r.unknown.forgetRef(ref)
	return nil
}

// Validate checks a definition as Start would.
func (r *Runner) Validate(d *definition.Document) error {
	_, err := r.library.admit(d)
	return err
}

// admit is compile for a definition that comes from outside: the embedder's policy is asked first.
func (l *library) admit(d *definition.Document) (*definition.Program, error) {
	if verify := l.r.opts.VerifyDefinition; verify != nil && d != nil {
		if err := verify(d); err != nil {
			return nil, err
		}
	}
	return l.compile(d)
}

// compile gives the program of a definition, or one error with everything that is wrong with it.
func (l *library) compile(d *definition.Document) (*definition.Program, error) {
	if d == nil {
		return nil, problem.New(problem.ValidationError, "no definition was given").
			WithHint("Give a definition, or the hash or name of a stored one.")
	}
	if prog := l.programs.Get(d.Hash()); prog != nil {
		return prog, nil
	}
	if err := checkBytes("definition", len(d.Canonical()), l.r.opts.MaxDocumentBytes, problem.ValidationError); err != nil {
		return nil, err
	}
	prog, findings := definition.Compile(d, definition.Options{AllowInterruptInBranch: l.r.opts.AllowInterruptInBranch})
	if prog == nil || findings.HasErrors() {
		return nil, refusedDefinition(findings)
	}
	l.programs.Add(prog)
	return prog, nil
}

// refusedDefinition makes one error of the findings about a definition. It speaks of the first and holds all.
func refusedDefinition(findings problem.Findings) error {
	e := problem.New(problem.ValidationError, "the definition is not valid")
	e.Findings = findings
	errs := 0
	for _, f := range findings {
		if f.Severity != problem.SeverityError {
			continue
		}
		if errs++; errs > 1 {
			continue
		}
		if f.Code == problem.InterruptInParallelBranch {
			e.Code = f.Code
		}
		e.Message += ": " + f.Message
		e.At, e.Hint = f.At, f.Hint
	}
	if errs > 1 {
		e.Message += moreErrors(errs - 1)
	}
	return e
}

// stored gives the program of a stored definition. The error is DEFINITION_REQUIRED if there is none.
func (l *library) stored(ctx context.Context, hash string) (*definition.Program, error) {
	if prog := l.programs.Get(hash); prog != nil {
		return prog, nil
	}
	d, err := l.r.store.Definition(ctx, hash)
	if err != nil {
		return nil, err
	}
	return l.compileStored(d)
}

func (l *library) compileStored(d history.StoredDefinition) (*definition.Program, error) {
	if prog := l.programs.Get(d.Hash); prog != nil {
		return prog, nil
	}
	doc, err := readStored(d)
	if err != nil {
		return nil, err
	}
	return l.compile(doc)
}

// readStored parses a stored definition. One that is not what its hash names is no definition that anybody has asked for:
// the error is HISTORY_CORRUPT.
func readStored(d history.StoredDefinition) (*definition.Document, error) {
	doc, err := definition.Parse(d.Text)
	if err != nil {
		return nil, problem.New(problem.HistoryCorrupt, "the stored definition %s cannot be read", d.Hash).WithCause(err).WithHint("%s", hintDefinition)
	}
	if doc.Hash() != d.Hash {
		return nil, problem.New(problem.HistoryCorrupt, "the stored definition %s has been altered: its text has the hash %s", d.Hash, doc.Hash()).
			WithHint("%s", hintDefinition)
	}
	return doc, nil
}

const hintDefinition = "Nothing was done. Restore the database from a copy; verify shows what else differs from what was stored."

// find gives the program of a definition hash, a stored document name or "name@version".
func (l *library) find(ctx context.Context, ref string) (*definition.Program, error) {
	prog, err := l.stored(ctx, ref)
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

// named gives the definition stored last under a name, or "name@version". A name that holds an @ itself is tried as
// it is first.
func (l *library) named(ctx context.Context, ref string) (history.StoredDefinition, error) {
	d, err := l.r.store.DefinitionByName(ctx, ref, "")
	if err == nil || !errors.Is(err, problem.DefinitionNotFound) {
		return d, err
	}
	at := strings.LastIndexByte(ref, '@')
	if at <= 0 || at == len(ref)-1 {
		return d, err
	}
	return l.r.store.DefinitionByName(ctx, ref[:at], ref[at+1:])
}

// resolve gives the program behind a workflow_ref: registered, known to Options.Workflows, or stored by name. A pin is
// the definition hash that it must have (spec: execution, 12.2).
func (l *library) resolve(ctx context.Context, ref, pin string) (*definition.Program, error) {
	prog, err := l.lookUp(ctx, ref, pin)
	if err != nil {
		return nil, err
	}
	if pin != "" && prog.Hash != pin {
		return nil, problem.New(problem.VersionPinMismatch, "workflow %q has the definition hash %s, not the pinned %s", ref, prog.Hash, pin).
			WithHint("Correct version_pin, or provide the version that it names.")
	}
	return prog, nil
}

func (l *library) lookUp(ctx context.Context, ref, pin string) (*definition.Program, error) {
	l.mu.RLock()
	doc := l.registered[ref]
	l.mu.RUnlock()
	if doc != nil {
		return l.admit(doc)
	}
	var unknown error = problem.New(problem.WorkflowNotFound, "no workflow is known under the workflow_ref %q", ref).
		WithHint("Register the workflow under this reference before the run reaches it.")
	if l.r.opts.Workflows != nil {
		doc, err := l.r.opts.Workflows.ResolveWorkflow(ctx, ref, pin)
		switch {
		case err == nil:
			return l.admit(doc)
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

// storedForm is how a definition is kept beside the histories.
func storedForm(prog *definition.Program) *history.StoredDefinition {
	return &history.StoredDefinition{
		Hash: prog.Hash, Name: prog.Name, Version: prog.Version, Text: prog.Document.Canonical(),
	}
}

// hashOf is the hash under which inputs are recorded.
func hashOf(input map[string]any) string { return jsonvalue.Hash(input) }
