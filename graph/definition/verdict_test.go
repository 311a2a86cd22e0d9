package definition_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/lint"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/soak"
	"github.com/workflows-engine/workflows-engine/schemas"
)

var publishedSchema = sync.OnceValue(func() *jsonschema.Schema {
	raw, err := jsonvalue.Decode(schemas.WorkflowDefinition())
	if err != nil {
		panic(err)
	}
	s, err := jsonschema.Compile(raw)
	if err != nil {
		panic(err)
	}
	return s
})

func compileValue(t testing.TB, v any) (*definition.Document, *definition.Program, problem.Findings) {
	t.Helper()
	d, err := definition.FromValue(v)
	if err != nil {
		t.Fatalf("FromValue: %v", err)
	}
	p, findings := definition.Compile(d, definition.Options{})
	if (p == nil) != findings.HasErrors() {
		t.Fatalf("program %v beside the findings\n%s", p != nil, list(findings))
	}
	return d, p, findings
}

// structural returns the findings that the protocol's schema would have, and whether one is the rule about interrupts.
func structural(findings problem.Findings) (structure problem.Findings, profile bool) {
	for _, f := range findings {
		switch f.Code {
		case problem.DefinitionSchema, problem.DefinitionSignature, problem.ExtensionNotNamed:
			structure = append(structure, f)
		case problem.InterruptInParallelBranch:
			profile = true
		}
	}
	return structure, profile
}

// TestMutations holds every row of the protocol's mutation table: the structural verdict, the verdict of the published
// schema, and whether there is a program. The golden file has the findings, one for each mistake.
func TestMutations(t *testing.T) {
	if len(mutations) != 182 {
		t.Fatalf("%d rows, want 182", len(mutations))
	}
	var b strings.Builder
	for i, m := range mutations {
		if m.number != i+1 {
			t.Fatalf("row %d is numbered %d", i+1, m.number)
		}
		doc := patch(t, base(t, m.base), m.patch)
		d, p, findings := compileValue(t, doc)
		structure, profile := structural(findings)

		want := m.verdict == refused
		if got := len(structure) > 0 || profile; got != want && otherVerdict[m.number] == "" {
			t.Errorf("%s: refused is %v, the protocol says %s\n%s", m.title(), got, m.verdict, list(findings))
		} else if got == want && otherVerdict[m.number] != "" {
			t.Errorf("%s: listed as another verdict, but it is the protocol's", m.title())
		}
		if got := len(publishedSchema().Validate(d.Value())) > 0; got != (len(structure) > 0) {
			t.Errorf("%s: the published schema refuses is %v, the structural check says %v", m.title(), got, !got)
		}
		if got := p != nil; got != m.program && m.number != 11 && m.number != 21 {
			t.Errorf("%s: a program is %v, want %v\n%s", m.title(), got, m.program, list(findings))
		}
		_, findings = lint.Compile(d, lint.Options{})
		fmt.Fprintf(&b, "%s\n%s", m.title(), list(findings))
	}
	golden(t, "mutations.golden", b.String())
}

// TestW32_SignedDocumentRuns shows the two rows in which this engine accepts more (spec: execution, W-32).
func TestW32_SignedDocumentRuns(t *testing.T) {
	t.Parallel()
	plain, _, _ := compileValue(t, base(t, "linear"))
	for _, lines := range []string{
		`set /signature {"alg":"EdDSA","keyId":"k","value":"a.b.c","more":1}`,
		`set /document/signature {"value":"a.b.c"}`,
		"set /signature {\"value\":\"other\"}\nset /document/signature {\"value\":\"a.b.c\"}",
	} {
		d, p, findings := compileValue(t, patch(t, base(t, "linear"), lines))
		if p == nil {
			t.Errorf("%s: refused\n%s", lines, list(findings))
		}
		if d.Hash() != plain.Hash() || string(d.Canonical()) != string(plain.Canonical()) {
			t.Errorf("%s: the hash covers the signature", lines)
		}
		if d.Signature()["value"] != "a.b.c" {
			t.Errorf("%s: the block is %v", lines, d.Signature())
		}
	}
	if plain.Signature() != nil {
		t.Errorf("an unsigned document has the block %v", plain.Signature())
	}
	for _, lines := range []string{
		`set /signature "a.b.c"`, `set /signature {}`, `set /signature null`, `set /document/signature {"value":1}`,
		`set /signature {"value":"a","alg":"RS256"}`, `set /document/signature {"value":"a","keyId":7}`,
	} {
		d, p, findings := compileValue(t, patch(t, base(t, "linear"), lines))
		if p != nil || len(findings) != 1 || findings[0].Code != problem.DefinitionSignature || findings[0].Keyword != "additionalProperties" {
			t.Errorf("%s: got\n%s", lines, list(findings))
		}
		if d.Signature() != nil {
			t.Errorf("%s: a malformed block counts: %v", lines, d.Signature())
		}
	}
}

// TestRandomMutations compares the structural check with the published schema on two thousand random changes, under the
// race detector on fewer, and shows that nothing makes Compile panic or contradict itself.
func TestRandomMutations(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(20, 26))
	names := []string{"linear", "routing", "parallel", "compute", "everything"}
	verdicts := map[bool]int{}
	mutations := soak.Size(500, 100, 2000)
	for i := range mutations {
		doc := any(base(t, names[i%len(names)]))
		for range 1 + rnd.IntN(2) {
			doc = mutate(rnd, doc)
		}
		d, _, findings := compileValue(t, doc)
		structure, _ := structural(findings)
		bySchema := len(publishedSchema().Validate(d.Value())) > 0
		if got := len(structure) > 0; got != bySchema {
			t.Fatalf("mutation %d: the structural check refuses is %v, the published schema says %v\n%s\n%s",
				i, got, bySchema, list(findings), d.Canonical())
		}
		verdicts[bySchema]++
	}
	if verdicts[true] < mutations/4 || verdicts[false] < mutations/7 {
		t.Errorf("the mutations are lopsided: %v", verdicts)
	}
}

// mutate changes one place of a document at random.
func mutate(rnd *rand.Rand, doc any) any {
	switch c := doc.(type) {
	case map[string]any:
		keys := jsonvalue.Keys(c)
		if len(keys) == 0 || rnd.IntN(12) == 0 {
			c[randomName(rnd)] = randomPart(rnd)
			return c
		}
		key := keys[rnd.IntN(len(keys))]
		switch rnd.IntN(10) {
		case 0:
			delete(c, key)
		case 1:
			c[key] = randomPart(rnd)
		case 2:
			c[randomName(rnd)] = c[key]
			delete(c, key)
		default:
			c[key] = mutate(rnd, c[key])
		}
		return c
	case []any:
		if len(c) == 0 || rnd.IntN(12) == 0 {
			return append(c, randomPart(rnd))
		}
		i := rnd.IntN(len(c))
		switch rnd.IntN(12) {
		case 0:
			return append(c[:i:i], c[i+1:]...)
		case 1:
			return append(c, c[i])
		default:
			c[i] = mutate(rnd, c[i])
		}
		return c
	}
	return randomPart(rnd)
}

func randomName(rnd *rand.Rand) string {
	names := []string{
		"id", "type", "config", "retry", "timeout", "metadata", "schema", "name", "version", "source", "target", "cases",
		"when", "default", "join", "n", "branches", "entry", "kind", "duration_ms", "duration", "until", "signal", "jq",
		"literal", "prompt", "prompt_ref", "resume_schema", "handler", "code_ref", "x", "", "input_mapping", "max_attempts",
	}
	return names[rnd.IntN(len(names))]
}

func randomPart(rnd *rand.Rand) any {
	parts := []any{
		nil, true, false, 0.0, 1.0, -1.0, 2.5, 3.0, "", " ", "x", "5s", ".a", "n_of_m", "all", "duration", "until", "signal",
		"a2a", "step", "wait", "switch", "parallel", "set_state", "interrupt", "end", "start", "llm_call", "tool_call",
		"subworkflow", "agent_delegate",
	}
	switch rnd.IntN(6) {
	case 0:
		return []any{parts[rnd.IntN(len(parts))]}
	case 1:
		return map[string]any{randomName(rnd): parts[rnd.IntN(len(parts))]}
	case 2:
		if rnd.IntN(2) == 0 {
			return map[string]any{}
		}
		return []any{}
	}
	return parts[rnd.IntN(len(parts))]
}
