package jsondelta_test

import (
	"errors"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsondelta"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// FuzzApply applies any delta to any object. Both ways of applying agree, a delta means one thing, the object stays as it was, and the
// delta from the object to the result leads there too.
func FuzzApply(f *testing.F) {
	for _, c := range [][2]string{
		{`{"a":1,"b":2}`, `{"drop":["a"],"set":{"b":3}}`},
		{`{"a":{"b":1}}`, `{"in":{"a":{"set":{"c":null}}}}`},
		{`{"a":[1,{"x":1},3]}`, `{"in":{"a":{"keep":2,"add":[4],"put":{"0":9},"in":{"1":{"set":{"x":2}}}}}}`},
		{`{"a":[1]}`, `{"in":{"a":{"keep":0}}}`},
		{`{"a":1}`, `{"drop":["a","a"]}`},
		{`{"a":1,"b":2}`, `{"drop":["a"],"set":{"a":2}}`},
		{`{"a":{"b":1}}`, `{"set":{"a":{"c":1}},"in":{"a":{"set":{"d":1}}}}`},
		{`{"a":{"b":1}}`, `{"drop":["a"],"in":{"a":{"set":{"d":1}}}}`},
		{`{"a":[{},{}]}`, `{"in":{"a":{"put":{"0":{"x":1}},"in":{"0":{"set":{"y":1}},"00":{"set":{"y":2}}}}}}`},
	} {
		f.Add([]byte(c[0]), []byte(c[1]))
	}
	f.Fuzz(func(t *testing.T, object, change []byte) {
		read := func() (map[string]any, any) {
			v, err := jsonvalue.Decode(object)
			from, ok := v.(map[string]any)
			delta, bad := jsonvalue.Decode(change)
			if err != nil || !ok || bad != nil {
				t.Skip("the first is an object, the second JSON")
			}
			return from, delta
		}
		from, delta := read()
		before := string(jsonvalue.Canonical(from))
		to, err := jsondelta.Apply(from, delta)
		if now := string(jsonvalue.Canonical(from)); now != before {
			t.Fatalf("%s became %s", before, now)
		}
		for range 3 { // members of an object are met in any order
			owned, same := read()
			advanced, failed := jsondelta.Advance(owned, same)
			if (err == nil) != (failed == nil) || err == nil && !jsonvalue.Equal(to, advanced) {
				t.Fatalf("applied: %s, %v; advanced: %s, %v", jsonvalue.Canonical(to), err, jsonvalue.Canonical(advanced), failed)
			}
		}
		if err != nil {
			if !errors.Is(err, problem.HistoryCorrupt) {
				t.Fatalf("refused without its code: %v", err)
			}
			return
		}
		again, err := jsondelta.Apply(from, jsondelta.Diff(from, to))
		if err != nil || !jsonvalue.Equal(again, to) {
			t.Fatalf("the delta from %s to %s leads to %s, %v", before, jsonvalue.Canonical(to), jsonvalue.Canonical(again), err)
		}
	})
}
