package definition_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

type members = map[string]any

// TestValues: what the metadata asks for is filled in, and nothing else.
func TestValues(t *testing.T) {
	t.Parallel()
	state := members{"name": "Ada", "n": 1.0, "list": []any{"x"}}
	prompts, arguments := members{definition.PromptTemplates: true}, members{definition.ArgumentTemplates: true}
	for _, tt := range []struct {
		what string
		node definition.Templates
		want members
		code problem.Code
	}{
		{"no metadata", definition.Templates{Type: "llm_call", Config: members{"prompt": "${ .name }"}}, nil, ""},
		{"not true", definition.Templates{Type: "llm_call", Config: members{"prompt": "${ .name }"}, Metadata: members{definition.PromptTemplates: "true"}}, nil, ""},
		{"of another type", definition.Templates{Type: "tool_call", Config: members{"prompt": "${ .name }"}, Metadata: prompts}, nil, ""},
		{"a step", definition.Templates{Type: "step", Config: members{"arguments": members{"a": "${ .name }"}}, Metadata: arguments}, nil, ""},
		{"no prompt", definition.Templates{Type: "llm_call", Config: members{"model": "m"}, Metadata: prompts}, nil, ""},
		{"prompts", definition.Templates{Type: "llm_call", Config: members{"model": "${ .name }", "system_prompt": "For ${ .name }", "prompt": members{"jq": ".list"}}, Metadata: prompts},
			members{"system_prompt": "For Ada", "prompt": `["x"]`}, ""},
		{"the prompt that is read", definition.Templates{Type: "llm_call", Config: members{"user_prompt": members{"literal": "${ .name }"}, "prompt": "${ error }"}, Metadata: prompts},
			members{"user_prompt": "${ .name }"}, ""},
		{"the time", definition.Templates{Type: "llm_call", Config: members{"prompt": "${ now | todate }"}, Metadata: prompts}, members{"prompt": "2030-01-01T00:00:00Z"}, ""},
		{"a state with a template in it", definition.Templates{Type: "llm_call", Config: members{"prompt": "${ .name | \"$\" + \"{ .n }\" }"}, Metadata: prompts}, members{"prompt": "${ .n }"}, ""},
		{"no arguments", definition.Templates{Type: "tool_call", Config: members{"tool": "${ .name }"}, Metadata: arguments}, nil, ""},
		{"arguments", definition.Templates{Type: "tool_call", Config: members{"tool": "${ .name }", "arguments": members{
			"a": "${ .n }", "b": []any{members{"jq": ".n + 1"}, 7.0, "plain ${ .n }"}, "c": members{"d/~": members{"literal": "${ .n }"}}}}, Metadata: arguments},
			members{"arguments": members{"a": 1.0, "b": []any{2.0, 7.0, "plain ${ .n }"}, "c": members{"d/~": "${ .n }"}}}, ""},
		{"a program that fails", definition.Templates{Type: "llm_call", Config: members{"prompt": "${ .n.x }"}, Metadata: prompts}, nil, problem.LLMConfigInvalid},
		{"no text", definition.Templates{Type: "llm_call", Config: members{"prompt": 1.0}, Metadata: prompts}, nil, problem.LLMConfigInvalid},
		{"a broken argument", definition.Templates{Type: "tool_call", Config: members{"arguments": members{"a": "${ .n | }"}}, Metadata: arguments}, nil, problem.ExpressionInvalid},
		{"an argument that fails", definition.Templates{Type: "tool_call", Config: members{"arguments": []any{members{"jq": ".n.x"}}}, Metadata: arguments}, nil, problem.ExpressionFailed},
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
		n := definition.Templates{Type: "llm_call", Config: members{"prompt": strings.ReplaceAll(text, "${", "$${")}, Metadata: members{definition.PromptTemplates: true}}
		if got, err := n.Values(nil, expr.Env{}); err != nil || got["prompt"] != text {
			t.Errorf("%q became %q, %v", text, got, err)
		}
	})
}
