package jsonvalue_test

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

type point struct {
	X int    `json:"x"`
	Y string `json:"y,omitempty"`
}

func TestNormalize(t *testing.T) {
	t.Parallel()
	huge, _ := new(big.Int).SetString("12345678901234567890", 10)
	for _, test := range []struct {
		name string
		in   any
		want string
	}{
		{"nil", nil, `null`},
		{"plain", map[string]any{"a": []any{1.0, "x", true, nil}}, `{"a":[1,"x",true,null]}`},
		{"ints", []any{int(1), int8(-2), int16(3), int32(4), int64(5)}, `[1,-2,3,4,5]`},
		{"uints", []any{uint(1), uint8(2), uint16(3), uint32(4), uint64(5)}, `[1,2,3,4,5]`},
		{"beyond 2^53", []any{int64(9007199254740993), uint64(math.MaxUint64), huge}, `[9007199254740992,18446744073709552000,12345678901234567000]`},
		{"float32", float32(0.5), `0.5`},
		{"number text", []any{json.Number("1.0"), json.Number("-0"), json.Number("12345678901234567890"), json.Number("1e2")}, `[1,0,12345678901234567000,100]`},
		{"raw", json.RawMessage(` {"b":1,"a":[2.0]} `), `{"a":[2],"b":1}`},
		{"struct", &point{X: 1}, `{"x":1}`},
		{"structs", []point{{1, "a"}, {2, "<b>"}}, `[{"x":1,"y":"a"},{"x":2,"y":"<b>"}]`},
		{"typed maps", map[string]string{"b": "x", "a": "y"}, `{"a":"y","b":"x"}`},
		{"typed lists", []any{[]string{"a"}, []int{1}, []float64{1.5}, []map[string]any{{"n": 1}}, map[int]string{2: "b"}}, `[["a"],[1],[1.5],[{"n":1}],{"2":"b"}]`},
		{"nested", map[string]any{"a": []any{map[string]any{"n": 1}}}, `{"a":[{"n":1}]}`},
		{"bytes", []byte("hi"), `"aGk="`},
		{"time", time.Unix(0, 0).UTC(), `"1970-01-01T00:00:00Z"`},
		{"negative zero", math.Copysign(0, -1), `0`},
		{"invalid UTF-8", map[string]any{"a\xff": "b\xff\xfe"}, `{"a` + "\uFFFD" + `":"b` + "\uFFFD\uFFFD" + `"}`},
		{"nil map", map[string]any(nil), `{}`},
		{"nil slice", []any(nil), `[]`},
		{"nil of other types", []any{map[string]string(nil), []string(nil), (*point)(nil), (*big.Int)(nil)}, `[null,null,null,null]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := jsonvalue.Normalize(test.in)
			if err != nil {
				t.Fatal(err)
			}
			if text := string(jsonvalue.Canonical(got)); text != test.want {
				t.Errorf("%s, want %s", text, test.want)
			}
			if text := string(jsonvalue.Canonical(test.in)); text != test.want {
				t.Errorf("the canonical text of the value itself is %s", text)
			}
			if n := jsonvalue.Size(test.in, 0); n != len(test.want) {
				t.Errorf("size %d, want %d", n, len(test.want))
			}
			if valid := test.name != "invalid UTF-8"; valid && !(jsonvalue.Equal(test.in, got) && jsonvalue.Equal(got, test.in)) {
				t.Error("the value does not equal its normal form")
			}
		})
	}
}

func TestNormalizeRefuses(t *testing.T) {
	t.Parallel()
	loop := map[string]any{}
	loop["list"] = []any{loop}
	for _, test := range []struct {
		name    string
		in      any
		pointer string
	}{
		{"NaN", map[string]any{"a": []any{1.0, math.NaN()}}, "/a/1"},
		{"infinity", math.Inf(-1), ""},
		{"float32 infinity", []any{float32(math.Inf(1))}, "/0"},
		{"huge integer", []any{new(big.Int).Lsh(big.NewInt(1), 2000)}, "/0"},
		{"number text too large", map[string]any{"a/b": json.Number("1e400")}, "/a~1b"},
		{"number text that is none", []any{json.Number("0x1")}, "/0"},
		{"empty number text", json.Number(""), ""},
		{"raw that is no JSON", map[string]any{"r": json.RawMessage(`{"a":}`)}, "/r"},
		{"raw that overflows", json.RawMessage(`[1e400]`), ""},
		{"empty raw", []any{json.RawMessage(nil)}, "/0"},
		{"channel", map[string]any{"c": make(chan int)}, "/c"},
		{"function", []any{func() {}}, "/0"},
		{"struct with NaN", []any{struct{ F float64 }{math.NaN()}}, "/0"},
		{"typed list with NaN", []any{[]float64{0, math.NaN()}}, "/0/1"},
		{"the first of several", map[string]any{"b": math.NaN(), "a": math.NaN(), "c": math.NaN()}, "/a"},
		{"names that become the same", []any{map[string]any{"\xff": 1.0, "\xfe": 2.0}}, "/0/\uFFFD"},
		{"a loop", loop, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := jsonvalue.Normalize(test.in)
			e, ok := problem.As(err)
			if !ok || e.Code != problem.ValidationError || e.Message == "" {
				t.Fatalf("%v, %v", got, err)
			}
			if e.At.Pointer != test.pointer {
				t.Errorf("pointer %q, want %q", e.At.Pointer, test.pointer)
			}
		})
	}
}

func TestNormalizeSharesNothing(t *testing.T) {
	t.Parallel()
	in := map[string]any{"a": []any{map[string]any{"b": 1.0}}}
	got, err := jsonvalue.Normalize(in)
	if err != nil {
		t.Fatal(err)
	}
	in["a"].([]any)[0].(map[string]any)["b"] = 2.0
	in["a"].([]any)[0] = nil
	if text := string(jsonvalue.Canonical(got)); text != `{"a":[{"b":1}]}` {
		t.Error(text)
	}
}

func TestClone(t *testing.T) {
	t.Parallel()
	in := map[string]any{"a": []any{map[string]any{"b": 1.0}, "x"}, "n": nil}
	got := jsonvalue.Clone(in)
	in["a"].([]any)[0].(map[string]any)["b"] = 2.0
	if text := string(jsonvalue.Canonical(got)); text != `{"a":[{"b":1},"x"],"n":null}` {
		t.Error(text)
	}
	if jsonvalue.CloneMap(nil) != nil || jsonvalue.Clone(nil) != nil {
		t.Error("a copy of nothing is something")
	}
}

func TestEqual(t *testing.T) {
	t.Parallel()
	same := [][2]any{
		{nil, nil},
		{0.0, math.Copysign(0, -1)},
		{1.0, 1},
		{map[string]any{"a": 1.0, "b": []any{}}, map[string]any{"b": []any{}, "a": 1.0}},
		{map[string]any{}, map[string]any(nil)},
		{[]any{"x"}, []string{"x"}},
		{[]string{"x"}, []string{"x"}},
	}
	for _, pair := range same {
		if !jsonvalue.Equal(pair[0], pair[1]) || !jsonvalue.Equal(pair[1], pair[0]) {
			t.Errorf("%v and %v differ", pair[0], pair[1])
		}
	}
	different := [][2]any{
		{nil, false},
		{nil, map[string]any{}},
		{0.0, false},
		{"1", 1.0},
		{[]any{}, map[string]any{}},
		{[]any{1.0, 2.0}, []any{2.0, 1.0}},
		{[]any{1.0}, []any{1.0, nil}},
		{map[string]any{"a": nil}, map[string]any{"b": nil}},
		{map[string]any{"a": nil}, map[string]any{}},
		{"x", make(chan int)},
		{make(chan int), "x"},
	}
	for _, pair := range different {
		if jsonvalue.Equal(pair[0], pair[1]) || jsonvalue.Equal(pair[1], pair[0]) {
			t.Errorf("%v and %v are equal", pair[0], pair[1])
		}
	}
}

func TestSizeStopsEarly(t *testing.T) {
	t.Parallel()
	big := []any{strings.Repeat("x", 100), strings.Repeat("y", 100)}
	for limit := 1; limit < 210; limit++ {
		exact := len(jsonvalue.Canonical(big))
		if got := jsonvalue.Size(big, limit); (got > limit) != (exact > limit) {
			t.Fatalf("limit %d: %d, exactly %d", limit, got, exact)
		}
	}
}
