package definition_test

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// FuzzApply merges any delta into any state, by known reducers and as any state_schema says: the former as the slow version does, and
// neither changes its arguments.
func FuzzApply(f *testing.F) {
	f.Add([]byte(`{"properties":{"a":{"reducer":"append"},"b":{"reducer":"merge"},"c":{"reducer":"sum"}}}`), []byte(`{"a":[1],"b":{"x":{"y":1}}}`),
		[]byte(`{"a":2,"b":{"x":{"z":null}},"c":3}`))
	f.Add([]byte(`{"type":"object","required":["a"]}`), []byte(`{"a":"text","b":[1]}`), []byte(`{"a":[[1]],"b":{"":{}}}`))
	known := rules(f, `{"properties":{"a":{"reducer":"append"},"b":{"reducer":"merge"},"c":{"reducer":"overwrite"}}}`)
	f.Fuzz(func(t *testing.T, schema, state1, delta []byte) {
		var objects [3]map[string]any
		for i, text := range [][]byte{schema, state1, delta} {
			v, err := jsonvalue.Decode(text)
			var ok bool
			if objects[i], ok = v.(map[string]any); err != nil || !ok {
				t.Skip("schemas, states and outputs are objects")
			}
		}
		before, change := objects[1], objects[2]
		beforeText, changeText := string(jsonvalue.Canonical(before)), string(jsonvalue.Canonical(change))
		unchanged := func() {
			if now := string(jsonvalue.Canonical(before)); now != beforeText {
				t.Fatalf("the state %s became %s", beforeText, now)
			}
			if now := string(jsonvalue.Canonical(change)); now != changeText {
				t.Fatalf("the delta %s became %s", changeText, now)
			}
		}
		got, err := known.Apply(before, change)
		if want := slowApply(before, change); err != nil || !jsonvalue.Equal(got, want) {
			t.Fatalf("got %s, %v; want %s", jsonvalue.Canonical(got), err, jsonvalue.Canonical(want))
		}
		unchanged()
		r, err := definition.NewStateRules(objects[0])
		if err != nil {
			return
		}
		next, err := r.Apply(before, change)
		if _, coded := problem.As(err); err != nil && !coded {
			t.Fatalf("refused without a code: %v", err)
		}
		if first, second := r.Validate(next), r.Validate(next); len(first) != len(second) {
			t.Fatalf("validated twice: %v, %v", first, second)
		}
		unchanged()
	})
}
