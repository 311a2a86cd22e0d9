package jsonvalue

import "testing"

// The cases are those that RFC 7396 lists for objects, appendix A.
func TestMergePatch(t *testing.T) {
	t.Parallel()
	type o = map[string]any
	for _, tt := range []struct{ target, patch, want o }{
		{o{"a": "b"}, o{"a": "c"}, o{"a": "c"}},
		{o{"a": "b"}, o{"b": "c"}, o{"a": "b", "b": "c"}},
		{o{"a": "b"}, o{"a": nil}, o{}},
		{o{"a": "b", "b": "c"}, o{"a": nil}, o{"b": "c"}},
		{o{"a": []any{"b"}}, o{"a": "c"}, o{"a": "c"}},
		{o{"a": "c"}, o{"a": []any{"b"}}, o{"a": []any{"b"}}},
		{o{"a": o{"b": "c"}}, o{"a": o{"b": "d", "c": nil}}, o{"a": o{"b": "d"}}},
		{o{"e": nil}, o{"a": 1.0}, o{"e": nil, "a": 1.0}},
		{o{}, o{"a": o{"bb": o{"ccc": nil}}}, o{"a": o{"bb": o{}}}},
		{nil, o{"a": 1.0}, o{"a": 1.0}},
	} {
		before := Canonical(tt.target)
		if got := MergePatch(tt.target, tt.patch); !Equal(got, tt.want) {
			t.Errorf("%v with %v: %v, want %v", tt.target, tt.patch, got, tt.want)
		}
		if string(Canonical(tt.target)) != string(before) {
			t.Errorf("%v was changed", tt.target)
		}
	}
}
