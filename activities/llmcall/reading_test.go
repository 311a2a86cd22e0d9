package llmcall_test

import (
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities/llmcall"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// TestStructuredAnswersAreRead without the text that models put around them, and as strictly as any input.
func TestStructuredAnswersAreRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ answer, want, wrong string }{
		"thought aloud":           {"<think>\nMaybe {\"n\": 7}?\n</think>\n\n{\"n\":1}", `{"n":1}`, ""},
		"words before":            {`Here you are: {"n":1}`, `{"n":1}`, ""},
		"a bracket in words":      {`The list [as asked for, is {"n":1}. Done.`, `{"n":1}`, ""},
		"brackets in a text":      {`Sure: {"n":1,"s":"} \" {"} - that is it {really}`, `{"n":1,"s":"} \" {"}`, ""},
		"another block first":     {"```python\nprint(1)\n```\nand\n```json\n{\"n\":1}\n```", `{"n":1}`, ""},
		"a block of JSON counts":  {"```python\n{\"n\":2}\n```\nand\n```json\n{\"n\":1}\n```", `{"n":1}`, ""},
		"another schema first":    {`{"m":1} and then {"n":1}`, `{"n":1}`, ""},
		"the same twice":          {`{"n":1} and again {"n": 1}`, `{"n":1}`, ""},
		"a byte order mark":       {"\ufeff{\"n\":1}", `{"n":1}`, ""},
		"spaces without a width":  {"\u200b{\"n\":1}\u2060\u200b", `{"n":1}`, ""},
		"two that could be meant": {`{"n":1} or {"n":2}`, "", "several values"},
		"one member twice":        {`{"n":1,"n":2}`, "", "cannot be kept"},
		"a large number":          {`{"n":1e999}`, "", "cannot be kept"},
		"very deep":               {`{"n":1,"d":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`, "", "nested"},
		"no JSON":                 {"I cannot say.", "", "not JSON"},
	} {
		p := newProvider(t, says(tt.answer))
		got, err := newExecutor(t, llmcall.Config{BaseURL: p.URL, NoRepair: true}).Execute(t.Context(), request(object{"output_schema": schema()}))
		if tt.wrong != "" {
			if err == nil {
				t.Errorf("%s: took %v", name, got.Output)
				continue
			}
			wantFailure(t, err, problem.LLMOutputInvalid, tt.wrong)
			continue
		}
		if err != nil || text(t, got.Output) != tt.want {
			t.Errorf("%s: %v, %v", name, got.Output, err)
		}
	}
}
