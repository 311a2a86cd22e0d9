package agentloop_test

import (
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

func TestView(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 30)
	for _, c := range []struct {
		view         agentloop.View
		output, want string
	}{
		{agentloop.View{MaxChars: 20}, `{"a":1}`, `{"value":{"a":1}}`},
		{agentloop.View{MaxChars: 20}, `null`, `{"value":null}`},
		{agentloop.View{MaxChars: 5}, `{"a":1,"b":2}`, `{"json":"{\"a\":","next_offset":5,"of":13,"offset":0}`},
		{agentloop.View{MaxChars: 5, Offset: 10}, `{"a":1,"b":2}`, `{"json":":2}","of":13,"offset":10}`},
		{agentloop.View{MaxChars: 8, Offset: 28}, `"` + long + `"`, `{"of":30,"offset":28,"text":"éé"}`},
		{agentloop.View{MaxChars: 8, Offset: 99}, `"` + long + `"`, `{"of":30,"offset":30,"text":""}`},
		{agentloop.View{MaxChars: 8}, `[1,2,3,4,5,6,7]`, `{"items":[1,2,3,4],"next_offset":4,"of":7,"offset":0}`},
		{agentloop.View{MaxChars: 8, Offset: 5, Limit: 1}, `[1,2,3,4,5,6,7]`, `{"items":[6],"next_offset":6,"of":7,"offset":5}`},
		{agentloop.View{MaxChars: 8, Offset: 9}, `[1]`, `{"items":[],"of":1,"offset":1}`},
		{agentloop.View{MaxChars: 8}, `["0123456789"]`, `{"item_beginning":"\"0123456","item_bytes":12,"note":"This item is too long to be read at once. Pick a part of it with jq.","of":1,"offset":0}`},
		{agentloop.View{MaxChars: 50, JQ: `map(. + 1) # all`}, `[1,2]`, `{"items":[2,3],"of":2,"offset":0}`},
		{agentloop.View{MaxChars: 50, JQ: `.) | (.`}, `[1,2]`, `EXPRESSION_INVALID`},
		{agentloop.View{MaxChars: 50, JQ: `now`}, `[1,2]`, `EXPRESSION_FAILED`},
		{agentloop.View{MaxChars: 50, JQ: `[range(1e9)]`}, `[1,2]`, `EXPRESSION_LIMIT_EXCEEDED`},
	} {
		output, err := jsonvalue.Decode([]byte(c.output))
		if err != nil {
			t.Fatal(err)
		}
		v, failure := c.view.Of("t1.c1", map[string]any{"output": output})
		got := string(jsonvalue.Canonical(v))
		if failure != nil {
			got = string(failure.Code)
		}
		if got != c.want {
			t.Errorf("%+v of %s\ngot  %s\nwant %s", c.view, c.output, got, c.want)
		}
	}
	if _, failure := (agentloop.View{MaxChars: 9}).Of("t1.c1", map[string]any{"error": 1}); failure == nil || failure.Code != agentloop.RefUnknown {
		t.Errorf("%+v", failure)
	}
}

// FuzzView reads results in parts, as next_offset says, until their end: the parts of a text are the text, those of a list its items.
func FuzzView(f *testing.F) {
	f.Add(`[1,"two",{"three":[3]}]`, 5, 1, "")
	f.Add(`"a text\u0000 of é"`, 3, 0, "")
	f.Add(`{"a":[1,2,3]}`, 7, 2, ".a")
	f.Add(`[[],[[]]]`, 1, 0, "map(length)")
	f.Fuzz(func(t *testing.T, text string, most, limit int, program string) {
		value, err := jsonvalue.Decode([]byte(text))
		if err != nil || most < 1 || most > 100 || limit < 0 || len(text) > 2000 {
			t.Skip("results are JSON, and sizes are small to reach their ends")
		}
		whole, parts, items := "", "", 0
		if s, ok := value.(string); ok {
			whole = s
		} else {
			whole = string(jsonvalue.Canonical(value))
		}
		for offset := 0; ; {
			v, failure := agentloop.View{Offset: offset, Limit: limit, MaxChars: most, JQ: program}.Of("t1.c1", map[string]any{"output": value})
			if failure != nil {
				if program == "" {
					t.Fatalf("%+v", failure)
				}
				return
			}
			part := v.(map[string]any)
			for _, name := range []string{"text", "json"} {
				piece, _ := part[name].(string)
				parts += piece
			}
			list, _ := part["items"].([]any)
			items += len(list)
			if part["item_beginning"] != nil {
				items++
			}
			next, more := part["next_offset"].(float64)
			if !more {
				break
			}
			if int(next) <= offset {
				t.Fatalf("the part at %d is followed by that at %v", offset, next)
			}
			offset = int(next)
		}
		if list, ok := value.([]any); program == "" && (ok && items != len(list) || !ok && parts != "" && parts != whole) {
			t.Errorf("%d items, %q of %q", items, parts, whole)
		}
	})
}
