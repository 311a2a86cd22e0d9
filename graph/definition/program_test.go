package definition_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
)

func TestProgram(t *testing.T) {
	t.Parallel()
	d, p, findings := compileValue(t, base(t, "everything"))
	if len(findings) > 0 {
		t.Fatalf("findings\n%s", list(findings))
	}
	if p.Document != d || p.Hash != d.Hash() || p.Name != "everything" || p.Version != "1" || p.Entry != p.Node("start") {
		t.Errorf("got %+v", p)
	}
	if p.Checkpoint != (definition.CheckpointPolicy{Enabled: true, Every: 3, Interval: true}) {
		t.Errorf("checkpoints: %+v", p.Checkpoint)
	}
	if p.State.Reducers["log"] != definition.ReducerAppend || p.State.Validate(map[string]any{"n": "x"}) == nil {
		t.Errorf("state: %+v", p.State)
	}
	for i, n := range p.Nodes {
		if n.Index != i || p.Node(n.ID) != n || n.Config == nil {
			t.Errorf("node %d: %+v", i, n)
		}
	}
	if p.Node("nobody") != nil {
		t.Error("a node that is not there")
	}

	step := p.Node("step")
	if step.Next != p.Node("ask") || step.Timeout != 5*time.Second || step.TimeoutErr != nil || step.Config["by"] != 2.0 ||
		step.Metadata["label"] != "Count" || step.Activity == nil || step.Activity.OutputSchema != nil {
		t.Errorf("step: %+v", step)
	}
	if r := step.Retry; r.MaxAttempts != 3 || r.Initial != 100*time.Millisecond || r.Max != time.Second || r.Coefficient != 2 ||
		r.Err != nil || !slices.Equal(r.NonRetryable, []string{"HANDLER_NOT_FOUND"}) {
		t.Errorf("retry: %+v", r)
	}
	if a := p.Node("ask").Activity; a.OutputSchema.Validate("x") == nil || a.OutputSchemaErr != nil {
		t.Errorf("llm_call: %+v", a)
	}
	if i := p.Node("approve").Interrupt; i.Prompt != "OK?" || i.ResumeSchema.Validate(1.0) == nil || i.ResumeSchemaRaw["type"] != "object" {
		t.Errorf("interrupt: %+v", i)
	}
	fork := p.Node("fork")
	if f := fork.Parallel; f.Join != definition.JoinNofM || f.N != 1 || len(f.Branches) != 2 || f.Branches[0].Name != "child" ||
		f.Branches[0].Entry != p.Node("child") || fork.Next != p.Node("set") {
		t.Errorf("parallel: %+v", f)
	}
	if s := p.Node("child").Subworkflow; s.WorkflowRef != "child" || len(s.VersionPin) != 64 || s.InputMapping == nil {
		t.Errorf("subworkflow: %+v", s)
	}
	if a := p.Node("agent").Delegate; a.AgentID != "a" || a.Protocol != "sdk" || a.InputMapping == nil {
		t.Errorf("agent_delegate: %+v", a)
	}
	if s := p.Node("set").SetState; len(s.Assignments) != 2 || s.Assignments[0].Key != "log" || s.Assignments[0].Literal != "counted" ||
		s.Assignments[0].JQ != nil || s.Assignments[1].JQ.Source() != ".n + 1" {
		t.Errorf("set_state: %+v", s)
	}
	if s := p.Node("again"); s.Switch.Cases[0].When.Source() != ".n < 3" || s.Switch.Cases[0].Target != "step" || s.Switch.Default != "end" || s.Next != nil {
		t.Errorf("switch: %+v", s.Switch)
	}
	if e := p.Node("end"); e.End.OutputMapping.Source() != "{ n: .n }" || e.End.OutputSchema.Validate(1.0) == nil || e.Next != nil {
		t.Errorf("end: %+v", e.End)
	}
	if s := p.Node("start").Start; s.InputSchema.Validate(1.0) == nil {
		t.Errorf("start: %+v", s)
	}
}

func TestProgramDefaults(t *testing.T) {
	t.Parallel()
	_, p, _ := compileValue(t, base(t, "linear"))
	if got := p.Node("end").End; got.OutputMapping.Source() != "." || got.OutputSchema != nil {
		t.Errorf("end: %+v", got)
	}
	if n := p.Node("greet"); n.Retry != nil || n.Timeout != 0 || n.Metadata != nil {
		t.Errorf("step: %+v", n)
	}
	if p.Checkpoint != (definition.CheckpointPolicy{Enabled: true, Every: 1}) {
		t.Errorf("checkpoints: %+v", p.Checkpoint)
	}
	_, p, _ = compileValue(t, patch(t, base(t, "routing"), "set /nodes/2/config/cases/- {\"when\":\"  \",\"target\":\"search\"}\nset /nodes/6/config/output_mapping \" \""))
	if cases := p.Node("route").Switch.Cases; len(cases) != 2 {
		t.Errorf("a blank case is kept: %+v", cases)
	}
	if src := p.Node("end").End.OutputMapping.Source(); src != "." {
		t.Errorf("a blank output_mapping is %q", src)
	}
	_, p, _ = compileValue(t, base(t, "parallel"))
	if n := p.Node("fork").Parallel.N; n != 3 {
		t.Errorf("all of three is %d", n)
	}
}

// TestW47_ADocumentIsCompiledOnce: for each Options, whoever asks and however many do so at once. The findings are the caller's own.
func TestW47_ADocumentIsCompiledOnce(t *testing.T) {
	t.Parallel()
	d, err := definition.FromValue(patch(t, base(t, "linear"), `set /nodes/1/timeout "0s"`))
	if err != nil {
		t.Fatal(err)
	}
	var all [4]*definition.Program
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() { all[i], _ = definition.Compile(d, definition.Options{}) })
	}
	wg.Wait()
	first, findings := definition.Compile(d, definition.Options{})
	for i, p := range all {
		if p == nil || p != first {
			t.Fatalf("call %d compiled the document anew, or refused it", i)
		}
	}
	if stored, _ := definition.Compile(d, definition.Options{Stored: true}); stored == nil || stored == first {
		t.Error("other options have the same program")
	}
	if len(findings) == 0 || len(first.Warnings) != len(findings) {
		t.Fatalf("%d findings, %d warnings of the program", len(findings), len(first.Warnings))
	}
	findings[0].Message = "changed"
	if _, again := definition.Compile(d, definition.Options{}); again[0].Message == "changed" {
		t.Error("callers share their findings")
	}
	signed := d.Signed(map[string]any{"key": "k"})
	p, _ := definition.Compile(signed, definition.Options{})
	if p.Document != signed || p.Nodes[0] != first.Nodes[0] || first.Document != d {
		t.Error("a signed document is not that of its program, or was compiled anew")
	}
}

// TestFindingsAreBounded shows that a document that is wrong throughout is answered quickly, with errors first.
func TestFindingsAreBounded(t *testing.T) {
	t.Parallel()
	doc := base(t, "linear")
	nodes := doc["nodes"].([]any)
	for i := range 3000 {
		nodes = append(nodes, map[string]any{"id": fmt.Sprintf("n%d", i), "type": "step", "config": map[string]any{"code_ref": "x"}})
	}
	nodes = append(nodes, map[string]any{"id": "last", "type": "nonsense"})
	doc["nodes"] = nodes
	_, p, findings := compileValue(t, doc)
	if p != nil || len(findings) != definition.MaxFindings || !findings.HasErrors() {
		t.Errorf("%d findings, errors %v", len(findings), findings.HasErrors())
	}
}

// TestSameFindings shows that no map order reaches the list.
func TestSameFindings(t *testing.T) {
	t.Parallel()
	for _, m := range mutations {
		doc := patch(t, base(t, m.base), m.patch)
		_, _, first := compileValue(t, doc)
		_, _, second := compileValue(t, doc)
		if list(first) != list(second) {
			t.Errorf("%s: got\n%sthen\n%s", m.title(), list(first), list(second))
		}
	}
}
