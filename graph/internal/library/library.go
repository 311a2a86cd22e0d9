// Package library finds definitions: those registered with the engine, those that a Resolver knows, those stored beside the
// histories. It reads and compiles each once, and remembers which workflows have turned out to be unknown, so that no run is claimed for
// one in vain.
package library

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/guard"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// Bounds of the definitions kept: how many, and the bytes of their texts. A document takes several times its text, a program more.
const (
	maxDocuments, maxDocumentBytes = 256, 4 << 20
	maxPrograms, maxProgramBytes   = 256, 64 << 20
)

// Resolver finds the definition behind a workflow_ref.
type Resolver interface {
	// ResolveWorkflow returns the definition for ref. pin is the version_pin, "" without one; the engine checks it
	// again. An unknown ref is a *problem.Error with code WORKFLOW_NOT_FOUND; after any other error nothing is looked for elsewhere.
	ResolveWorkflow(ctx context.Context, ref, pin string) (*definition.Document, error)
}

// ImmediateResolver is a Resolver that has workflows at hand, such as those of a folder. It is asked when a run starts, which is then bound to
// the versions that it gives. A subworkflow that only another Resolver knows is resolved when the run comes to it, since a start does not
// wait for one.
type ImmediateResolver interface {
	Resolver
	// ResolveNow is ResolveWorkflow without waiting. Any error but WORKFLOW_NOT_FOUND leaves the version open.
	ResolveNow(ref, pin string) (*definition.Document, error)
}

// Store is the part of a history.Store that a Library reads.
type Store interface {
	Definition(ctx context.Context, hash string) (history.StoredDefinition, error)
	DefinitionByName(ctx context.Context, name, version string) (history.StoredDefinition, error)
	List(ctx context.Context, q history.ListQuery) (history.ListPage, error)
}

// Options configure the sources of definitions, and which are accepted.
type Options struct {
	Store Store
	// Workflows resolves references that are not registered, before stored definitions are searched; it may be nil.
	Workflows Resolver
	// Verify, unless nil, is asked about every definition before it is run or continued, wherever it comes from.
	Verify func(*definition.Document) error
	// MaxBytes bounds a definition as canonical JSON.
	MaxBytes int
	Compile  definition.Options
	Log      *slog.Logger
}

// Library finds and compiles definitions. It is safe for concurrent use.
type Library struct {
	o         Options
	documents *recent[key, *definition.Document]
	programs  *recent[key, *definition.Program]

	mu         sync.RWMutex
	registered map[string]*definition.Document
	unknown    unknownWorkflows
}

// key is a SHA-256 in hex: of documents that of their text, of programs the definition hash, which is that of the canonical text.
type key struct {
	hash string
	// stored is set for texts read from the store, because a document has the places of the text that it was read from, and for programs
	// accepted only as those of existing runs.
	stored bool
}

// New returns a library.
func New(o Options) *Library {
	return &Library{
		o: o, registered: map[string]*definition.Document{},
		documents: newRecent[key, *definition.Document](maxDocuments, maxDocumentBytes),
		programs:  newRecent[key, *definition.Program](maxPrograms, maxProgramBytes),
	}
}

// WorkflowName identifies the workflow of a subworkflow node. Version is the definition hash to which the run has bound
// the name, "" if it has not.
type WorkflowName struct{ Ref, Pin, Version string }

// NameOf returns the name of the workflow that an effect starts.
func NameOf(e *machine.ChildEffect) WorkflowName {
	return WorkflowName{e.WorkflowRef, e.VersionPin, e.Version}
}

// Read reads the text of a definition: JSON if it begins with an object, else YAML. A text that was read lately is not read again. The
// error is that of definition.Parse or definition.ParseYAML.
func (l *Library) Read(text []byte) (*definition.Document, error) {
	return l.documents.get(key{sum(text), false}, len(text), func() (*definition.Document, error) {
		parse := definition.ParseYAML
		if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
			parse = definition.Parse
		}
		doc, err := parse(text)
		if err == nil { // it need not be read from the store either
			_, _ = l.documents.get(key{doc.Hash(), true}, len(doc.Canonical()), func() (*definition.Document, error) { return doc, nil })
		}
		return doc, err
	})
}

func sum(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Register registers a definition under a workflow_ref, exactly as written. It replaces an earlier definition of the
// ref.
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

// Admit compiles a definition that comes from outside, if this process trusts it.
func (l *Library) Admit(d *definition.Document) (*definition.Program, error) {
	if err := l.trust(d); err != nil {
		return nil, err
	}
	return l.compile(d)
}

// trust rejects a definition that Options.Verify rejects. Every definition is asked about before it is compiled, so that those
// among the compiled programs are trusted.
func (l *Library) trust(d *definition.Document) (err error) {
	verify := l.o.Verify
	if verify == nil || d == nil {
		return nil
	}
	failed := guard.Call(l.o.Log, "VerifyDefinition", func() { err = verify(d) })
	return cmp.Or(failed, err)
}

// compile compiles a definition that is trusted.
func (l *Library) compile(d *definition.Document) (*definition.Program, error) {
	return l.compileAs(d, false)
}

func (l *Library) compileAs(d *definition.Document, stored bool) (*definition.Program, error) {
	o := l.o.Compile
	o.Stored = stored
	if d == nil {
		return admit.Definition(nil, l.o.MaxBytes, o)
	}
	prog, err := l.programs.get(key{d.Hash(), stored}, len(d.Canonical()), func() (*definition.Program, error) {
		return admit.Definition(d, l.o.MaxBytes, o)
	})
	if err != nil {
		return nil, err
	}
	return prog.For(d), nil
}

// kept returns the program of a stored definition if it is kept, else nil.
func (l *Library) kept(hash string) *definition.Program {
	prog, found := l.programs.find(key{hash, false})
	if !found {
		prog, _ = l.programs.find(key{hash, true})
	}
	return prog
}

// Stored returns the program of a stored definition. The error is DEFINITION_REQUIRED if it is not stored, or not
// trusted by this process: it then has a cause.
func (l *Library) Stored(ctx context.Context, hash string) (*definition.Program, error) {
	if prog := l.kept(hash); prog != nil {
		return prog, nil
	}
	d, err := l.o.Store.Definition(ctx, hash)
	if err != nil {
		return nil, err
	}
	doc, err := l.readStored(d)
	if err != nil {
		return nil, err
	}
	signed, err := l.trustStored(doc, &d)
	if err != nil {
		return nil, untrusted(&d, err)
	}
	prog, err := l.compile(signed)
	if err != nil { // a run continues under a definition that is no longer accepted for new runs
		if stored, refused := l.compileAs(signed, true); refused == nil {
			return stored, nil
		}
	}
	return prog, err
}

// Trust reports, as an error, that this process does not trust a stored definition.
func (l *Library) Trust(d history.StoredDefinition) error {
	doc, err := l.readStored(d)
	if err == nil {
		_, err = l.trustStored(doc, &d)
	}
	return err
}

// Document returns a stored definition without its signatures, whether this process trusts it or not. The error is DEFINITION_REQUIRED if it
// is not stored, or HISTORY_CORRUPT.
func (l *Library) Document(ctx context.Context, hash string) (*definition.Document, error) {
	d, err := l.o.Store.Definition(ctx, hash)
	if err != nil {
		return nil, err
	}
	return l.readStored(d)
}

// trustStored returns a stored definition with its newest signature that this process trusts, or unsigned if that is
// trusted: signatures of other processes take nothing away. The error is that of the newest signature.
func (l *Library) trustStored(doc *definition.Document, d *history.StoredDefinition) (*definition.Document, error) {
	signatures, _ := signaturesOf(d) // ReadStored has looked at them
	var refused error
	for _, signature := range append(signatures, nil) {
		signed := doc.Signed(signature)
		err := l.trust(signed)
		if err == nil {
			return signed, nil
		}
		refused = cmp.Or(refused, err)
	}
	return nil, refused
}

// untrusted is the error of a run whose stored definition this process does not trust.
func untrusted(d *history.StoredDefinition, cause error) error {
	e := problem.New(problem.DefinitionNotFound, "the stored definition %q is not trusted here", d.Name).WithCause(cause).
		WithHint("Send the same definition with a valid signature, start a new run, or cancel this one.")
	if p, ok := problem.As(cause); ok {
		e.Details = p.Details
		e.Hint += " " + p.Hint
	}
	return e
}

func (l *Library) admitStored(d history.StoredDefinition) (*definition.Program, error) {
	if prog, found := l.programs.find(key{d.Hash, false}); found {
		return prog, nil
	}
	doc, err := l.readStored(d)
	if err != nil {
		return nil, err
	}
	signed, err := l.trustStored(doc, &d)
	if err != nil {
		return nil, err
	}
	return l.compile(signed)
}

// ReadStored parses a stored definition, without its signatures. If the text does not match the hash, the error is HISTORY_CORRUPT.
func ReadStored(d history.StoredDefinition) (*definition.Document, error) {
	doc, err := definition.Parse(d.Text)
	return checkStored(d, doc, err)
}

// readStored is ReadStored, except that a text that was read lately is not read again.
func (l *Library) readStored(d history.StoredDefinition) (*definition.Document, error) {
	doc, err := l.documents.get(key{sum(d.Text), true}, len(d.Text), func() (*definition.Document, error) { return definition.Parse(d.Text) })
	return checkStored(d, doc, err)
}

func checkStored(d history.StoredDefinition, doc *definition.Document, err error) (*definition.Document, error) {
	const hint = "Nothing was done. Restore the database from a backup; Runner.Verify lists all differences."
	if err != nil {
		return nil, problem.New(problem.HistoryCorrupt, "the stored definition %s cannot be read", d.Hash).WithCause(err).WithHint("%s", hint)
	}
	if doc.Hash() != d.Hash {
		return nil, problem.New(problem.HistoryCorrupt, "stored definition %s was altered: its text has the hash %s", d.Hash, doc.Hash()).
			WithHint("%s", hint)
	}
	if _, err := signaturesOf(&d); err != nil {
		return nil, problem.New(problem.HistoryCorrupt, "a signature of the stored definition %s cannot be read", d.Hash).WithCause(err).
			WithHint("%s", hint)
	}
	return doc, nil
}

// storedPrograms holds the results of CompileStored.
var storedPrograms = newRecent[key, *definition.Program](64, maxProgramBytes)

// CompileStored returns the program of a stored definition for the checks of its runs, which any process may have started: it accepts more
// than a Library does. It returns nil for a definition that is not valid, and HISTORY_CORRUPT if the text does not match the hash.
func CompileStored(d history.StoredDefinition) (*definition.Program, error) {
	prog, err := storedPrograms.get(key{sum(d.Text), true}, len(d.Text), func() (*definition.Program, error) {
		doc, err := ReadStored(d)
		if err != nil {
			return nil, err
		}
		prog, _ := definition.Compile(doc, definition.Options{AllowInterruptInBranch: true, Stored: true})
		return prog, nil
	})
	if err == nil && prog != nil && prog.Hash != d.Hash {
		_, err = ReadStored(d)
	}
	if err != nil {
		return nil, err
	}
	return prog, nil
}

// signaturesOf returns the signature blocks of a stored definition, the newest first.
func signaturesOf(d *history.StoredDefinition) (signatures []map[string]any, err error) {
	for _, block := range slices.Backward(d.Signatures) {
		v, err := jsonvalue.Decode(block)
		signature, ok := v.(map[string]any)
		if !ok {
			return nil, cmp.Or(err, errors.New("it is not an object"))
		}
		signatures = append(signatures, signature)
	}
	return signatures, nil
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

// ForkedInput rejects the input of a run that a fork with another definition would keep.
func (l *Library) ForkedInput(of *history.Execution, prog *definition.Program, input map[string]any) error {
	err := admit.Input(prog, input)
	e, ok := problem.As(err)
	if !ok {
		return err
	}
	refused := *e
	return refused.WithHint("%sThe new run keeps the input of run %q: correct the definition, or start a new run.", OtherWorkflow(prog, of.DefinitionName), of.ID)
}

// OtherWorkflow returns a sentence for a definition whose name differs from that of its run: it is probably not a
// correction. It returns "" if the names are equal.
func OtherWorkflow(prog *definition.Program, name string) string {
	if prog.Name == name {
		return ""
	}
	return problem.Format("The definition belongs to workflow %q; the run belongs to workflow %q. ", prog.Name, name)
}

// Find returns the program of a stored definition by its hash, else the program that Resolve finds under a name or
// "name@version".
func (l *Library) Find(ctx context.Context, ref string) (*definition.Program, error) {
	switch d, err := l.o.Store.Definition(ctx, ref); {
	case err == nil:
		return l.admitStored(d)
	case !errors.Is(err, problem.DefinitionNotFound):
		return nil, err
	}
	prog, err := l.lookUp(ctx, ref, "")
	if !saysUnknown(err) {
		return prog, err
	}
	const hint = "Send the definition, or the hash, name or name@version of a definition that has run here."
	unknown := problem.New(problem.WorkflowNotFound, "no definition %q is stored", ref).WithHint(hint)
	if p, ok := problem.As(err); ok && l.o.Workflows != nil {
		unknown.Message, unknown.Err = p.Message, p.Err
		unknown.Hint = strings.TrimSpace(hint + " " + p.Hint)
	}
	if near := l.nearest(ctx, ref); near != "" {
		unknown.Hint = problem.Format("Did you mean %q, which has run here? ", near) + hint
	}
	return nil, unknown
}

// nearest returns the name of a recent definition that resembles ref, or "".
func (l *Library) nearest(ctx context.Context, ref string) string {
	page, err := l.o.Store.List(ctx, history.ListQuery{Limit: 100})
	if err != nil {
		return ""
	}
	var names []string
	for i := range page.Executions {
		names = append(names, page.Executions[i].DefinitionName)
	}
	name, _, _ := strings.Cut(ref, "@")
	return suggest.Nearest(name, names)
}

// saysUnknown reports whether an error means that the workflow is unknown, so that another source may be asked. An
// error with only such a cause has another code: nothing else may run in its place.
func saysUnknown(err error) bool {
	p, coded := problem.As(err)
	return errors.Is(err, problem.WorkflowNotFound) && (!coded || p.Code == problem.WorkflowNotFound)
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

// Resolve returns the program of a subworkflow: the version bound to its run if that is stored, else the registered,
// resolved or stored definition of the name. A pin is the required definition hash (spec: execution, 12.2). Errors that
// are not the store's are unknown workflows; see IsUnknown.
func (l *Library) Resolve(ctx context.Context, name WorkflowName) (*definition.Program, error) {
	if name.Version != "" {
		prog, err := l.Stored(ctx, name.Version)
		if err == nil {
			l.unknown.forget(name)
		}
		if !errors.Is(err, problem.DefinitionNotFound) {
			return prog, err
		}
	}
	pin := cmp.Or(name.Version, name.Pin)
	prog, err := l.lookUp(ctx, name.Ref, pin)
	if err == nil && pin != "" && prog.Hash != pin {
		err = problem.New(problem.VersionPinMismatch, "workflow %q has the definition hash %s, not the pinned %s", name.Ref, prog.Hash, pin).
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

// Versions resolves the subworkflows that a run of a program may start, as far as they are at hand: their definition hashes by workflow_ref,
// those that the program pins left out, and the definitions themselves, to be stored along. A run keeps to these, whatever is deployed
// after it has begun. inherited are the versions of the parent run, for references that this process does not know.
func (l *Library) Versions(ctx context.Context, prog *definition.Program, inherited map[string]string) (hashes map[string]string, definitions []history.StoredDefinition) {
	seen := map[WorkflowName]bool{}
	for _, n := range prog.Nodes {
		c := n.Subworkflow
		if c == nil || c.WorkflowRef == "" {
			continue
		}
		name := WorkflowName{Ref: c.WorkflowRef, Pin: c.VersionPin}
		if seen[name] {
			continue
		}
		seen[name] = true
		child, err := l.atHand(ctx, name)
		hash := inherited[c.WorkflowRef]
		if err == nil {
			hash = child.Hash
		}
		if c.VersionPin == "" && hash != "" {
			if hashes == nil {
				hashes = map[string]string{}
			}
			hashes[c.WorkflowRef] = hash
		}
		if err == nil && child.Hash != prog.Hash && !slices.ContainsFunc(definitions, func(d history.StoredDefinition) bool { return d.Hash == child.Hash }) {
			definitions = append(definitions, *admit.StoredForm(child))
		}
	}
	return hashes, definitions
}

// atHand is Resolve without waiting for anything but the store. Any error leaves the version open.
func (l *Library) atHand(ctx context.Context, name WorkflowName) (*definition.Program, error) {
	l.mu.RLock()
	doc := l.registered[name.Ref]
	l.mu.RUnlock()
	if doc == nil && l.o.Workflows != nil {
		resolver, ok := l.o.Workflows.(ImmediateResolver)
		if !ok {
			return nil, errLater
		}
		var err error
		failed := guard.Call(l.o.Log, "ResolveNow", func() { doc, err = resolver.ResolveNow(name.Ref, name.Pin) })
		if err = cmp.Or(failed, err); err != nil && !saysUnknown(err) {
			return nil, err
		}
	}
	var prog *definition.Program
	var err error
	if doc != nil {
		prog, err = l.Admit(doc)
	} else {
		var d history.StoredDefinition
		if d, err = l.named(ctx, name.Ref); err == nil {
			prog, err = l.admitStored(d)
		}
	}
	if err == nil && name.Pin != "" && prog.Hash != name.Pin {
		return nil, errLater
	}
	return prog, err
}

var errLater = errors.New("the version is not at hand")

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
		if err = cmp.Or(failed, err); err == nil {
			return l.Admit(doc)
		}
		if !saysUnknown(err) {
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
	return l.admitStored(d)
}
