package llmcall_test

import (
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/llmcall"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// TestWhatIsDescribedIsWhatArrives compares the description of a request with the request that the provider receives.
func TestWhatIsDescribedIsWhatArrives(t *testing.T) {
	t.Parallel()
	asked := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	state := func() map[string]any { return object{"topic": "heat", "secret": "s"} }
	for name, tt := range map[string]struct {
		req activities.Request
		// differs holds fields with another value in the description.
		differs object
	}{
		"prompts": {req: activities.Request{Config: object{"model": "m", "system_prompt": "Be brief.", "user_prompt": "Hello"}}},
		"settings": {
			req: activities.Request{Config: object{
				"model": "m", "user_prompt": "Hello", "temperature": 0.7, "top_p": 0.5, "max_tokens": 20.0, "seed": 3.0, "stop": []any{"x"},
			}},
			differs: object{"temperature": 0.7, "top_p": 0.5},
		},
		"no temperature": {
			req:     activities.Request{Config: object{"model": "m", "user_prompt": "Hello", "temperature": 0.0}},
			differs: object{"temperature": 0.0},
		},
		"a template that tells the time": {req: activities.Request{
			Metadata: object{"prompt_templates": true}, Config: object{"model": "m", "user_prompt": "${ .topic } at ${ now | todate }"}, State: state,
		}},
		"the state": {
			req:     activities.Request{Config: object{"model": "m", "system_prompt": "Sum up."}, State: state},
			differs: object{"messages": []any{object{"role": "system", "content": "Sum up."}, object{"role": "user", "content_from": "state"}}},
		},
		"a schema": {
			req:     activities.Request{Config: object{"model": "m", "user_prompt": "Hello", "output_schema": object{"type": "object"}}},
			differs: object{"response_format": "json_schema"},
		},
		"a repair": {
			req: activities.Request{
				Config: object{"model": "m", "user_prompt": "Hello", "output_schema": object{"type": "object", "required": []any{"n"}}},
				Repair: object{"answer": "seven", "violation": "no JSON"},
			},
			differs: object{"response_format": "json_schema"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, says(`{"n":1}`))
			x := newExecutor(t, llmcall.Config{BaseURL: p.URL, Now: time.Now})
			tt.req.NodeType, tt.req.NodeID, tt.req.RequestedAt = "llm_call", "ask", asked
			described := x.Capabilities(tt.req.Node()).Describe(tt.req)
			if _, err := x.Execute(t.Context(), tt.req); err != nil {
				t.Fatal(err)
			}
			if described["endpoint"] != p.URL {
				t.Errorf("endpoint %v", described["endpoint"])
			}
			body := p.Seen()[0].Body
			for member, v := range body {
				want, differs := tt.differs[member]
				if !differs {
					want = v
				}
				if !jsonvalue.Equal(described[member], want) {
					t.Errorf("%s is described as %v, want %v", member, described[member], want)
				}
			}
			if len(described) != len(body)+1 {
				t.Errorf("described %v, sent %v", described, body)
			}
			if text := string(jsonvalue.Canonical(described)); strings.Contains(text, sentinel) {
				t.Errorf("the key is described: %s", text)
			}
		})
	}
}

// TestNothingIsSaidOfWhatFails: a request that fails before it is sent has no description, and the key is not read.
func TestNothingIsSaidOfWhatFails(t *testing.T) {
	t.Parallel()
	x := newExecutor(t, llmcall.Config{})
	for name, req := range map[string]activities.Request{
		"another type":    {NodeType: "step", Config: object{"model": "m", "user_prompt": "x"}},
		"no model":        {NodeType: "llm_call", Config: object{"user_prompt": "x"}},
		"an empty prompt": {NodeType: "llm_call", Config: object{"model": "m", "user_prompt": " "}},
		"a template that fails": {
			NodeType: "llm_call", Metadata: object{"prompt_templates": true}, Config: object{"model": "m", "user_prompt": "${ error }"},
			State: func() map[string]any { return object{} },
		},
		"settings that the model does not take": {NodeType: "llm_call", Config: object{"model": "o1", "user_prompt": "x", "temperature": 0.2}},
	} {
		if d := x.Capabilities(req.Node()).Describe(req); d != nil {
			t.Errorf("%s: %v", name, d)
		}
	}
}
