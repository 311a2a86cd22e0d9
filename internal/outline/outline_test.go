package outline_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/outline"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

var at = outline.Document{URI: "awp://runs/r/state"}

func TestWhatFitsIsWhole(t *testing.T) {
	t.Parallel()
	v := map[string]any{"a": []any{1.0, "x"}, "b": nil}
	text, whole := at.Show(v, 22, "")
	if !whole || string(text) != `{"a":[1,"x"],"b":null}` {
		t.Errorf("%s %v", text, whole)
	}
}

// TestLargeMembersAreReferences: small members stay, large ones say where they are, how large, and how they begin.
func TestLargeMembersAreReferences(t *testing.T) {
	t.Parallel()
	documents := make([]any, 112)
	for i := range documents {
		documents[i] = fmt.Sprintf("document %d %s", i, strings.Repeat("x", 400))
	}
	documents[0] = "first"
	state := map[string]any{
		"name": "Ada", "count": 3.0, "documents": documents, "text": strings.Repeat("ü\"", 5000),
		"nested": map[string]any{"a/b": strings.Repeat("y", 3000), "small": true},
	}
	text, whole := at.Show(state, 1500, "")
	if whole || len(text) > 1500 {
		t.Errorf("%d bytes, whole %v", len(text), whole)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	ref := got["documents"].(map[string]any)
	if got["name"] != "Ada" || got["count"] != 3.0 || ref["$ref"] != at.URI || ref["pointer"] != "/documents" || ref["kind"] != "array" ||
		ref["items"] != 112.0 || ref["bytes"] != float64(len(jsonvalue.Canonical(documents))) || ref["head"].([]any)[0] != "first" {
		t.Errorf("%s", text)
	}
	if head := got["text"].(map[string]any)["head"].(string); !strings.HasPrefix(state["text"].(string), head) || len(head) < 50 {
		t.Errorf("%s", text)
	}
	nested := got["nested"].(map[string]any)
	if nested["small"] != true || nested["a/b"].(map[string]any)["pointer"] != "/nested/a~1b" {
		t.Errorf("%s", text)
	}
}

// TestOutlinesKeepTheirLimit over random values: the text is JSON within the limit, and every reference leads to a value of its
// size.
func TestOutlinesKeepTheirLimit(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range soak.Size(500, 100, 2000) {
		v := value(random, 4)
		limit := outline.MinBytes + random.IntN(3000)
		text, whole := at.Show(v, limit, "")
		var got any
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if len(text) > limit || whole != (jsonvalue.Size(v, 0) <= limit) {
			t.Fatalf("%d bytes for a limit of %d, whole %v, value of %d", len(text), limit, whole, jsonvalue.Size(v, 0))
		}
		references(t, got, v)
	}
}

func references(t *testing.T, shown, v any) {
	object, ok := shown.(map[string]any)
	if !ok {
		return
	}
	if object["$ref"] == at.URI {
		target := v
		for _, token := range jsonvalue.PointerTokens(object["pointer"].(string)) {
			target = target.(map[string]any)[token]
		}
		if object["bytes"] != float64(jsonvalue.Size(target, 0)) {
			t.Errorf("%v refers to a value of %d bytes", object, jsonvalue.Size(target, 0))
		}
		return
	}
	for _, m := range object {
		references(t, m, v)
	}
}

// value makes a random value of up to some kilobytes.
func value(random *rand.Rand, depth int) any {
	switch kind := random.IntN(6); {
	case kind == 0 && depth > 0:
		list := make([]any, random.IntN(20))
		for i := range list {
			list[i] = value(random, depth-1)
		}
		return list
	case kind <= 2 && depth > 0:
		object := map[string]any{}
		for range random.IntN(20) {
			object[strings.Repeat("k~/\"", random.IntN(6))+fmt.Sprint(random.IntN(100))] = value(random, depth-1)
		}
		return object
	case kind == 3:
		return strings.Repeat("aü\u2028\"\n", random.IntN(400))
	case kind == 4:
		return random.Float64()
	default:
		return nil
	}
}

func TestATextIsMaskedBeforeItIsCut(t *testing.T) {
	t.Parallel()
	masked := outline.Document{URI: "u", Hide: func(s string) string { return strings.ReplaceAll(s, "hunter2-hunter2", "[hidden]") }}
	text, _ := masked.Show(strings.Repeat("hunter2-hunter2", 100), outline.MinBytes, "/t")
	if strings.Contains(string(text), "hunter2") || !strings.Contains(string(text), "[hidden]") {
		t.Errorf("%s", text)
	}
}
