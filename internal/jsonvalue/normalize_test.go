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
	huge, _ := new(big.Int).SetString("12345678901234567000", 10)
	for _, test := range []struct {
		name string
		in   any
		want string
	}{
		{"nil", nil, `null`},
		{"plain", map[string]any{"a": []any{1.0, "x", true, nil}}, `{"a":[1,"x",true,null]}`},
		{"ints", []any{int(1), int8(-2), int16(3), int32(4), int64(5)}, `[1,-2,3,4,5]`},
		{"uints", []any{uint(1), uint8(2), uint16(3), uint32(4), uint64(5)}, `[1,2,3,4,5]`},
		{"kept beyond 2^53", []any{int64(9007199254740994), uint64(12345678901234567000), huge, json.Number("100000000000000000000000")}, `[9007199254740994,12345678901234567000,12345678901234567000,1e+23]`},
		{"float32", float32(0.5), `0.5`},
		{"number text", []any{json.Number("1.0"), json.Number("-0"), json.Number("123456789012345678901.5"), json.Number("1e2")}, `[1,0,123456789012345680000,100]`},
		{"raw", json.RawMessage(` {"b":1,"a":[2.0]} `), `{"a":[2],"b":1}`},
		{"struct", &point{X: 1}, `{"x":1}`},
		{"structs", []point{{1, "a"}, {2, "<b>"}}, `[{"x":1,"y":"a"},{"x":2,"y":"<b>"}]`},
		{"typed maps", map[string]string{"b": "x", "a": "y"}, `{"a":"y","b":"x"}`},
		{"typed lists", []any{[]string{"a"}, []int{1}, []float64{1.5}, []map[string]any{{"n": 1}}, map[int]string{2: "b"}}, `[["a"],[1],[1.5],[{"n":1}],{"2":"b"}]`},
		{"nested", map[string]any{"a": []any{map[string]any{"n": 1}}}, `{"a":[{"n":1}]}`},
		{"bytes", []byte("hi"), `"aGk="`},
		{"time", time.Unix(0, 0).UTC(), `"1970-01-01T00:00:00Z"`},
		{"negative zero", math.Copysign(0, -1), `0`},
		{"the replacement character", []any{"\uFFFD", point{Y: "\uFFFD"}}, "[\"\uFFFD\",{\"x\":0,\"y\":\"\uFFFD\"}]"},
		{"an escaped replacement character", json.RawMessage(`"\ufffd"`), "\"\uFFFD\""},
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
			if !(jsonvalue.Equal(test.in, got) && jsonvalue.Equal(got, test.in)) {
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
		{"raw that overflows", json.RawMessage(`[1e400]`), "/0"},
		{"empty raw", []any{json.RawMessage(nil)}, "/0"},
		{"channel", map[string]any{"c": make(chan int)}, "/c"},
		{"function", []any{func() {}}, "/0"},
		{"struct with NaN", []any{struct{ F float64 }{math.NaN()}}, "/0"},
		{"typed list with NaN", []any{[]float64{0, math.NaN()}}, "/0/1"},
		{"the first of several", map[string]any{"b": math.NaN(), "a": math.NaN(), "c": math.NaN()}, "/a"},
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

// Integers and texts that the model cannot keep are refused with their place and never changed: a reader would see another
// value than was written.
func TestNormalizeChangesNoValue(t *testing.T) {
	t.Parallel()
	type record struct {
		ID   int64
		Text string
		More map[string][]any
	}
	for _, test := range []struct {
		name    string
		in      any
		pointer string
		about   string
	}{
		{"int64", map[string]any{"ID": int64(1234567890123456789)}, "/ID", "1234567890123456789"},
		{"int", []any{1, math.MaxInt}, "/1", "9223372036854775807"},
		{"the least int64", []any{int64(math.MinInt64)}, "/0", "-9223372036854775808"},
		{"a power of two whose text is another integer", int64(1 << 60), "", "1152921504606846976"},
		{"uint64", []uint64{math.MaxUint64}, "/0", "18446744073709551615"},
		{"2^53 + 1", int64(9007199254740993), "", "9007199254740993"},
		{"struct", record{ID: 1234567890123456789}, "/ID", "1234567890123456789"},
		{"structs", []any{[]record{{}, {More: map[string][]any{"a/b": {uint64(math.MaxUint64)}}}}}, "/0/1/More/a~1b/0", "18446744073709551615"},
		{"number text", []any{json.Number("12345678901234567890")}, "/0", "12345678901234567890"},
		{"raw", json.RawMessage(`{"a":[0,-1234567890123456789]}`), "/a/1", "-1234567890123456789"},
		{"big.Int", new(big.Int).SetUint64(math.MaxUint64), "", "18446744073709551615"},
		{"text", map[string]any{"a": []any{"b\xff"}}, "/a/0", "UTF-8"},
		{"name", map[string]any{"a\xff": 1.0}, "/a\uFFFD", "UTF-8"},
		{"text of a struct", []any{record{Text: "b\xff"}}, "/0/Text", "UTF-8"},
		{"name in a struct", record{More: map[string][]any{"\xff": nil}}, "/More", "UTF-8"},
		{"raw text", json.RawMessage("[\"\xff\"]"), "/0", "UTF-8"},
		{"half of a surrogate pair", json.RawMessage(`["\ud800"]`), "/0", "surrogate"},
		{"typed texts", []string{"a", "\xc3"}, "/1", "UTF-8"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := jsonvalue.Normalize(test.in)
			e, ok := problem.As(err)
			if !ok || e.Code != problem.ValidationError || !strings.Contains(e.Message, test.about) {
				t.Fatalf("%v, %v", got, err)
			}
			if e.At.Pointer != test.pointer {
				t.Errorf("pointer %q, want %q", e.At.Pointer, test.pointer)
			}
		})
	}
}

// DecodeExact names every value that would change.
func TestDecodeExactNamesLosses(t *testing.T) {
	t.Parallel()
	text := `{"twice":1,"twice":2,"n":[1234567890123456789,0.1,12345678901234567000],"o":1e400,"s":"\ud800","t":"` + "\xff" + `","u":"\ufffd"}`
	v, losses, err := jsonvalue.DecodeExact([]byte(text))
	if err != nil || v.(map[string]any)["u"] != "\uFFFD" {
		t.Fatal(v, err)
	}
	var places []string
	for _, loss := range losses {
		places = append(places, loss.Kind+" "+loss.Pointer)
	}
	if want := "precision /n/0, number /o, surrogate /s, utf8 /t"; strings.Join(places, ", ") != want {
		t.Errorf("%s, want %s", strings.Join(places, ", "), want)
	}
	if _, losses, err := jsonvalue.DecodeExact([]byte(`{"a":[9007199254740992,-0,0.1000000000000000055]}`)); err != nil || losses != nil {
		t.Errorf("%v, %v", losses, err)
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
