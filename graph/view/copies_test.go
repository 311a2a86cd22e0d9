package view

import (
	"reflect"
	"testing"
)

// TestStatesThatShareMembersAreCopiedOnce: a large member is copied for the state and not again for each wait that sees more beside it, and
// no copy is a part of the run.
func TestStatesThatShareMembersAreCopiedOnce(t *testing.T) {
	t.Parallel()
	large := []any{map[string]any{"a": "b"}, 1.0}
	state := map[string]any{"large": large, "part": large[:1], "list": []any(nil), "object": map[string]any(nil)}
	seen := map[string]any{"large": large, "item": 1.0}
	copies := stateCopies{}
	one, two := copies.of(state), copies.of(seen)
	if !reflect.DeepEqual(one, state) || !reflect.DeepEqual(two, seen) {
		t.Fatalf("copied %v as %v and %v as %v", state, one, seen, two)
	}
	first, second := one["large"].([]any), two["large"].([]any)
	if &first[0] != &second[0] {
		t.Error("the member was copied twice")
	}
	first[0].(map[string]any)["a"] = "c"
	if large[0].(map[string]any)["a"] != "b" {
		t.Error("the copy is a part of the run")
	}
}
