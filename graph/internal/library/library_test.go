package library_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/library"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// text is a definition; more are further nodes, each followed by an edge to the end.
func text(name, version string, more ...string) string {
	nodes, edges := "", ""
	for i, config := range more {
		nodes += fmt.Sprintf(`,{"id":"n%d",%s}`, i, config)
		edges += fmt.Sprintf(`,{"source":"n%d","target":"e"}`, i)
	}
	return fmt.Sprintf(`{"document":{"schema":"https://agent-workflow.dev/schemas/workflow-definition.json","name":%q,"version":%q},"state_schema":{"type":"object"},`+
		`"nodes":[{"id":"s","type":"start"},{"id":"e","type":"end"}%s],"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"e"}%s]}`, name, version, nodes, edges)
}

func parse(t *testing.T, text string) *definition.Document {
	t.Helper()
	d, err := definition.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func newLibrary(o library.Options) (*library.Library, history.Store) {
	if o.Store == nil {
		o.Store = historymem.New()
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = definition.MaxBytes
	}
	return library.New(o), o.Store.(history.Store)
}

// stored is a definition as the engine stores it.
func stored(t *testing.T, store history.Store, d *definition.Document) history.StoredDefinition {
	t.Helper()
	prog, err := admit.Definition(d, definition.MaxBytes, definition.Options{AllowInterruptInBranch: true, Stored: true})
	if err != nil {
		t.Fatal(err)
	}
	s := *admit.StoredForm(prog)
	if err := store.PutDefinition(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return s
}

func wantCode(t *testing.T, err error, code problem.Code, texts ...string) *problem.Error {
	t.Helper()
	e, ok := problem.As(err)
	if !ok || e.Code != code {
		t.Fatalf("error %v, want %s", err, code)
	}
	for _, text := range texts {
		if !strings.Contains(e.Error()+"\n"+e.Hint, text) {
			t.Errorf("%q is not in %v; %s", text, e, e.Hint)
		}
	}
	return e
}

// same reports whether two programs came from one compilation.
func same(a, b *definition.Program) bool { return a.Nodes[0] == b.Nodes[0] }

func TestATextIsReadOnce(t *testing.T) {
	t.Parallel()
	l, store := newLibrary(library.Options{})
	sent := " " + text("one", "1.0.0") + "\n"
	var read [8]*definition.Document
	var wg sync.WaitGroup
	for i := range read { // all at once
		wg.Go(func() { read[i], _ = l.Read([]byte(sent)) })
	}
	wg.Wait()
	first := read[0]
	for _, d := range read {
		if d == nil || d != first {
			t.Fatal("the same text was read twice, or rejected")
		}
	}
	other, err := l.Read([]byte(text("one", "1.0.0")))
	if err != nil || other == first || other.Hash() != first.Hash() {
		t.Errorf("another text of the definition is %v, %v", other, err)
	}
	prog, err := l.Admit(first)
	if err != nil {
		t.Fatal(err)
	}
	again, err := l.Admit(other)
	if err != nil || !same(prog, again) || again.Document != other {
		t.Errorf("the definition was compiled twice, or its document is not that of the caller: %v", err)
	}
	yaml, err := l.Read([]byte("document:\n  name: one\n"))
	if err != nil || yaml.Name() != "one" {
		t.Errorf("YAML: %v", err)
	}
	for range 2 { // an error is not kept as a document
		if _, err := l.Read([]byte(`{"document":{},"document":{}}`)); !errors.Is(err, problem.ValidationError) {
			t.Errorf("a text with a duplicate: %v", err)
		}
	}
	s := stored(t, store, first)
	fresh, _ := newLibrary(library.Options{Store: store})
	sentAgain, err := fresh.Read([]byte(sent))
	if err != nil {
		t.Fatal(err)
	}
	if prog, err = fresh.Stored(t.Context(), s.Hash); err != nil || prog.Document.Signed(nil).Hash() != s.Hash {
		t.Fatal(err)
	}
	own, _ := definition.Compile(sentAgain, definition.Options{})
	if !same(own, prog) {
		t.Error("a definition that was sent was read from the store again")
	}
}

// TestPlacesAreThoseOfTheCallersText: two texts of one definition share a program, and not the lines of its warnings.
func TestPlacesAreThoseOfTheCallersText(t *testing.T) {
	t.Parallel()
	l, _ := newLibrary(library.Options{})
	flat := text("one", "1.0.0", `"type":"step","config":{"handler":"h"}`) // n0 is unreachable
	for i, sent := range []string{flat, strings.ReplaceAll(flat, `,{"id":"n0"`, ",\n\n"+`{"id":"n0"`)} {
		prog, err := l.Admit(parse(t, sent))
		if err != nil || len(prog.Warnings) == 0 {
			t.Fatalf("%v, no warnings", err)
		}
		if got, want := prog.Warnings[0].At.Line, 1+2*i; got != want {
			t.Errorf("text %d: the warning is in line %d, want %d", i, got, want)
		}
	}
}

func TestAdmitRejects(t *testing.T) {
	t.Parallel()
	refused := errors.New("no signature")
	l, store := newLibrary(library.Options{MaxBytes: 2000, Verify: func(d *definition.Document) error {
		if d.Signature() == nil {
			return refused
		}
		return nil
	}})
	signed := parse(t, text("one", "1.0.0")).Signed(map[string]any{"key": "k"})
	prog, err := l.Admit(signed)
	if err != nil {
		t.Fatal(err)
	}
	if got := admit.StoredForm(prog).Signatures; len(got) != 1 || string(got[0]) != `{"key":"k"}` {
		t.Errorf("signatures %s", got)
	}
	if _, err := l.Admit(signed.Signed(nil)); !errors.Is(err, refused) {
		t.Errorf("a definition that is known, without its signature: %v", err)
	}
	_, err = l.Admit(nil)
	wantCode(t, err, problem.ValidationError, "no definition was given")
	_, err = l.Admit(parse(t, text(strings.Repeat("x", 2000), "1.0.0")).Signed(map[string]any{}))
	wantCode(t, err, problem.ValidationError, "2000")
	s := stored(t, store, parse(t, text("two", "1.0.0")))
	_, err = l.Stored(t.Context(), s.Hash)
	if e := wantCode(t, err, problem.DefinitionNotFound, "is not trusted here"); !errors.Is(e, refused) {
		t.Errorf("the cause is %v", e.Err)
	}
}

func TestStored(t *testing.T) {
	t.Parallel()
	l, store := newLibrary(library.Options{})
	_, err := l.Stored(t.Context(), strings.Repeat("0", 64))
	wantCode(t, err, problem.DefinitionNotFound)
	// An output_schema that does not compile: runs that began under an earlier version continue, new ones are rejected.
	outdated := parse(t, `{"document":{"schema":"https://agent-workflow.dev/schemas/workflow-definition.json","name":"outdated","version":"1.0.0"},"state_schema":{"type":"object"},
"nodes":[{"id":"s","type":"start"},{"id":"ask","type":"interrupt","config":{"prompt":"?","resume_schema":{"type":"object"}}},
{"id":"e","type":"end","config":{"output_schema":{"type":"nonsense"}}}],"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"ask"},{"source":"ask","target":"e"}]}`)
	s := stored(t, store, outdated)
	first, err := l.Stored(t.Context(), s.Hash)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := l.Stored(t.Context(), s.Hash); err != nil || !same(first, again) {
		t.Errorf("compiled twice, %v", err)
	}
	_, err = l.Admit(outdated)
	wantCode(t, err, problem.ValidationError)
	for _, altered := range []history.StoredDefinition{
		{Hash: strings.Repeat("1", 64), Text: s.Text}, {Hash: s.Hash, Text: s.Text[1:]}, {Hash: s.Hash, Text: s.Text, Signatures: [][]byte{[]byte("[]")}},
	} {
		for range 2 {
			_, err := library.ReadStored(altered)
			wantCode(t, err, problem.HistoryCorrupt)
			lent, _ := newLibrary(library.Options{Store: altering{store, altered}})
			if _, err := lent.Read([]byte(outdated.Canonical())); err != nil { // known by its hash
				t.Fatal(err)
			}
			_, err = lent.Stored(t.Context(), altered.Hash)
			wantCode(t, err, problem.HistoryCorrupt)
		}
	}
}

// altering is a store with one definition.
type altering struct {
	history.Store
	d history.StoredDefinition
}

func (a altering) Definition(context.Context, string) (history.StoredDefinition, error) {
	return a.d, nil
}

func TestCompileStored(t *testing.T) {
	t.Parallel()
	s := stored(t, historymem.New(), parse(t, text("one", "1.0.0")))
	first, err := library.CompileStored(s)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := library.CompileStored(s); err != nil || again != first {
		t.Errorf("compiled twice, %v", err)
	}
	_, err = library.CompileStored(history.StoredDefinition{Hash: strings.Repeat("1", 64), Text: s.Text})
	wantCode(t, err, problem.HistoryCorrupt, s.Hash)
	invalid := parse(t, `{"nodes":[]}`)
	if prog, err := library.CompileStored(history.StoredDefinition{Hash: invalid.Hash(), Text: invalid.Canonical()}); prog != nil || err != nil {
		t.Errorf("an invalid definition: %v, %v", prog, err)
	}
}

// folder is a Resolver of some workflows.
type folder map[string]*definition.Document

func (f folder) ResolveWorkflow(_ context.Context, ref, _ string) (*definition.Document, error) {
	if d := f[ref]; d != nil {
		return d, nil
	}
	return nil, problem.New(problem.WorkflowNotFound, "no file has %q", ref)
}

func (f folder) ResolveNow(ref, pin string) (*definition.Document, error) {
	return f.ResolveWorkflow(context.Background(), ref, pin)
}

// TestFind: a name means what is registered, else what the Resolver knows, else what was stored last; a hash is exact.
func TestFind(t *testing.T) {
	t.Parallel()
	files := folder{}
	l, store := newLibrary(library.Options{Workflows: files})
	find := func(ref, version string) {
		t.Helper()
		if prog, err := l.Find(t.Context(), ref); err != nil || prog.Version != version {
			t.Errorf("%s: %v, want version %s", ref, err, version)
		}
	}
	old := stored(t, store, parse(t, text("w", "1.0.0")))
	stored(t, store, parse(t, text("w", "2.0.0")))
	stored(t, store, parse(t, text("a@b", "3.0.0")))
	find("w", "2.0.0")
	find("w@1.0.0", "1.0.0")
	find(old.Hash, "1.0.0")
	find("a@b", "3.0.0")
	find("a@b@3.0.0", "3.0.0")
	files["w"] = parse(t, text("w", "4.0.0"))
	find("w", "4.0.0")
	for _, version := range []string{"5.0.0", "6.0.0"} {
		if err := l.Register("w", parse(t, text("w", version))); err != nil {
			t.Fatal(err)
		}
		find("w", version)
	}
	find(old.Hash, "1.0.0")
	wantCode(t, l.Register(" ", parse(t, text("w", "1.0.0"))), problem.ValidationError, "blank")
	wantCode(t, l.Register("x", parse(t, `{}`)), problem.ValidationError)
	_, err := l.Find(t.Context(), "x")
	wantCode(t, err, problem.WorkflowNotFound, `no file has "x"`)
}

func TestResolve(t *testing.T) {
	t.Parallel()
	l, store := newLibrary(library.Options{})
	old := stored(t, store, parse(t, text("w", "1.0.0")))
	now := stored(t, store, parse(t, text("w", "2.0.0")))
	for _, c := range []struct {
		name library.WorkflowName
		want string
	}{
		{library.WorkflowName{Ref: "w"}, now.Hash}, {library.WorkflowName{Ref: "w", Version: old.Hash}, old.Hash},
		{library.WorkflowName{Ref: "w", Pin: now.Hash}, now.Hash}, {library.WorkflowName{Ref: "gone", Version: old.Hash}, old.Hash},
	} {
		if prog, err := l.Resolve(t.Context(), c.name); err != nil || prog.Hash != c.want {
			t.Errorf("%+v: %v", c.name, err)
		}
	}
	_, err := l.Resolve(t.Context(), library.WorkflowName{Ref: "w", Pin: old.Hash})
	wantCode(t, err, problem.VersionPinMismatch, now.Hash)
	if !library.IsUnknown(err) {
		t.Error("another process may have the pinned version")
	}
	_, err = l.Resolve(t.Context(), library.WorkflowName{Ref: "x"})
	wantCode(t, err, problem.WorkflowNotFound)
	if !library.IsUnknown(err) {
		t.Error("another process may know the workflow")
	}
}

// TestVersions: a run is bound to the versions at hand when it starts, except pinned ones, and to those of its parent for the rest.
func TestVersions(t *testing.T) {
	t.Parallel()
	child := parse(t, text("child", "1.0.0"))
	l, _ := newLibrary(library.Options{Workflows: folder{"child": child}})
	call := func(ref, pin string) string {
		return fmt.Sprintf(`"type":"subworkflow","config":{"workflow_ref":%q,"input_mapping":{}%s}`, ref, pin)
	}
	prog, err := l.Admit(parse(t, text("parent", "1.0.0", call("child", ""), call("child", ""), call("other", ""), call("unknown", ""), call("pinned", `,"version_pin":"`+child.Hash()+`"`))))
	if err != nil {
		t.Fatal(err)
	}
	hashes, definitions := l.Versions(t.Context(), prog, map[string]string{"other": "inherited"})
	if len(hashes) != 2 || hashes["child"] != child.Hash() || hashes["other"] != "inherited" {
		t.Errorf("bound to %v", hashes)
	}
	if len(definitions) != 1 || definitions[0].Hash != child.Hash() {
		t.Errorf("%d definitions are stored along", len(definitions))
	}
}

// TestUnknown: an unknown workflow is looked for again only while a run waits for it.
func TestUnknown(t *testing.T) {
	t.Parallel()
	files := folder{}
	l, _ := newLibrary(library.Options{Workflows: files})
	name := library.WorkflowName{Ref: "w"}
	start := func(look func()) { look() }
	if l.WaitsFor(name) || l.Unknown() != 0 || l.Lack("r", "n", name) != nil {
		t.Error("a workflow is unknown before it was looked for")
	}
	_, err := l.Resolve(t.Context(), name)
	l.NoteUnknown(name, err)
	if lack := l.Lack("r", "n", name); lack == nil || !strings.Contains(lack.Missing, `"w"`) || lack.NodeID != "n" {
		t.Errorf("lack %+v", lack)
	}
	if l.Reconsider(t.Context(), start)() || l.Unknown() != 1 {
		t.Error("an unknown workflow has become known")
	}
	files["w"] = parse(t, text("w", "1.0.0"))
	if l.Reconsider(t.Context(), start)() {
		t.Error("a workflow was looked for that no run waits for")
	}
	if !l.WaitsFor(name) || !l.Reconsider(t.Context(), start)() || l.Unknown() != 0 || l.WaitsFor(name) {
		t.Error("a workflow that a run waits for was not found")
	}
	l.NoteUnknown(name, err)
	if err := l.Register("w", files["w"]); err != nil || l.Unknown() != 0 {
		t.Errorf("a registered workflow is unknown, %v", err)
	}
}
