package definition_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

func decode(t testing.TB, text string) any {
	t.Helper()
	v, err := jsonvalue.Decode([]byte(text))
	if err != nil {
		t.Fatalf("decoding %s: %v", text, err)
	}
	return v
}

func object(t testing.TB, text string) map[string]any {
	t.Helper()
	m, ok := decode(t, text).(map[string]any)
	if !ok {
		t.Fatalf("%s is no object", text)
	}
	return m
}

func rules(t testing.TB, text string) *definition.StateRules {
	t.Helper()
	r, err := definition.NewStateRules(object(t, text))
	if err != nil {
		t.Fatalf("NewRules(%s): %v", text, err)
	}
	return r
}

// TestReducers holds the rows observed of the protocol (spec: execution, 3.3); "absent" stands for no previous value.
func TestReducers(t *testing.T) {
	t.Parallel()
	tests := []struct{ reducer, previous, value, want string }{
		{"overwrite", `absent`, `1`, `1`},
		{"overwrite", `{"a":1}`, `null`, `null`},
		{"overwrite", `[1]`, `[2]`, `[2]`},
		{"append", `absent`, `1`, `[1]`},
		{"append", `[1]`, `[2,3]`, `[1,2,3]`},
		{"append", `[1]`, `null`, `[1,null]`},
		{"append", `[1]`, `[[2]]`, `[1,[2]]`},
		{"append", `[1]`, `[]`, `[1]`},
		{"append", `[1]`, `{"a":1}`, `[1,{"a":1}]`},
		{"append", `"str"`, `2`, `[2]`},
		{"append", `null`, `2`, `[2]`},
		{"append", `{"a":1}`, `2`, `[2]`},
		{"merge", `{"a":{"x":1,"y":[1]},"b":1}`, `{"a":{"y":[2],"z":1},"b":null,"c":{"d":1}}`, `{"a":{"x":1,"y":[2],"z":1},"b":null,"c":{"d":1}}`},
		{"merge", `{"a":1}`, `null`, `{"a":1}`},
		{"merge", `{"a":1}`, `[1]`, `{"a":1}`},
		{"merge", `{"a":1}`, `7`, `{"a":1}`},
		{"merge", `5`, `7`, `{}`},
		{"merge", `absent`, `7`, `{}`},
		{"merge", `5`, `{"a":1}`, `{"a":1}`},
		{"merge", `[1]`, `{"a":1}`, `{"a":1}`},
		{"merge", `{"a":{"b":1}}`, `{"a":5}`, `{"a":5}`},
		{"merge", `{"a":null}`, `{"a":{"b":1}}`, `{"a":{"b":1}}`},
	}
	for _, tt := range tests {
		t.Run(tt.reducer+" "+tt.previous+" "+tt.value, func(t *testing.T) {
			t.Parallel()
			r := rules(t, `{"properties":{"k":{"reducer":"`+tt.reducer+`"}}}`)
			before := map[string]any{"other": "kept"}
			if tt.previous != "absent" {
				before["k"] = decode(t, tt.previous)
			}
			got, err := r.Apply(before, map[string]any{"k": decode(t, tt.value)})
			if err != nil {
				t.Fatal(err)
			}
			if text := string(jsonvalue.Canonical(got["k"])); text != tt.want {
				t.Errorf("got %s, want %s", text, tt.want)
			}
			if got["other"] != "kept" {
				t.Errorf("other members are lost: %v", got)
			}
		})
	}
}

func TestReducersAsWritten(t *testing.T) {
	t.Parallel()
	r := rules(t, `{"properties":{
		"a":{"reducer":"sum"},"b":{"reducer":null},"c":{"reducer":5},"d":{"reducer":""},"e":{"type":"string"},
		"f":true,"g":{"properties":{"h":{"reducer":"custom"}}},"i":{"reducer":["append"]},"j":{"reducer":"append"}}}`)
	want := map[string]definition.Reducer{"a": "sum", "c": "5", "d": "", "i": `["append"]`, "j": definition.ReducerAppend}
	if got := fmt.Sprint(r.Reducers); got != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, key := range []string{"b", "e", "f", "g", "unknown"} {
		got, err := r.Apply(map[string]any{key: []any{1.0}}, map[string]any{key: "new"})
		if err != nil || got[key] != "new" {
			t.Errorf("%s is not overwritten: %v, %v", key, got, err)
		}
	}
	if _, err := r.Apply(nil, map[string]any{"d": 1.0}); err == nil {
		t.Error(`the reducer "" is taken for a known one`)
	}
}

// TestUnknownReducer shows that what comes before the failing key, in the protocol's order, has been merged.
func TestUnknownReducer(t *testing.T) {
	t.Parallel()
	r := rules(t, `{"properties":{"m":{"reducer":"sum"}}}`)
	got, err := r.Apply(map[string]any{"m": 1.0}, object(t, `{"z":1,"m":2,"a":3,"10":4,"9":5}`))
	if text := string(jsonvalue.Canonical(got)); text != `{"9":5,"10":4,"a":3,"m":1}` {
		t.Errorf("got %s", text)
	}
	pe, ok := errors.AsType[*problem.Error](err)
	if !ok || pe.Code != problem.EngineFailure || !strings.Contains(pe.Message, `"m"`) || pe.At.Pointer != "/state_schema/properties/m/reducer" {
		t.Errorf("got %#v", err)
	}
}

func TestNewRulesRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ schema, want string }{
		{`{"properties":{"a":{"reducer":"custom"}}}`, "custom"},
		{`{"type":"objekt"}`, `at /type`},
		{`{"$schema":"http://json-schema.org/draft-08/schema#"}`, "unknown dialect"},
		{`{"properties":{"a":{"$ref":"#/nowhere"}}}`, "at /properties/a/$ref"},
		{`{"properties":{"a":{"pattern":"("}}}`, "at /properties/a/pattern"},
	}
	for _, tt := range tests {
		if _, err := definition.NewStateRules(object(t, tt.schema)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("NewRules(%s): got %v, want %q in it", tt.schema, err, tt.want)
		}
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	// The reducer of a property is no part of the schema, even where reducer would be a keyword's argument.
	r := rules(t, `{"type":"object","required":["a"],"properties":{"a":{"reducer":"append","type":"array"},"reducer":{"type":"string"}}}`)
	if vs := r.Validate(object(t, `{"a":[],"reducer":"x"}`)); vs != nil {
		t.Errorf("a good state is refused: %v", vs)
	}
	vs := r.Validate(object(t, `{"a":1,"reducer":2}`))
	if len(vs) != 2 || vs[0].InstancePath != "/a" || vs[1].InstancePath != "/reducer" {
		t.Errorf("got %v", vs)
	}
	if vs := r.Validate(nil); len(vs) != 1 || vs[0].Keyword != "required" {
		t.Errorf("a nil state counts as empty: %v", vs)
	}
}

func TestOverlay(t *testing.T) {
	t.Parallel()
	before, payload := object(t, `{"a":[1],"b":2}`), object(t, `{"a":[9],"c":null}`)
	got := definition.OverlayState(before, payload)
	if text := string(jsonvalue.Canonical(got)); text != `{"a":[9],"b":2,"c":null}` {
		t.Errorf("got %s", text)
	}
	if text := string(jsonvalue.Canonical(before)); text != `{"a":[1],"b":2}` {
		t.Errorf("the state was changed: %s", text)
	}
	if got := definition.OverlayState(nil, nil); got == nil {
		t.Error("the result is nil")
	}
}

// TestArgumentsNeverChange applies random deltas to random states, fewer under the race detector, and compares with a slow
// version that copies everything first.
func TestArgumentsNeverChange(t *testing.T) {
	t.Parallel()
	r := rules(t, `{"properties":{"a":{"reducer":"append"},"b":{"reducer":"merge"},"c":{"reducer":"overwrite"}}}`)
	rnd := rand.New(rand.NewPCG(1, 2))
	current := map[string]any{}
	for range soak.Size(3000, 500, 3000) {
		delta := map[string]any{}
		for _, key := range []string{"a", "b", "c", "d"} {
			if rnd.IntN(2) == 0 {
				delta[key] = randomValue(rnd, 3)
			}
		}
		stateText, deltaText := string(jsonvalue.Canonical(current)), string(jsonvalue.Canonical(delta))
		next, err := r.Apply(current, delta)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(jsonvalue.Canonical(next)), string(jsonvalue.Canonical(slowApply(current, delta))); got != want {
			t.Fatalf("state %s, delta %s: got %s, want %s", stateText, deltaText, got, want)
		}
		if got := string(jsonvalue.Canonical(current)); got != stateText {
			t.Fatalf("the state %s became %s", stateText, got)
		}
		if got := string(jsonvalue.Canonical(delta)); got != deltaText {
			t.Fatalf("the delta %s became %s", deltaText, got)
		}
		current = next
		if len(stateText) > 4000 {
			current = map[string]any{}
		}
	}
}

// slowApply is the table of the protocol written down plainly, over deep copies.
func slowApply(current, delta map[string]any) map[string]any {
	next := jsonvalue.CloneMap(current)
	for key, value := range jsonvalue.CloneMap(delta) {
		switch key {
		case "a":
			list, ok := next[key].([]any)
			if !ok {
				list = []any{}
			}
			if added, ok := value.([]any); ok {
				next[key] = append(list, added...)
			} else {
				next[key] = append(list, value)
			}
		case "b":
			target, ok := next[key].(map[string]any)
			if !ok {
				target = map[string]any{}
			}
			if chunk, ok := value.(map[string]any); ok {
				slowMerge(target, chunk)
			}
			next[key] = target
		default:
			next[key] = value
		}
	}
	return next
}

func slowMerge(target, chunk map[string]any) {
	for key, value := range chunk {
		inner, ok := value.(map[string]any)
		if previous, was := target[key].(map[string]any); ok && was {
			slowMerge(previous, inner)
		} else {
			target[key] = value
		}
	}
}

func randomValue(rnd *rand.Rand, depth int) any {
	switch n := rnd.IntN(8); {
	case n == 0:
		return nil
	case n == 1:
		return float64(rnd.IntN(5))
	case n == 2:
		return string(rune('p' + rnd.IntN(4)))
	case depth > 0 && n < 5:
		list := make([]any, rnd.IntN(3))
		for i := range list {
			list[i] = randomValue(rnd, depth-1)
		}
		return list
	case depth > 0:
		m := map[string]any{}
		for range rnd.IntN(4) {
			m[string(rune('x'+rnd.IntN(3)))] = randomValue(rnd, depth-1)
		}
		return m
	}
	return true
}

// BenchmarkApply merges a small delta into a state of about 1 MiB. It must not depend on the state's size.
func BenchmarkApply(b *testing.B) {
	r := rules(b, `{"properties":{"log":{"reducer":"append"},"facts":{"reducer":"merge"}}}`)
	current := map[string]any{"log": []any{}, "facts": map[string]any{}}
	for i := range 1024 {
		current[fmt.Sprintf("document%d", i)] = map[string]any{"text": strings.Repeat("x", 900), "n": float64(i)}
	}
	for i := range 1000 {
		current["log"] = append(current["log"].([]any), map[string]any{"line": float64(i)})
		current["facts"].(map[string]any)[fmt.Sprintf("f%d", i)] = map[string]any{"v": float64(i)}
	}
	delta := map[string]any{"log": "one more", "facts": map[string]any{"f1": map[string]any{"v": 2.0}}, "answer": 42.0}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Apply(current, delta); err != nil {
			b.Fatal(err)
		}
	}
}
