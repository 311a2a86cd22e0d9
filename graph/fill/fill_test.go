package fill_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/fill"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

type object = map[string]any

// TestValues: what the metadata asks for is filled in, and nothing else.
func TestValues(t *testing.T) {
	t.Parallel()
	state := object{"name": "Ada", "n": 1.0, "list": []any{"x"}}
	prompts, arguments := object{fill.Prompts: true}, object{fill.Arguments: true}
	for _, tt := range []struct {
		what string
		node fill.Node
		want object
		code problem.Code
	}{
		{"no metadata", fill.Node{Type: "llm_call", Config: object{"prompt": "${ .name }"}}, nil, ""},
		{"not true", fill.Node{Type: "llm_call", Config: object{"prompt": "${ .name }"}, Metadata: object{fill.Prompts: "true"}}, nil, ""},
		{"of another type", fill.Node{Type: "tool_call", Config: object{"prompt": "${ .name }"}, Metadata: prompts}, nil, ""},
		{"a step", fill.Node{Type: "step", Config: object{"arguments": object{"a": "${ .name }"}}, Metadata: arguments}, nil, ""},
		{"no prompt", fill.Node{Type: "llm_call", Config: object{"model": "m"}, Metadata: prompts}, nil, ""},
		{"prompts", fill.Node{Type: "llm_call", Config: object{"model": "${ .name }", "system_prompt": "For ${ .name }", "prompt": object{"jq": ".list"}}, Metadata: prompts},
			object{"system_prompt": "For Ada", "prompt": `["x"]`}, ""},
		{"the prompt that is read", fill.Node{Type: "llm_call", Config: object{"user_prompt": object{"literal": "${ .name }"}, "prompt": "${ error }"}, Metadata: prompts},
			object{"user_prompt": "${ .name }"}, ""},
		{"the time", fill.Node{Type: "llm_call", Config: object{"prompt": "${ now | todate }"}, Metadata: prompts}, object{"prompt": "2030-01-01T00:00:00Z"}, ""},
		{"a state with a template in it", fill.Node{Type: "llm_call", Config: object{"prompt": "${ .name | \"$\" + \"{ .n }\" }"}, Metadata: prompts}, object{"prompt": "${ .n }"}, ""},
		{"no arguments", fill.Node{Type: "tool_call", Config: object{"tool": "${ .name }"}, Metadata: arguments}, nil, ""},
		{"arguments", fill.Node{Type: "tool_call", Config: object{"tool": "${ .name }", "arguments": object{
			"a": "${ .n }", "b": []any{object{"jq": ".n + 1"}, 7.0, "plain ${ .n }"}, "c": object{"d/~": object{"literal": "${ .n }"}}}}, Metadata: arguments},
			object{"arguments": object{"a": 1.0, "b": []any{2.0, 7.0, "plain ${ .n }"}, "c": object{"d/~": "${ .n }"}}}, ""},
		{"a program that fails", fill.Node{Type: "llm_call", Config: object{"prompt": "${ .n.x }"}, Metadata: prompts}, nil, problem.LLMConfigInvalid},
		{"no text", fill.Node{Type: "llm_call", Config: object{"prompt": 1.0}, Metadata: prompts}, nil, problem.LLMConfigInvalid},
		{"a broken argument", fill.Node{Type: "tool_call", Config: object{"arguments": object{"a": "${ .n | }"}}, Metadata: arguments}, nil, problem.ExpressionInvalid},
		{"an argument that fails", fill.Node{Type: "tool_call", Config: object{"arguments": []any{object{"jq": ".n.x"}}}, Metadata: arguments}, nil, problem.ExpressionFailed},
	} {
		t.Run(tt.what, func(t *testing.T) {
			t.Parallel()
			asked := 0
			got, err := tt.node.Values(func() map[string]any { asked++; return state }, expr.Env{Now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)})
			if tt.code != "" {
				if !errors.Is(err, tt.code) {
					t.Errorf("%v, %v", got, err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %v, %v, want %v", got, err, tt.want)
			}
			if asked > 1 {
				t.Errorf("the state is asked for %d times", asked)
			}
		})
	}
}

// FuzzPrompts: an escaped text comes out as it was.
func FuzzPrompts(f *testing.F) {
	for _, seed := range []string{"", "plain", "${ .a }", "$${", "$$${ x", "${ \"}\" }", `${ "\(1 + "}")" }`, "${ {a: [1}] }", `${ "\`, "${", "$", "${}}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n := fill.Node{Type: "llm_call", Config: object{"prompt": strings.ReplaceAll(text, "${", "$${")}, Metadata: object{fill.Prompts: true}}
		if got, err := n.Values(nil, expr.Env{}); err != nil || got["prompt"] != text {
			t.Errorf("%q became %q, %v", text, got, err)
		}
	})
}
