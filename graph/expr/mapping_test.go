package expr_test

import (
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// TestMappingMembers is the table of definition, 11.2, and of execution, 4.4.
func TestMappingMembers(t *testing.T) {
	t.Parallel()
	const state = `{"x":"X","a":1,"b":2,"l":[1,2]}`
	for _, test := range []struct{ value, want string }{
		{`{"jq":".x"}`, `"X"`},
		{`{"jq":".x","literal":5}`, `"X"`},
		{`{"jq":".l[]"}`, `[1,2]`},
		{`{"jq":".missing"}`, `null`},
		{`{"jq":""}`, `invalid`},
		{`{"jq":" \n "}`, `invalid`},
		{`{"jq":5}`, `invalid`},
		{`{"jq":null}`, `invalid`},
		{`{"jq":".x |"}`, `invalid`},
		{`{"jq":".\n| .x"}`, `"X"`},
		{`{"jq":".x\n# and a comment"}`, `"X"`},
		{`{"jq":".x.y"}`, `error`},
		{`{"literal":{"jq":".x","t":"${ .x }"}}`, `{"jq":".x","t":"${ .x }"}`},
		{`{"literal":null}`, `null`},
		{`{"other":".x"}`, `{"other":".x"}`},
		{`{}`, `{}`},
		{`"${ .x }"`, `"X"`},
		{`"${.x}"`, `"X"`},
		{`"  ${.x}  "`, `"X"`},
		{`"\n\t${\n .x \r\n}\u00a0\ufeff"`, `"X"`},
		{`"${ .missing }"`, `null`},
		{`"${ .x, .x }"`, `["X","X"]`},
		{`"${ {a: .a} }"`, `{"a":1}`},
		{`"${ }"`, `invalid`},
		{`"${}"`, `"${}"`},
		{`"${ .a\n+ .b }"`, `"${ .a\n+ .b }"`},
		{`"${ .a\u2028+ .b }"`, `"${ .a` + "\u2028" + `+ .b }"`},
		{`"${ .a } and ${ .b }"`, `invalid`},
		{`"${ .x } ${ .y }"`, `invalid`},
		{`"plain ${ .x }"`, `"plain ${ .x }"`},
		{`"${ .x } plain"`, `"${ .x } plain"`},
		{`"a ${ .x } b"`, `"a ${ .x } b"`},
		{`"${ .x"`, `"${ .x"`},
		{`"$ {.x}"`, `"$ {.x}"`},
		{`".x"`, `".x"`},
		{`" untrimmed "`, `" untrimmed "`},
		{`""`, `""`},
		{`5`, `5`},
		{`true`, `true`},
		{`null`, `null`},
		{`["${ .x }",{"jq":".x"}]`, `["${ .x }",{"jq":".x"}]`},
		{`{"nested":{"jq":".x"}}`, `{"nested":{"jq":".x"}}`},
	} {
		t.Run(test.value, func(t *testing.T) {
			t.Parallel()
			m, problems := expr.CompileMapping(object(t, `{"m":`+test.value+`}`))
			e, isProblem := problem.As(problems["m"])
			if isProblem != (test.want == "invalid") || isProblem && e.Code != problem.ExpressionInvalid {
				t.Fatalf("problems %v", problems)
			}
			got, err := m.Eval(object(t, state))
			if (err != nil) != (test.want == "invalid" || test.want == "error") {
				t.Fatalf("%v, %v", got, err)
			}
			if err != nil {
				if e, ok := problem.As(err); !ok || e.At.Pointer != "/m" {
					t.Errorf("the error does not name the member: %v", err)
				}
				return
			}
			if text := string(jsonvalue.Canonical(got)); text != `{"m":`+test.want+`}` {
				t.Errorf("%s, want %s", text, test.want)
			}
		})
	}
}

func TestMapping(t *testing.T) {
	t.Parallel()
	raw := object(t, `{"b":{"jq":".n.x"},"10":"${ .n.y }","9":"${ now }","lit":{"literal":[1]}}`)
	m, problems := expr.CompileMapping(raw)
	if problems != nil {
		t.Fatal(problems)
	}
	// The first member in the protocol's order fails first.
	_, err := m.Eval(object(t, `{"n":5}`))
	if e, ok := problem.As(err); !ok || e.At.Pointer != "/9" {
		t.Errorf("%v", err)
	}
	_, err = m.EvalAt(object(t, `{"n":5}`), expr.Env{Now: time.Unix(1, 0)})
	if e, ok := problem.As(err); !ok || e.At.Pointer != "/10" {
		t.Errorf("%v", err)
	}
	got, err := m.EvalAt(object(t, `{"n":{"x":1,"y":2}}`), expr.Env{Now: time.Unix(1, 0)})
	if text := string(jsonvalue.Canonical(got)); err != nil || text != `{"9":1,"10":2,"b":1,"lit":[1]}` {
		t.Errorf("%s, %v", text, err)
	}
	// What the definition's author does to the value afterwards does not matter.
	raw["lit"].(map[string]any)["literal"].([]any)[0] = 2.0
	got, err = m.EvalAt(object(t, `{"n":{}}`), expr.Env{Now: time.Unix(1, 0)})
	if text := string(jsonvalue.Canonical(got["lit"])); err != nil || text != `[1]` {
		t.Errorf("%s, %v", text, err)
	}
	empty, problems := expr.CompileMapping(nil)
	if got, err := empty.Eval(nil); err != nil || got == nil || len(got) > 0 || problems != nil {
		t.Errorf("an empty mapping gives %v, %v, %v", got, err, problems)
	}
}
