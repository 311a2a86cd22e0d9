package jsondelta_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsondelta"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

func decode(t testing.TB, text string) map[string]any {
	t.Helper()
	v, err := jsonvalue.Decode([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v.(map[string]any)
}

func TestDiff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, to, delta string }{
		{`{}`, `{}`, `{}`},
		{`{"a":1,"b":[1,{"c":null}]}`, `{"b":[1,{"c":null}],"a":1}`, `{}`},
		{`{}`, `{"a":{}}`, `{"set":{"a":{}}}`},
		{`{"a":1,"b":2}`, `{"b":3}`, `{"drop":["a"],"set":{"b":3}}`},
		{`{"a":{"b":1,"c":2}}`, `{"a":{"b":1,"c":3}}`, `{"in":{"a":{"set":{"c":3}}}}`},
		{`{"a":{"b":1}}`, `{"a":{"c":1}}`, `{"set":{"a":{"c":1}}}`},
		{`{"a":[]}`, `{"a":{}}`, `{"set":{"a":{}}}`},
		{`{"a":null}`, `{"a":false}`, `{"set":{"a":false}}`},
		{`{"a":[1]}`, `{"a":[1,2,3]}`, `{"in":{"a":{"add":[2,3]}}}`},
		{`{"a":[1,2,3]}`, `{"a":[1]}`, `{"in":{"a":{"keep":1}}}`},
		{`{"a":[1,2,3]}`, `{"a":[1,9,3]}`, `{"in":{"a":{"put":{"1":9}}}}`},
		{`{"a":[1,{"x":1,"y":1}]}`, `{"a":[1,{"x":1,"y":2},3]}`, `{"in":{"a":{"add":[3],"in":{"1":{"set":{"y":2}}}}}}`},
		{`{"a":[1,2,3]}`, `{"a":[]}`, `{"set":{"a":[]}}`},
		{`{"a":[0,1,2,3,4,5,6,7,8,9,10,11]}`, `{"a":[1,2,3,4,5,6,7,8,9,10,11]}`, `{"set":{"a":[1,2,3,4,5,6,7,8,9,10,11]}}`},
	} {
		from, to := decode(t, c.from), decode(t, c.to)
		d := jsondelta.Diff(from, to)
		if got := string(jsonvalue.Canonical(d)); got != c.delta {
			t.Errorf("%s to %s: got %s, want %s", c.from, c.to, got, c.delta)
		}
		got, err := jsondelta.Apply(from, d)
		if err != nil || !jsonvalue.Equal(got, to) {
			t.Errorf("%s and %s: got %v, %v", c.from, c.delta, got, err)
		}
		if string(jsonvalue.Canonical(from)) != string(jsonvalue.Canonical(decode(t, c.from))) {
			t.Errorf("%s was changed to %v", c.from, from)
		}
	}
}

func TestMisfits(t *testing.T) {
	t.Parallel()
	from := `{"a":1,"l":[1,2],"o":{"x":1}}`
	for _, delta := range []string{
		`{"what":1}`, `{"set":1}`, `{"drop":1}`, `{"drop":["z"]}`, `{"drop":[1]}`, `{"in":[]}`, `{"in":{"z":{}}}`, `{"in":{"a":{}}}`,
		`{"in":{"o":1}}`, `{"in":{"l":1}}`, `{"in":{"l":{"keep":3}}}`, `{"in":{"l":{"keep":-1}}}`, `{"in":{"l":{"keep":0.5}}}`,
		`{"in":{"l":{"put":{"2":1}}}}`, `{"in":{"l":{"put":{"x":1}}}}`, `{"in":{"l":{"put":[]}}}`, `{"in":{"l":{"in":{"0":{}}}}}`,
		`{"in":{"l":{"add":1}}}`, `{"in":{"l":{"set":{}}}}`,
	} {
		for _, apply := range []func(map[string]any, any) (map[string]any, error){jsondelta.Apply, jsondelta.Advance} {
			if got, err := apply(decode(t, from), decode(t, delta)); !errors.Is(err, problem.HistoryCorrupt) {
				t.Errorf("%s: got %v, %v", delta, got, err)
			}
		}
	}
	if _, err := jsondelta.Apply(decode(t, from), "text"); !errors.Is(err, problem.HistoryCorrupt) {
		t.Errorf("got %v", err)
	}
}

// TestRandomSteps changes an object at random, again and again, by replacing what is on the way to a change, and holds
// the deltas against the whole values.
func TestRandomSteps(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		state, copied, owned := map[string]any{}, map[string]any{}, map[string]any{}
		for step := range 60 {
			next := change(r, state).(map[string]any)
			d := jsondelta.Diff(state, next)
			text := jsonvalue.Canonical(d)
			var err error
			if copied, err = jsondelta.Apply(copied, decode(t, string(text))); err != nil {
				t.Fatalf("seed %d step %d: %v", seed, step, err)
			}
			if owned, err = jsondelta.Advance(owned, decode(t, string(text))); err != nil {
				t.Fatalf("seed %d step %d: %v", seed, step, err)
			}
			if want := string(jsonvalue.Canonical(next)); string(jsonvalue.Canonical(copied)) != want || string(jsonvalue.Canonical(owned)) != want {
				t.Fatalf("seed %d step %d: %s made\n%s and\n%s of\n%s, want\n%s", seed, step, text,
					jsonvalue.Canonical(copied), jsonvalue.Canonical(owned), jsonvalue.Canonical(state), want)
			}
			state = next
		}
	}
}

// change gives a value with a few random changes; the value itself stays.
func change(r *rand.Rand, v any) any {
	switch v := v.(type) {
	case map[string]any:
		next := maps.Clone(v)
		for range 1 + r.IntN(2) {
			name := fmt.Sprintf("k%d", r.IntN(6))
			switch old, there := next[name]; {
			case there && r.IntN(5) == 0:
				delete(next, name)
			case there && r.IntN(2) == 0:
				next[name] = change(r, old)
			default:
				next[name] = fresh(r, 2)
			}
		}
		return next
	case []any:
		next := slices.Clone(v)
		switch {
		case len(next) > 0 && r.IntN(4) == 0:
			return next[:r.IntN(len(next))]
		case len(next) > 0 && r.IntN(2) == 0:
			i := r.IntN(len(next))
			next[i] = change(r, next[i])
			return next
		default:
			return append(next, fresh(r, 1))
		}
	default:
		return fresh(r, 2)
	}
}

func fresh(r *rand.Rand, depth int) any {
	switch n := r.IntN(6); {
	case n == 0 && depth > 0:
		m := map[string]any{}
		for i := range r.IntN(5) {
			m[fmt.Sprintf("k%d", i)] = fresh(r, depth-1)
		}
		return m
	case n == 1 && depth > 0:
		var l []any
		for range r.IntN(14) {
			l = append(l, fresh(r, depth-1))
		}
		return l
	case n == 2:
		return nil
	case n == 3:
		return r.IntN(2) == 0
	case n == 4:
		return "text"
	default:
		return float64(r.IntN(3))
	}
}

// BenchmarkDiff: what a store pays to see that of a large state one member, or one element at the end, is new.
func BenchmarkDiff(b *testing.B) {
	wide, list := map[string]any{}, make([]any, 10_000)
	for i := range list {
		wide[fmt.Sprintf("member%05d", i)] = "a small value"
		list[i] = map[string]any{"id": float64(i), "text": "a small value"}
	}
	widened := maps.Clone(wide)
	widened["member00007"] = "another"
	for name, c := range map[string][2]map[string]any{
		"one of 10,000 members":       {wide, widened},
		"one more of 10,000 elements": {{"list": list}, {"list": append(slices.Clone(list), "one more")}},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d := jsondelta.Diff(c[0], c[1]); len(d) != 1 {
					b.Fatal(d)
				}
			}
		})
	}
}
